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
        native_add_axes(tensors, view);
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

static int take_forward(prepared_call *c)
{
    c->plan = native_plan_for(&c->config, &c->in);
    if (c->plan == NULL) return -1;
    return native_take_workspace(&c->workspace, locus_forward_workspace(c->plan->attention));
}

static PyObject *run_forward(prepared_call *c)
{
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_forward(c->plan->attention, &c->in, &c->results,
                                                  c->workspace.memory, c->workspace.bytes, &error);
    Py_END_ALLOW_THREADS return finish(c, 1, status, &error);
}

PyObject *native_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    enum { BEFORE = 5 };
    prepared_call c;
    if (check_pairs("run", count, BEFORE) != 0) return NULL;
    int good = read_settings(&c, args[0], args[1], args[2]) == 0 &&
               read_pairs(&c, &c.in, args + BEFORE, count - BEFORE, "", 0) == 0 &&
               read_view(&c, &c.results.out, args[3], "out", 1) == 0;
    if (good && args[4] == Py_None)
        good = make_lse(&c) == 0;
    else if (good)
        good = read_view(&c, &c.results.lse, args[4], "lse", 1) == 0;
    if (!good || take_forward(&c) != 0) return finish(&c, 0, LOCUS_OK, NULL);
    return run_forward(&c);
}

/* ---- a whole call on torch's tensors, results included ---- */

/* How a call is made. From HEADS_SHIFT on: the heads of q where tensors of three axes are
 * [B,T,H*D], as linear maps give them; out is then [B,T,H*Dv], as they take it. */
enum {
    BY_TOKEN = 1, /* out as [B,T,H,D]       */
    WITH_LSE = 2, /* (out, lse) is returned */
    HEADS_SHIFT = 8
};

static int64_t joined_heads(long how) { return how >> HEADS_SHIFT; }

/* [B,T,H,D] as [B,H,T,D]. */
static void swap_tokens(locus_tensor *t)
{
    const int64_t extent = t->shape[1], step = t->stride[1];
    t->shape[1] = t->shape[2];
    t->stride[1] = t->stride[2];
    t->shape[2] = extent;
    t->stride[2] = step;
}

/* [B,T,H*D] as [B,H,T,D]; other numbers of axes stay. -1: an exception is set. */
static int split_heads(locus_tensor *t, int64_t heads)
{
    if (t->rank != 3) return 0;
    if (heads <= 0 || t->shape[2] % heads != 0) {
        PyErr_Format(PyExc_ValueError, "heads: found %lld, expected a divisor of %lld",
                     (long long)heads, (long long)t->shape[2]);
        return -1;
    }
    const int64_t width = t->shape[2] / heads, step = t->stride[2];
    t->rank = 4;
    t->shape[2] = heads;
    t->shape[3] = width;
    t->stride[2] = width * step;
    t->stride[3] = step;
    swap_tokens(t);
    return 0;
}

/* Heads of keys are as wide as those of queries, and there are as many of values. */
static int split_inputs(locus_tensors *in, long how)
{
    locus_tensor *q = &in->q, *k = &in->k;
    if (joined_heads(how) == 0) return 0;
    if (split_heads(q, joined_heads(how)) != 0) return -1;
    const int64_t width = q->rank == 4 && q->shape[3] > 0 ? q->shape[3] : 1;
    const int64_t key_heads = k->rank == 3 ? k->shape[2] / width : k->shape[1];
    return split_heads(k, key_heads) == 0 ? split_heads(&in->v, key_heads) : -1;
}

static int read_inputs(prepared_call *c, PyObject *const *pair, Py_ssize_t count, long how)
{
    if (read_pairs(c, &c->in, pair, count, "", 0) != 0) return -1;
    return split_inputs(&c->in, how);
}

/* [B,H,T,D] of what torch keeps as [B,T,H,D] or [B,T,H*D]. */
static int read_by_token(prepared_call *c, locus_tensor *view, PyObject *object, const char *name,
                         long how)
{
    if (read_view(c, view, object, name, 0) != 0) return -1;
    if (joined_heads(how) != 0) return split_heads(view, joined_heads(how));
    if ((how & BY_TOKEN) != 0) swap_tokens(view);
    return 0;
}

/* New memory for out. */
static PyObject *make_out(const prepared_call *c, PyObject *q, long how)
{
    const locus_tensor *in = &c->in.q;
    const int64_t width = c->in.v.shape[3], heads = in->shape[1];
    const int64_t shape[] = {in->shape[0], in->shape[2], heads, width};
    const int64_t joined[] = {in->shape[0], in->shape[2], heads * width};
    if (joined_heads(how) != 0) return native_torch_new(in->dtype, 3, joined);
    if ((how & BY_TOKEN) != 0) return native_torch_new(in->dtype, 4, shape);
    return native_torch_like(q);
}

/* c->results, in memory of torch: `made` gets out and lse, which is NULL where nobody wants it. */
static int make_results(prepared_call *c, PyObject *q, long how, PyObject *made[2])
{
    made[0] = make_out(c, q, how);
    if (made[0] == NULL || read_by_token(c, &c->results.out, made[0], "out", how) != 0) return -1;
    if ((how & WITH_LSE) == 0) return make_lse(c);
    made[1] = native_torch_new(LOCUS_F32, 3, c->in.q.shape);
    return made[1] != NULL ? read_view(c, &c->results.lse, made[1], "lse", 0) : -1;
}

