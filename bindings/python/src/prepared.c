/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of attention whose configuration was read before: what a framework calls many times
 * with the same settings. The settings are a capsule, tensors come in order, not by name:
 * (index, tensor, index, tensor, ...) with the indices of locus_tensor_index. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const char prepared_name[] = "locus.prepared";

static void free_prepared(PyObject *capsule) { free(PyCapsule_GetPointer(capsule, prepared_name)); }

PyObject *native_prepare(PyObject *module, PyObject *dict)
{
    (void)module;
    native_config *config = malloc(sizeof *config);
    if (config == NULL) return PyErr_NoMemory();
    PyObject *capsule = NULL;
    if (native_read_config(config, LOCUS_ATTEND, dict) == 0)
        capsule = PyCapsule_New(config, prepared_name, free_prepared);
    if (capsule == NULL) free(config);
    return capsule;
}

PyObject *native_tensor_index(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = native_text(name, "tensor");
    return text != NULL ? PyLong_FromLong(locus_tensor_index(text)) : NULL;
}

/* ---- one call ---- */

typedef struct prepared_call {
    native_config config;
    locus_tensors in, grad;
    locus_results results, dresults;
    native_plan *plan;
    native_workspace workspace, lse;
    native_holds holds;
} prepared_call;

static int read_settings(prepared_call *c, PyObject *capsule, PyObject *threads, PyObject *seed)
{
    c->plan = NULL;
    c->workspace.memory = c->lse.memory = NULL;
    c->holds.count = 0;
    memset(&c->in, 0, sizeof c->in);
    memset(&c->results, 0, sizeof c->results);
    c->in.size = sizeof c->in;
    c->results.size = sizeof c->results;
    const native_config *config = PyCapsule_IsValid(capsule, prepared_name)
                                      ? PyCapsule_GetPointer(capsule, prepared_name)
                                      : NULL;
    if (config == NULL) {
        PyErr_SetString(PyExc_TypeError, "prepared: expected what prepare returned");
        return -1;
    }
    memcpy(&c->config, config, sizeof *config);
    /* Text of the configuration lies in itself. */
    if (config->c.isa != NULL) c->config.c.isa = c->config.isa;
    if (config->c.path != NULL) c->config.c.path = c->config.path;
    c->config.c.threads = (uint32_t)PyLong_AsUnsignedLong(threads);
    c->config.c.dropout_seed = PyLong_AsUnsignedLongLong(seed);
    return PyErr_Occurred() ? -1 : 0;
}

static int read_pairs(prepared_call *c, locus_tensors *tensors, PyObject *const *pair,
                      Py_ssize_t count, const char *prefix, int writable)
{
    for (Py_ssize_t i = 0; i + 1 < count; i += 2) {
        const size_t index = PyLong_AsSize_t(pair[i]);
        if (PyErr_Occurred()) return -1;
        locus_tensor *view = index < LOCUS_TENSOR_COUNT ? locus_tensor_at(tensors, index) : NULL;
        if (view == NULL || view->rank != 0) {
            PyErr_SetString(PyExc_TypeError, "tensors: found an index twice, or beyond the last");
            return -1;
        }
        const native_role role = {prefix, locus_tensor_name(index), writable};
        if (native_view(view, &c->holds, pair[i + 1], &role) != 0) return -1;
    }
    return 0;
}

static int read_view(prepared_call *c, locus_tensor *view, PyObject *object, const char *name,
                     int writable)
{
    const native_role role = {"", name, writable};
    return native_view(view, &c->holds, object, &role);
}

/* Where nobody wants lse it is written to memory of ours. */
static int make_lse(prepared_call *c)
{
    const locus_tensor *q = &c->in.q;
    int64_t rows = 1;
    for (uint32_t i = 0; i + 1 < q->rank; i++) rows *= q->shape[i]; /* native_view checked it */
    if (native_take_workspace(&c->lse, (size_t)rows * sizeof(float)) != 0) return -1;
    c->results.lse = locus_view(c->lse.memory, LOCUS_F32, 3, q->shape);
    return 0;
}

