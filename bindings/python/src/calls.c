/* SPDX-License-Identifier: Apache-2.0 */
/* The four calls: attention and layer, forward and backward. Each reads its arguments, finds
 * its plan, takes a workspace and lets other threads run while the library works. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

typedef struct call {
    native_config config;
    locus_tensors in, grad;
    locus_results results;
    locus_results dresults;
    native_plan *plan;
    native_workspace workspace;
    native_holds holds;
} call;

static void start_call(call *c)
{
    memset(&c->in, 0, sizeof c->in);
    memset(&c->results, 0, sizeof c->results);
    c->in.size = sizeof c->in;
    c->results.size = sizeof c->results;
    c->plan = NULL;
    c->workspace.memory = NULL;
    c->holds.count = 0;
}

static void finish_call(call *c)
{
    if (c->workspace.memory != NULL) native_give_workspace(c->workspace);
    native_plan_drop(c->plan);
    native_let_go(&c->holds);
}

static int read_inputs(call *c, uint32_t level, PyObject *config, PyObject *tensors)
{
    start_call(c);
    if (native_read_config(&c->config, level, config) != 0) return -1;
    return native_read_tensors(&c->in, &c->holds, tensors, "", 0);
}

static int read_one(call *c, locus_tensor *view, PyObject *object, const char *name, int writable)
{
    const native_role role = {"", name, writable};
    return native_view(view, &c->holds, object, &role);
}

static int read_results(call *c, PyObject *out, PyObject *lse, int writable)
{
    if (read_one(c, &c->results.out, out, "out", writable) != 0) return -1;
    return read_one(c, &c->results.lse, lse, "lse", writable);
}

static int read_gradients(call *c, PyObject *dout, PyObject *grads, PyObject *accumulate,
                          uint32_t *flags)
{
    memset(&c->grad, 0, sizeof c->grad);
    memset(&c->dresults, 0, sizeof c->dresults);
    c->grad.size = sizeof c->grad;
    c->dresults.size = sizeof c->dresults;
    const int add = PyObject_IsTrue(accumulate);
    if (add < 0) return -1;
    *flags = add ? LOCUS_ACCUMULATE : 0;
    if (read_one(c, &c->dresults.out, dout, "dout", 0) != 0) return -1;
    return native_read_tensors(&c->grad, &c->holds, grads, "grad.", 1);
}

static int find_plan(call *c)
{
    c->plan = native_plan_for(&c->config, &c->in);
    return c->plan != NULL ? 0 : -1;
}

/* None, or the exception of a status; the call is over either way. */
static PyObject *conclude(call *c, locus_status status, const locus_error *error)
{
    finish_call(c);
    if (status != LOCUS_OK) {
        native_raise(status, error->text);
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *give_up(call *c)
{
    finish_call(c);
    return NULL;
}

/* ---- attention ---- */

PyObject *native_forward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    call c;
    PyObject *low = count == 5 && args[4] != Py_None ? args[4] : NULL; /* may be left out */
    if (native_check_count("forward", count == 5 ? 4 : count, 4) != 0) return NULL;
    if (read_inputs(&c, LOCUS_ATTEND, args[0], args[1]) != 0 ||
        read_results(&c, args[2], args[3], 1) != 0 ||
        (low != NULL && read_one(&c, &c.results.lse_low, low, "lse_low", 1) != 0) ||
        find_plan(&c) != 0)
        return give_up(&c);
    const locus_plan *plan = c.plan->attention;
    if (native_take_workspace(&c.workspace, locus_forward_workspace(plan)) != 0) return give_up(&c);
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_forward(plan, &c.in, &c.results, c.workspace.memory, c.workspace.bytes, &error);
    Py_END_ALLOW_THREADS return conclude(&c, status, &error);
}

PyObject *native_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    call c;
    uint32_t flags = 0;
    PyObject *dlse = count >= 8 && args[7] != Py_None ? args[7] : NULL; /* may be left out */
    PyObject *low = count == 9 && args[8] != Py_None ? args[8] : NULL;
    const Py_ssize_t given = count == 8 || count == 9 ? 7 : count;
    if (native_check_count("backward", given, 7) != 0) return NULL;
    if (read_inputs(&c, LOCUS_ATTEND, args[0], args[1]) != 0 ||
        read_results(&c, args[2], args[3], 0) != 0 ||
        read_gradients(&c, args[4], args[5], args[6], &flags) != 0 ||
        (dlse != NULL && read_one(&c, &c.dresults.lse, dlse, "dlse", 0) != 0) ||
        (low != NULL && read_one(&c, &c.results.lse_low, low, "lse_low", 0) != 0) ||
        find_plan(&c) != 0)
        return give_up(&c);
    const locus_plan *plan = c.plan->attention;
    if (native_take_workspace(&c.workspace, locus_backward_workspace(plan)) != 0)
        return give_up(&c);
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_backward(plan, &c.in, &c.results, &c.dresults, &c.grad, flags, c.workspace.memory,
                       c.workspace.bytes, &error);
    Py_END_ALLOW_THREADS return conclude(&c, status, &error);
}

