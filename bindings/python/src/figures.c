/* SPDX-License-Identifier: Apache-2.0 */
/* Figures as dicts, in the words of <locus/plot.h>, or pictures of schemes, rendered to text. */
#include <string.h>

#include "native.h"

enum { MOST_PANELS = 64, MOST_SERIES = 64 };

/* Everything that a figure points to. */
typedef struct drawing {
    locus_panel panels[MOST_PANELS];
    locus_series *series[MOST_PANELS];
    Py_buffer *buffers; /* of the numbers */
    size_t buffer_count, buffer_room;
    const char **names; /* of rows and columns, list after list */
    size_t name_count, name_room;
} drawing;

static const char *text_at(PyObject *dict, const char *key, int *failed)
{
    PyObject *value = PyDict_GetItemString(dict, key);
    if (value == NULL || value == Py_None) return NULL;
    const char *text = PyUnicode_AsUTF8AndSize(value, NULL);
    if (text == NULL) *failed = 1;
    return text;
}

static double number_at(PyObject *dict, const char *key, int *failed)
{
    PyObject *value = PyDict_GetItemString(dict, key);
    if (value == NULL || value == Py_None) return 0.0;
    const double number = PyFloat_AsDouble(value);
    if (number == -1.0 && PyErr_Occurred()) *failed = 1;
    return number;
}

/* Dense doubles of a given rank; the buffer stays held. */
static const Py_buffer *numbers_of(drawing *d, PyObject *object, int rank)
{
    if (d->buffer_count == d->buffer_room) {
        PyErr_SetString(PyExc_ValueError, "figure: found too many series");
        return NULL;
    }
    Py_buffer *buffer = &d->buffers[d->buffer_count];
    if (PyObject_GetBuffer(object, buffer, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT) != 0) return NULL;
    d->buffer_count++;
    if (buffer->ndim == rank && buffer->format != NULL && strcmp(buffer->format, "d") == 0)
        return buffer;
    PyErr_Format(PyExc_ValueError, "figure: expected float64 numbers with %d axes", rank);
    return NULL;
}

/* A list of `count` names for rows or columns; what is absent leaves numbers. */
static int read_names(drawing *d, PyObject *dict, const char *key, size_t count, locus_axis *axis)
{
    PyObject *list = PyDict_GetItemString(dict, key);
    if (list == NULL || list == Py_None) return 0;
    if (!PyList_Check(list) || (size_t)PyList_Size(list) != count ||
        count > d->name_room - d->name_count) {
        PyErr_Format(PyExc_ValueError, "figure: %s: expected a list of %zu names", key, count);
        return -1;
    }
    axis->names = &d->names[d->name_count];
    for (size_t i = 0; i < count; i++) {
        const char *name = PyUnicode_AsUTF8AndSize(PyList_GetItem(list, (Py_ssize_t)i), NULL);
        if (name == NULL) return -1;
        d->names[d->name_count++] = name;
    }
    return 0;
}

static int read_heatmap(drawing *d, locus_panel *panel, PyObject *dict, PyObject *values)
{
    const Py_buffer *buffer = numbers_of(d, values, 2);
    if (buffer == NULL) return -1;
    panel->kind = LOCUS_PANEL_HEATMAP;
    panel->values = buffer->buf;
    panel->rows = (size_t)buffer->shape[0];
    panel->columns = (size_t)buffer->shape[1];
    if (read_names(d, dict, "x_names", panel->columns, &panel->x) != 0) return -1;
    return read_names(d, dict, "y_names", panel->rows, &panel->y);
}

static int read_lines(drawing *d, locus_panel *panel, PyObject *list, locus_series **out)
{
    const Py_ssize_t count = PyList_Check(list) ? PyList_Size(list) : -1;
    if (count < 0 || count > MOST_SERIES) {
        PyErr_Format(PyExc_ValueError, "figure: series: expected a list of at most %d",
                     MOST_SERIES);
        return -1;
    }
    locus_series *series = PyMem_Calloc((size_t)count + 1, sizeof *series);
    if (series == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    *out = series;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *x = NULL, *y = NULL;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "sOO", &series[i].name, &x, &y)) return -1;
        series[i].size = sizeof *series;
        const Py_buffer *heights = numbers_of(d, y, 1);
        const Py_buffer *places = heights != NULL && x != Py_None ? numbers_of(d, x, 1) : NULL;
        if (heights == NULL || (x != Py_None && places == NULL)) return -1;
        if (places != NULL && places->shape[0] != heights->shape[0]) {
            PyErr_SetString(PyExc_ValueError, "figure: x and y differ in length");
            return -1;
        }
        series[i].x = places != NULL ? places->buf : NULL;
        series[i].y = heights->buf;
        series[i].count = (size_t)heights->shape[0];
    }
    panel->kind = LOCUS_PANEL_LINES;
    panel->series = series;
    panel->series_count = (size_t)count;
    return 0;
}