static PyObject *finish(prepared_call *c, int good, locus_status status, const locus_error *error)
{
    if (c->workspace.memory != NULL) native_give_workspace(c->workspace);
    if (c->lse.memory != NULL) native_give_workspace(c->lse);
    native_plan_drop(c->plan);
    native_let_go(&c->holds);
    if (!good) return NULL;
    if (status == LOCUS_OK) Py_RETURN_NONE;
    native_raise(status, error->text);
    return NULL;
}

static int check_pairs(const char *function, Py_ssize_t count, Py_ssize_t before)
{
    if (count >= before + 6 && (count - before) % 2 == 0) return 0;
    PyErr_Format(PyExc_TypeError, "%s: found %zd arguments, expected %zd and pairs", function,
                 count, before);
    return -1;
}

PyObject *native_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    enum { BEFORE = 5 };
    prepared_call c;
    locus_error error = {.text = ""};
    if (check_pairs("run", count, BEFORE) != 0) return NULL;
    int good = read_settings(&c, args[0], args[1], args[2]) == 0 &&
               read_pairs(&c, &c.in, args + BEFORE, count - BEFORE, "", 0) == 0 &&
               read_view(&c, &c.results.out, args[3], "out", 1) == 0;
    if (good && args[4] == Py_None)
        good = make_lse(&c) == 0;
    else if (good)
        good = read_view(&c, &c.results.lse, args[4], "lse", 1) == 0;
    if (good) good = (c.plan = native_plan_for(&c.config, &c.in)) != NULL;
    if (good) {
        const size_t bytes = locus_forward_workspace(c.plan->attention);
        good = native_take_workspace(&c.workspace, bytes) == 0;
    }
    if (!good) return finish(&c, 0, LOCUS_OK, &error);
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_forward(c.plan->attention, &c.in, &c.results,
                                                  c.workspace.memory, c.workspace.bytes, &error);
    Py_END_ALLOW_THREADS return finish(&c, 1, status, &error);
}

PyObject *native_run_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    enum { BEFORE = 7 };
    prepared_call c;
    locus_error error = {.text = ""};
    if (check_pairs("run_backward", count, BEFORE) != 0) return NULL;
    memset(&c.grad, 0, sizeof c.grad);
    memset(&c.dresults, 0, sizeof c.dresults);
    c.grad.size = sizeof c.grad;
    c.dresults.size = sizeof c.dresults;
    /* args[6] says how many of the pairs are inputs; gradients follow. */
    const Py_ssize_t inputs = PyLong_AsSsize_t(args[6]);
    if (PyErr_Occurred()) return NULL;
    const Py_ssize_t pairs = count - BEFORE;
    if (inputs < 0 || inputs > pairs / 2) return (void)check_pairs("run_backward", 0, BEFORE), NULL;
    PyObject *const *pair = args + BEFORE;
    int good = read_settings(&c, args[0], args[1], args[2]) == 0 &&
               read_pairs(&c, &c.in, pair, 2 * inputs, "", 0) == 0 &&
               read_view(&c, &c.results.out, args[3], "out", 0) == 0 &&
               read_view(&c, &c.results.lse, args[4], "lse", 0) == 0 &&
               read_view(&c, &c.dresults.out, args[5], "dout", 0) == 0 &&
               read_pairs(&c, &c.grad, pair + 2 * inputs, pairs - 2 * inputs, "grad.", 1) == 0;
    if (good) good = (c.plan = native_plan_for(&c.config, &c.in)) != NULL;
    if (good) {
        const size_t bytes = locus_backward_workspace(c.plan->attention);
        good = native_take_workspace(&c.workspace, bytes) == 0;
    }
    if (!good) return finish(&c, 0, LOCUS_OK, &error);
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_backward(c.plan->attention, &c.in, &c.results, &c.dresults, &c.grad, 0,
                       c.workspace.memory, c.workspace.bytes, &error);
    Py_END_ALLOW_THREADS return finish(&c, 1, status, &error);
}
