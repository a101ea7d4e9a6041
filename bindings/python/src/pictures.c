/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures of schemes, in a capsule each. */
#include "native.h"

enum { MOST_SETTINGS = 32 };

static const char picture_name[] = "locus.picture";

static void free_picture(PyObject *capsule)
{
    locus_picture_free(PyCapsule_GetPointer(capsule, picture_name));
}

const locus_figure *native_picture_figure(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, picture_name)) return NULL;
    return locus_picture_figure(PyCapsule_GetPointer(capsule, picture_name));
}

/* What a request points to, next to the arguments of the call. */
typedef struct asked {
    locus_picture_request request;
    const char **tokens;
    PyObject *spelt[MOST_SETTINGS]; /* values of the settings */
    size_t spelt_count;
    locus_problem_setting settings[MOST_SETTINGS + 1];
    PyObject *path;
} asked;

static void let_go(asked *a)
{
    PyMem_Free(a->tokens);
    for (size_t i = 0; i < a->spelt_count; i++) Py_DECREF(a->spelt[i]);
    Py_XDECREF(a->path);
}

/* None stays NULL. */
static int read_text(PyObject *value, const char *name, const char **out)
{
    if (value == Py_None) return 0;
    *out = native_text(value, name);
    return *out != NULL ? 0 : -1;
}

static int read_tokens(asked *a, PyObject *tuple)
{
    if (tuple == Py_None) return 0;
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0) return -1;
    a->tokens = PyMem_Calloc((size_t)count + 1, sizeof *a->tokens);
    if (a->tokens == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        a->tokens[i] = native_text(PyTuple_GetItem(tuple, i), "tokens");
        if (a->tokens[i] == NULL) return -1;
    }
    a->request.tokens = a->tokens;
    a->request.token_count = (size_t)count;
    return 0;
}

/* A tuple of (name, value). */
static int read_settings(asked *a, PyObject *tuple)
{
    const Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0) return -1;
    if (count > MOST_SETTINGS) {
        native_refuse(LOCUS_ERR_OPTION, "option: found %zd options, expected at most %d", count,
                      MOST_SETTINGS);
        return -1;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *value = NULL;
        locus_problem_setting *setting = &a->settings[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "sO", &setting->name, &value)) return -1;
        PyObject *spelt = native_spell(value);
        if (spelt == NULL) return -1;
        a->spelt[a->spelt_count++] = spelt;
        setting->value = native_text(spelt, setting->name);
        if (setting->value == NULL) return -1;
    }
    a->request.settings = a->settings;
    return 0;
}

static int read_numbers(locus_picture_request *r, PyObject *tuple)
{
    long long length = 0, heads = 0, dim = 0, head = 0, window = 0;
    unsigned long long seed = 0;
    int causal = 0;
    if (!PyArg_ParseTuple(tuple, "LLLLLpK", &length, &heads, &dim, &head, &window, &causal, &seed))
        return -1;
    r->length = length;
    r->heads = heads;
    r->dim = dim;
    r->head = head;
    r->window = window;
    r->causal = causal ? 1 : 0;
    r->seed = seed;
    r->threads = native_threads(0);
    return 0;
}

static int read_request(asked *a, PyObject *const *args)
{
    locus_picture_request_init(&a->request, NULL);
    if (args[5] != Py_None) {
        a->path = native_path(args[5]);
        if (a->path == NULL) return -1;
        a->request.path = PyBytes_AsString(a->path);
    }
    if (read_text(args[0], "scheme", &a->request.scheme) != 0 ||
        read_text(args[1], "what", &a->request.what) != 0 || read_tokens(a, args[2]) != 0 ||
        read_numbers(&a->request, args[3]) != 0)
        return -1;
    return read_settings(a, args[4]);
}

static PyObject *wrap(locus_picture *picture, locus_status status, const locus_error *error)
{
    if (status != LOCUS_OK) {
        native_raise(status, error->text);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(picture, picture_name, free_picture);
    if (capsule == NULL) locus_picture_free(picture);
    return capsule;
}

static PyObject *draw(const asked *a)
{
    locus_picture *picture = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_picture_new(&picture, &a->request, &error);
    Py_END_ALLOW_THREADS return wrap(picture, status, &error);
}

PyObject *native_picture(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    asked a = {.tokens = NULL};
    if (native_check_count("picture", count, 6) != 0) return NULL;
    PyObject *capsule = read_request(&a, args) == 0 ? draw(&a) : NULL;
    let_go(&a);
    return capsule;
}
