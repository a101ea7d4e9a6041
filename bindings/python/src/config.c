/* SPDX-License-Identifier: Apache-2.0 */
/* Dicts as configurations and as tensors. The library checks values; what is checked here is
 * that they are numbers and text at all. */
#include <stdio.h>
#include <string.h>

#include "native.h"

/* ---- values ---- */

const char *native_text(PyObject *value, const char *name)
{
    Py_ssize_t length = 0;
    if (!PyUnicode_Check(value)) {
        PyErr_Format(PyExc_TypeError, "%s: found %R, expected a str", name,
                     (PyObject *)Py_TYPE(value));
        return NULL;
    }
    const char *text = PyUnicode_AsUTF8AndSize(value, &length);
    if (text == NULL) return NULL;
    if (strlen(text) == (size_t)length) return text;
    native_refuse(LOCUS_ERR_ARGUMENT, "%s: found a NUL in the text", name);
    return NULL;
}

static int read_int64(PyObject *value, const char *name, int64_t *out)
{
    PyObject *whole = PyNumber_Index(value);
    if (whole == NULL) {
        if (PyErr_ExceptionMatches(PyExc_TypeError))
            PyErr_Format(PyExc_TypeError, "%s: found %R, expected an integer", name,
                         (PyObject *)Py_TYPE(value));
        return -1;
    }
    int overflow = 0;
    *out = PyLong_AsLongLongAndOverflow(whole, &overflow);
    Py_DECREF(whole);
    if (overflow == 0) return *out == -1 && PyErr_Occurred() ? -1 : 0;
    native_refuse(LOCUS_ERR_OPTION, "%s: found a number beyond 64 bits", name);
    return -1;
}

static int read_uint32(PyObject *value, const char *name, uint32_t *out)
{
    int64_t whole = 0;
    if (read_int64(value, name, &whole) != 0) return -1;
    *out = (uint32_t)whole;
    if (whole >= 0 && whole <= UINT32_MAX) return 0;
    native_refuse(LOCUS_ERR_OPTION, "%s: found %lld, expected 0..4294967295", name,
                  (long long)whole);
    return -1;
}

static int read_uint64(PyObject *value, const char *name, uint64_t *out)
{
    PyObject *whole = PyNumber_Index(value);
    if (whole == NULL) return -1;
    *out = PyLong_AsUnsignedLongLong(whole);
    Py_DECREF(whole);
    if (!PyErr_Occurred()) return 0;
    if (!PyErr_ExceptionMatches(PyExc_OverflowError)) return -1;
    PyErr_Clear();
    native_refuse(LOCUS_ERR_OPTION, "%s: found another number, expected 0..2^64-1", name);
    return -1;
}

static int read_double(PyObject *value, const char *name, double *out)
{
    *out = PyFloat_AsDouble(value);
    if (*out != -1.0 || !PyErr_Occurred()) return 0;
    if (PyErr_ExceptionMatches(PyExc_TypeError))
        PyErr_Format(PyExc_TypeError, "%s: found %R, expected a number", name,
                     (PyObject *)Py_TYPE(value));
    return -1;
}

/* A name longer than any we have stays unknown when it is cut. */
static int copy_text(PyObject *value, const char *name, char *out, size_t capacity)
{
    const char *text = native_text(value, name);
    if (text == NULL) return -1;
    snprintf(out, capacity, "%s", text);
    return 0;
}

/* ---- options of the scheme ---- */

/* A number's shortest text; subclasses such as NumPy's have words of their own around it. */
static PyObject *spell_real(PyObject *value)
{
    PyObject *plain = PyFloat_FromDouble(PyFloat_AsDouble(value));
    PyObject *spelt = plain != NULL && !PyErr_Occurred() ? PyObject_Repr(plain) : NULL;
    Py_XDECREF(plain);
    return spelt;
}

static PyObject *spell_whole(PyObject *value)
{
    PyObject *whole = PyNumber_Index(value);
    PyObject *spelt = whole != NULL ? PyObject_Str(whole) : NULL;
    Py_XDECREF(whole);
    return spelt;
}

PyObject *native_spell(PyObject *value)
{
    if (PyUnicode_Check(value)) return Py_NewRef(value);
    if (PyBool_Check(value)) return PyUnicode_FromString(value == Py_True ? "1" : "0");
    if (PyIndex_Check(value)) return spell_whole(value);
    return spell_real(value);
}

static int set_option(native_config *config, const char *name, PyObject *value)
{
    PyObject *spelt = native_spell(value);
    if (spelt == NULL) return -1;
    const char *text = native_text(spelt, name);
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    if (text != NULL)
        status = locus_options_set(&config->c.options, config->c.scheme, config->level, name, text,
                                   &error);
    Py_DECREF(spelt);
    if (status != LOCUS_OK) native_raise(status, error.text);
    return text == NULL || status != LOCUS_OK ? -1 : 0;
}

static int read_options(native_config *config, PyObject *options)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    if (!PyDict_Check(options)) {
        PyErr_SetString(PyExc_TypeError, "options: expected a dict");
        return -1;
    }
    while (PyDict_Next(options, &at, &key, &value)) {
        if (value == Py_None) continue;
        /* Values may run code of their own: keep both while they do. */
        Py_INCREF(key);
        Py_INCREF(value);
        const char *name = native_text(key, "option");
        const int status = name != NULL ? set_option(config, name, value) : -1;
        Py_DECREF(key);
        Py_DECREF(value);
        if (status != 0) return -1;
    }
    return 0;
}

/* ---- the configuration ---- */