/* ---- layer ---- */

/* What the forward pass keeps for the backward pass, in a capsule. */
typedef struct saved_state {
    native_plan *plan;
    size_t bytes;
    void *memory;
} saved_state;

static const char saved_name[] = "locus.saved";

static void free_saved(PyObject *capsule)
{
    saved_state *saved = PyCapsule_GetPointer(capsule, saved_name);
    if (saved == NULL) return;
    native_plan_drop(saved->plan);
    free(saved->memory);
    free(saved);
}

/* A capsule with room for what `plan` saves; *out points into it. */
static PyObject *new_saved(native_plan *plan, saved_state **out)
{
    const size_t needed = locus_layer_saved_bytes(plan->layer);
    const size_t bytes = (needed / 64 + 1) * 64;
    saved_state *saved = calloc(1, sizeof *saved);
    void *memory = bytes > needed ? aligned_alloc(64, bytes) : NULL;
    PyObject *capsule = NULL;
    if (saved == NULL || memory == NULL)
        PyErr_NoMemory();
    else
        capsule = PyCapsule_New(saved, saved_name, free_saved);
    if (capsule == NULL) {
        free(memory);
        free(saved);
        return NULL;
    }
    saved->memory = memory;
    saved->bytes = bytes;
    saved->plan = plan;
    plan->references++;
    *out = saved;
    return capsule;
}

PyObject *native_layer_forward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    call c;
    saved_state *saved = NULL;
    if (native_check_count("layer_forward", count, 4) != 0) return NULL;
    if (read_inputs(&c, LOCUS_LAYER, args[0], args[1]) != 0 ||
        read_results(&c, args[2], args[3], 1) != 0 || find_plan(&c) != 0)
        return give_up(&c);
    const locus_layer *layer = c.plan->layer;
    PyObject *capsule = new_saved(c.plan, &saved);
    if (capsule == NULL) return give_up(&c);
    if (native_take_workspace(&c.workspace, locus_layer_forward_workspace(layer)) != 0) {
        Py_DECREF(capsule);
        return give_up(&c);
    }
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_layer_forward(layer, &c.in, &c.results, saved->memory, saved->bytes,
                            c.workspace.memory, c.workspace.bytes, &error);
    Py_END_ALLOW_THREADS PyObject *done = conclude(&c, status, &error);
    if (done == NULL) Py_DECREF(capsule);
    Py_XDECREF(done);
    return done != NULL ? capsule : NULL;
}

/* The state that `object` carries, if it is that of a call like this one. */
static saved_state *find_saved(call *c, PyObject *object)
{
    if (!PyCapsule_IsValid(object, saved_name)) {
        PyErr_Format(PyExc_TypeError, "saved: found %R, expected what layer_forward returned",
                     (PyObject *)Py_TYPE(object));
        return NULL;
    }
    saved_state *saved = PyCapsule_GetPointer(object, saved_name);
    if (native_plan_serves(saved->plan, &c->config, &c->in)) return saved;
    native_refuse(LOCUS_ERR_ARGUMENT,
                  "saved: found that of another configuration or of other shapes");
    return NULL;
}

PyObject *native_layer_backward(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    call c;
    uint32_t flags = 0;
    PyObject *dlse = count == 7 && args[6] != Py_None ? args[6] : NULL; /* may be left out */
    if (native_check_count("layer_backward", count == 7 ? 6 : count, 6) != 0) return NULL;
    if (read_inputs(&c, LOCUS_LAYER, args[0], args[1]) != 0 ||
        read_gradients(&c, args[3], args[4], args[5], &flags) != 0 ||
        (dlse != NULL && read_one(&c, &c.dresults.lse, dlse, "dlse", 0) != 0))
        return give_up(&c);
    saved_state *saved = find_saved(&c, args[2]);
    if (saved == NULL) return give_up(&c);
    const locus_layer *layer = saved->plan->layer;
    if (native_take_workspace(&c.workspace, locus_layer_backward_workspace(layer)) != 0)
        return give_up(&c);
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_INCREF(args[2]);
    Py_BEGIN_ALLOW_THREADS status =
        locus_layer_backward(layer, &c.in, &c.dresults, &c.grad, flags, saved->memory, saved->bytes,
                             c.workspace.memory, c.workspace.bytes, &error);
    Py_END_ALLOW_THREADS Py_DECREF(args[2]);
    return conclude(&c, status, &error);
}