static int has_results(const prepared_call *c, long how)
{
    const locus_tensor *q = &c->in.q, *v = &c->in.v;
    if (q->rank != 4 || v->rank != 4) return 0;
    return (how & BY_TOKEN) != 0 || joined_heads(how) != 0 || q->shape[3] == v->shape[3];
}

/* None: not for this way; another one says why, or copies what has to be copied. */
static PyObject *another_way(PyObject *made[2])
{
    Py_XDECREF(made[0]);
    Py_XDECREF(made[1]);
    if (PyErr_Occurred()) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear();
    }
    Py_RETURN_NONE;
}

PyObject *native_attend(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    enum { BEFORE = 3 };
    prepared_call c;
    PyObject *made[2] = {NULL, NULL};
    if (check_pairs("attend", count, BEFORE) != 0) return NULL;
    PyObject *const *pair = args + BEFORE;
    if (native_torch_plain(pair, count - BEFORE) != 1) return another_way(made);
    PyObject *threads = native_torch_threads();
    const long how = PyLong_AsLong(args[2]);
    if (threads == NULL || PyErr_Occurred()) {
        Py_XDECREF(threads);
        return NULL;
    }
    int good = read_settings(&c, args[0], threads, args[1]) == 0 &&
               read_inputs(&c, pair, count - BEFORE, how) == 0 && has_results(&c, how) &&
               make_results(&c, pair[1], how, made) == 0 && take_forward(&c) == 0;
    Py_DECREF(threads);
    PyObject *done = good ? run_forward(&c) : finish(&c, 0, LOCUS_OK, NULL);
    if (done == NULL) return another_way(made);
    Py_DECREF(done);
    if ((how & WITH_LSE) == 0) return made[0];
    PyObject *both = PyTuple_Pack(2, made[0], made[1]);
    Py_DECREF(made[0]);
    Py_DECREF(made[1]);
    return both;
}

/* ---- its gradients ---- */

static void start_backward(prepared_call *c)
{
    memset(&c->grad, 0, sizeof c->grad);
    memset(&c->dresults, 0, sizeof c->dresults);
    c->grad.size = sizeof c->grad;
    c->dresults.size = sizeof c->dresults;
}

/* A tuple of new tensors, one for each pair that needs a gradient, None for the others. */
static PyObject *make_gradients(prepared_call *c, PyObject *const *pair, Py_ssize_t count,
                                PyObject *needs)
{
    PyObject *made = PyTuple_New(count / 2);
    for (Py_ssize_t i = 0; made != NULL && i < count / 2; i++) {
        PyObject *wanted = PyTuple_GetItem(needs, i);
        const int need = wanted != NULL ? PyObject_IsTrue(wanted) : -1;
        PyObject *grad = need == 1 ? native_torch_like(pair[2 * i + 1]) : Py_None;
        if (need == 0) Py_INCREF(grad);
        if (need < 0 || grad == NULL || PyTuple_SetItem(made, i, grad) != 0) {
            Py_CLEAR(made);
        } else if (need == 1) {
            PyObject *const one[] = {pair[2 * i], grad};
            if (read_pairs(c, &c->grad, one, 2, "grad.", 0) != 0) Py_CLEAR(made);
        }
    }
    return made;
}

/* Those of q, k and v as these were split. */
static int split_gradients(prepared_call *c)
{
    if (split_heads(&c->grad.q, c->in.q.shape[1]) != 0) return -1;
    if (split_heads(&c->grad.k, c->in.k.shape[1]) != 0) return -1;
    return split_heads(&c->grad.v, c->in.v.shape[1]);
}

static PyObject *run_backward(prepared_call *c)
{
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_backward(c->plan->attention, &c->in, &c->results, &c->dresults, &c->grad, 0,
                       c->workspace.memory, c->workspace.bytes, &error);
    Py_END_ALLOW_THREADS return finish(c, 1, status, &error);
}

static int take_backward(prepared_call *c)
{
    c->plan = native_plan_for(&c->config, &c->in);
    if (c->plan == NULL) return -1;
    return native_take_workspace(&c->workspace, locus_backward_workspace(c->plan->attention));
}

PyObject *native_attend_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    enum { BEFORE = 7 };
    prepared_call c;
    if (check_pairs("attend_backward", count, BEFORE) != 0) return NULL;
    PyObject *const *pair = args + BEFORE;
    const Py_ssize_t pairs = count - BEFORE;
    const long how = PyLong_AsLong(args[2]);
    PyObject *needs = args[6], *grads = NULL, *done = NULL;
    if (PyErr_Occurred()) return NULL;
    if (!PyTuple_Check(needs) || PyTuple_Size(needs) != pairs / 2)
        return (void)check_pairs("attend_backward", 0, BEFORE), NULL;
    PyObject *threads = native_torch_threads();
    if (threads == NULL) return NULL;
    start_backward(&c);
    int good = read_settings(&c, args[0], threads, args[1]) == 0 &&
               read_inputs(&c, pair, pairs, how) == 0 &&
               read_by_token(&c, &c.results.out, args[3], "out", how) == 0 &&
               read_view(&c, &c.results.lse, args[4], "lse", 0) == 0 &&
               read_by_token(&c, &c.dresults.out, args[5], "dout", how) == 0;
    if (good) good = (grads = make_gradients(&c, pair, pairs, needs)) != NULL;
    good = good && split_gradients(&c) == 0 && take_backward(&c) == 0;
    Py_DECREF(threads);
    done = good ? run_backward(&c) : finish(&c, 0, LOCUS_OK, NULL);
    if (done == NULL) {
        Py_XDECREF(grads);
        return NULL;
    }
    Py_DECREF(done);
    return grads;
}
