/* SPDX-License-Identifier: Apache-2.0 */
/* Case files, in a capsule each. A run replaces the results of the one before it, so a case
 * serves one thread at a time. */
#include <stdlib.h>

#include "native.h"

typedef struct open_case {
    locus_case *loaded;
    int busy; /* 1: a thread without the GIL is at work on it */
} open_case;

static const char case_name[] = "locus.case";

static void free_case(PyObject *capsule)
{
    open_case *c = PyCapsule_GetPointer(capsule, case_name);
    if (c == NULL) return;
    locus_case_free(c->loaded);
    free(c);
}

static open_case *case_of(PyObject *capsule)
{
    open_case *c = PyCapsule_GetPointer(capsule, case_name);
    if (c == NULL || !c->busy) return c;
    PyErr_SetString(PyExc_RuntimeError, "case: another thread is running it");
    return NULL;
}

PyObject *native_case_load(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes = native_path(path);
    open_case *c = bytes != NULL ? calloc(1, sizeof *c) : NULL;
    if (bytes != NULL && c == NULL) PyErr_NoMemory();
    PyObject *capsule = c != NULL ? PyCapsule_New(c, case_name, free_case) : NULL;
    if (capsule == NULL) {
        free(c);
        Py_XDECREF(bytes);
        return NULL;
    }
    const char *name = PyBytes_AsString(bytes);
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_case_load(&c->loaded, name, NULL, &error);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status == LOCUS_OK) return capsule;
    Py_DECREF(capsule);
    native_raise(status, error.text);
    return NULL;
}

PyObject *native_case_info(PyObject *module, PyObject *capsule)
{
    (void)module;
    const open_case *c = case_of(capsule);
    if (c == NULL) return NULL;
    const locus_config *config = locus_case_config(c->loaded);
    return Py_BuildValue("{sssssO}", "kind",
                         locus_case_level(c->loaded) == LOCUS_LAYER ? "layer" : "attend", "scheme",
                         config->scheme, "grad",
                         locus_case_wants_gradients(c->loaded) ? Py_True : Py_False);
}

static PyObject *results_of(const locus_case *loaded)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < locus_case_result_count(loaded); i++) {
        PyObject *item =
            native_pack_tensor(locus_case_result_name(loaded, i), locus_case_result(loaded, i));
        if (item == NULL || PyList_Append(list, item) != 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *native_case_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("case_run", count, 4) != 0) return NULL;
    const int oracle = PyObject_IsTrue(args[1]);
    const long threads = PyLong_AsLong(args[2]);
    const char *isa = NULL;
    if (oracle < 0 || PyErr_Occurred()) return NULL;
    if (args[3] != Py_None && (isa = PyUnicode_AsUTF8AndSize(args[3], NULL)) == NULL) return NULL;
    if (threads < 0 || threads > UINT32_MAX) {
        native_refuse(LOCUS_ERR_OPTION, "threads: found %ld, expected 0..4294967295", threads);
        return NULL;
    }
    open_case *c = case_of(args[0]);
    if (c == NULL) return NULL;
    const locus_case_run_options options = {.size = sizeof options,
                                            .oracle = (uint32_t)oracle,
                                            .threads = native_threads((uint32_t)threads),
                                            .isa = isa};
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    c->busy = 1;
    Py_BEGIN_ALLOW_THREADS status = locus_case_run(c->loaded, &options, &error);
    Py_END_ALLOW_THREADS c->busy = 0;
    if (status == LOCUS_OK) return results_of(c->loaded);
    native_raise(status, error.text);
    return NULL;
}

PyObject *native_case_compare(PyObject *module, PyObject *capsule)
{
    (void)module;
    const open_case *c = case_of(capsule);
    PyObject *list = c != NULL ? PyList_New(0) : NULL;
    for (size_t i = 0; list != NULL && i < locus_case_result_count(c->loaded); i++) {
        locus_case_difference d = {.size = sizeof d};
        locus_error error = {.text = ""};
        const locus_status status = locus_case_compare(c->loaded, i, &d, &error);
        PyObject *item = NULL;
        if (status != LOCUS_OK)
            native_raise(status, error.text);
        else
            item = Py_BuildValue("{sssOsdsdsO}", "name", locus_case_result_name(c->loaded, i),
                                 "expected", d.expected ? Py_True : Py_False, "worst", d.worst,
                                 "tolerance", d.tolerance, "passed", d.passed ? Py_True : Py_False);
        if (item == NULL || PyList_Append(list, item) != 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *native_case_save(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("case_save", count, 2) != 0) return NULL;
    const open_case *c = case_of(args[0]);
    PyObject *path = c != NULL ? native_path(args[1]) : NULL;
    if (path == NULL) return NULL;
    locus_error error = {.text = ""};
    const locus_status status = locus_case_save(c->loaded, PyBytes_AsString(path), &error);
    Py_DECREF(path);
    if (status == LOCUS_OK) Py_RETURN_NONE;
    native_raise(status, error.text);
    return NULL;
}