static int read_panel(drawing *d, size_t index, PyObject *dict)
{
    int failed = 0;
    locus_panel *panel = &d->panels[index];
    panel->size = sizeof *panel;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "figure: expected dicts as panels");
        return -1;
    }
    panel->title = text_at(dict, "title", &failed);
    panel->note = text_at(dict, "note", &failed);
    panel->value_name = text_at(dict, "value_name", &failed);
    panel->x.label = text_at(dict, "x_label", &failed);
    panel->y.label = text_at(dict, "y_label", &failed);
    panel->x.first = number_at(dict, "x_first", &failed);
    panel->y.first = number_at(dict, "y_first", &failed);
    panel->x.step = number_at(dict, "x_step", &failed);
    if (failed) return -1;
    PyObject *values = PyDict_GetItemString(dict, "values");
    PyObject *series = PyDict_GetItemString(dict, "series");
    if (values != NULL) return read_heatmap(d, panel, dict, values);
    if (series != NULL) return read_lines(d, panel, series, &d->series[index]);
    PyErr_SetString(PyExc_ValueError, "figure: a panel needs values or series");
    return -1;
}

static PyObject *to_text(const locus_figure *figure, locus_format format,
                         const locus_render *manner)
{
    locus_text text = {0};
    locus_error error = {.text = ""};
    const locus_status status = locus_figure_render(figure, format, manner, &text, &error);
    PyObject *result = NULL;
    if (status != LOCUS_OK)
        native_raise(status, error.text);
    else
        result = PyUnicode_DecodeUTF8(text.data != NULL ? text.data : "", (Py_ssize_t)text.length,
                                      "strict");
    locus_text_free(&text);
    return result;
}

static PyObject *render(drawing *d, PyObject *dict, locus_format format, const locus_render *manner)
{
    int failed = 0;
    PyObject *panels = PyDict_GetItemString(dict, "panels");
    const Py_ssize_t count = panels != NULL && PyList_Check(panels) ? PyList_Size(panels) : -1;
    locus_figure figure = {.size = sizeof figure,
                           .panels = d->panels,
                           .panel_count = (size_t)count};
    figure.title = text_at(dict, "title", &failed);
    figure.description = text_at(dict, "description", &failed);
    figure.caption = text_at(dict, "caption", &failed);
    if (failed) return NULL;
    if (count < 0 || count > MOST_PANELS) {
        PyErr_Format(PyExc_ValueError, "figure: expected a list of at most %d panels", MOST_PANELS);
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++)
        if (read_panel(d, (size_t)i, PyList_GetItem(panels, i)) != 0) return NULL;
    return to_text(&figure, format, manner);
}

static int choose(const char *what, PyObject *value, const char *const *names, int *chosen)
{
    for (int i = 0; PyUnicode_Check(value) && names[i] != NULL; i++)
        if (PyUnicode_CompareWithASCIIString(value, names[i]) == 0) {
            *chosen = i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError, "%s: found %R", what, value);
    return -1;
}

PyObject *native_render(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    static const char *const formats[] = {"svg", "terminal", "csv", "json", NULL};
    static const char *const themes[] = {"auto", "light", "dark", NULL};
    int format = 0, theme = 0;
    if (native_check_count("render", count, 5) != 0) return NULL;
    if (choose("format", args[1], formats, &format) != 0 ||
        choose("theme", args[2], themes, &theme) != 0)
        return NULL;
    const unsigned long width = PyLong_AsUnsignedLong(args[3]);
    if (PyErr_Occurred()) return NULL;
    const locus_figure *picture = native_picture_figure(args[0]);
    if (picture == NULL && !PyDict_Check(args[0])) {
        PyErr_SetString(PyExc_TypeError, "figure: expected a dict");
        return NULL;
    }
    /* With a prefix of ids: an element for a page that may hold others. */
    const char *prefix = NULL;
    if (args[4] != Py_None && (prefix = PyUnicode_AsUTF8AndSize(args[4], NULL)) == NULL)
        return NULL;
    const locus_render manner = {.size = sizeof manner,
                                 .theme = (locus_theme)theme,
                                 .width = width < UINT32_MAX ? (uint32_t)width : UINT32_MAX,
                                 .plain = 1,
                                 .fragment = prefix != NULL,
                                 .background = prefix != NULL,
                                 .prefix = prefix};
    if (picture != NULL) return to_text(picture, (locus_format)format, &manner);
    drawing *d = PyMem_Calloc(1, sizeof *d);
    if (d == NULL) return PyErr_NoMemory();
    d->buffer_room = MOST_PANELS * 2 * MOST_SERIES;
    d->name_room = (size_t)1 << 16;
    d->buffers = PyMem_Calloc(d->buffer_room, sizeof *d->buffers);
    d->names = PyMem_Calloc(d->name_room, sizeof *d->names);
    PyObject *result = NULL;
    if (d->buffers == NULL || d->names == NULL)
        PyErr_NoMemory();
    else
        result = render(d, args[0], (locus_format)format, &manner);
    for (size_t i = 0; i < d->buffer_count; i++) PyBuffer_Release(&d->buffers[i]);
    for (size_t i = 0; i < MOST_PANELS; i++) PyMem_Free(d->series[i]);
    PyMem_Free(d->buffers);
    PyMem_Free(d->names);
    PyMem_Free(d);
    return result;
}