static int read_isa(native_config *config, PyObject *value, const char *name)
{
    config->c.isa = config->isa;
    return copy_text(value, name, config->isa, sizeof config->isa);
}

static int read_path(native_config *config, PyObject *value, const char *name)
{
    config->c.path = config->path;
    return copy_text(value, name, config->path, sizeof config->path);
}

#define READ_FIELD(field, reader)                                                                  \
    static int read_##field(native_config *config, PyObject *value, const char *name)              \
    {                                                                                              \
        return reader(value, name, &config->c.field);                                              \
    }
READ_FIELD(causal, read_uint32)
READ_FIELD(heads, read_uint32)
READ_FIELD(threads, read_uint32)
READ_FIELD(window_left, read_int64)
READ_FIELD(window_right, read_int64)
READ_FIELD(query_offset, read_int64)
READ_FIELD(key_offset, read_int64)
READ_FIELD(first_query, read_int64)
READ_FIELD(first_batch, read_int64)
READ_FIELD(scale, read_double)
READ_FIELD(softcap, read_double)
READ_FIELD(dropout, read_double)
READ_FIELD(dropout_seed, read_uint64)
#undef READ_FIELD

static int read_setting(native_config *config, const char *name, PyObject *value)
{
    static const struct {
        const char *name;
        int (*read)(native_config *config, PyObject *value, const char *name);
    } settings[] = {
        {"causal", read_causal},
        {"window_left", read_window_left},
        {"window_right", read_window_right},
        {"query_offset", read_query_offset},
        {"key_offset", read_key_offset},
        {"first_query", read_first_query},
        {"first_batch", read_first_batch},
        {"scale", read_scale},
        {"softcap", read_softcap},
        {"dropout", read_dropout},
        {"dropout_seed", read_dropout_seed},
        {"threads", read_threads},
        {"heads", read_heads},
        {"path", read_path},
        {"isa", read_isa},
    };
    if (strcmp(name, "scheme") == 0 || strcmp(name, "options") == 0)
        return 0; /* read first, last */
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (strcmp(name, settings[i].name) == 0)
            return value == Py_None ? 0 : settings[i].read(config, value, name);
    native_refuse(LOCUS_ERR_ARGUMENT, "config: found the key \"%s\", expected one of locus_config",
                  name);
    return -1;
}

/* The scheme comes first, since it has the defaults; its name becomes the library's own
 * string, so that no Python object has to outlive the call. */
static int read_scheme(native_config *config, PyObject *dict)
{
    PyObject *value = PyDict_GetItemString(dict, "scheme"); /* borrowed */
    const char *name = value != NULL ? native_text(value, "scheme") : "none";
    if (name == NULL) return -1;
    locus_error error = {.text = ""};
    if (locus_config_init(&config->c, name) != LOCUS_OK) {
        const locus_status status =
            locus_options_set(&config->c.options, name, config->level, "", "", &error);
        native_raise(status, error.text);
        return -1;
    }
    config->c.scheme = locus_scheme_find(name)->name;
    return 0;
}

int native_read_config(native_config *config, uint32_t level, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    memset(config, 0, sizeof *config);
    config->level = level;
    if (!PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "config: expected a dict");
        return -1;
    }
    if (read_scheme(config, dict) != 0) return -1;
    while (PyDict_Next(dict, &at, &key, &value)) {
        Py_INCREF(key);
        Py_INCREF(value);
        const char *name = native_text(key, "config");
        const int status = name != NULL ? read_setting(config, name, value) : -1;
        Py_DECREF(key);
        Py_DECREF(value);
        if (status != 0) return -1;
    }
    PyObject *options = PyDict_GetItemString(dict, "options"); /* borrowed */
    if (options == NULL || options == Py_None) return 0;
    Py_INCREF(options);
    const int status = read_options(config, options);
    Py_DECREF(options);
    return status;
}

/* ---- tensors by name ---- */

void native_add_axes(const locus_tensors *tensors, locus_tensor *view)
{
    const uint32_t axes = 4, missing = axes - view->rank;
    if (view != &tensors->mask && view != &tensors->bias_dense) return;
    if (view->rank != 2 && view->rank != 3) return;
    const int64_t step = view->stride[0];
    for (uint32_t i = axes; i-- > 0;) {
        view->shape[i] = i >= missing ? view->shape[i - missing] : 1;
        view->stride[i] = i >= missing ? view->stride[i - missing] : step;
    }
    view->rank = axes;
}

int native_read_tensors(locus_tensors *tensors, native_holds *holds, PyObject *dict,
                        const char *prefix, int writable)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    if (!PyDict_Check(dict)) {
        PyErr_Format(PyExc_TypeError, "%stensors: expected a dict", prefix);
        return -1;
    }
    while (PyDict_Next(dict, &at, &key, &value)) {
        if (value == Py_None) continue;
        const char *name = native_text(key, "tensor");
        if (name == NULL) return -1;
        const int index = locus_tensor_index(name);
        if (index < 0) {
            native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s is not known", prefix, name);
            return -1;
        }
        locus_tensor *view = locus_tensor_at(tensors, (size_t)index);
        /* __dlpack__ may change the dict under our feet; then a name could come twice. */
        if (view->rank != 0) {
            PyErr_SetString(PyExc_RuntimeError, "tensors: the dict changed during the call");
            return -1;
        }
        const native_role role = {prefix, locus_tensor_name((size_t)index), writable};
        Py_INCREF(value);
        const int status = native_view(view, holds, value, &role);
        Py_DECREF(value);
        if (status != 0) return -1;
        native_add_axes(tensors, view);
    }
    return 0;
}
