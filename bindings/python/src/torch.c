/* SPDX-License-Identifier: Apache-2.0 */
/* What a call on torch's tensors asks of torch. Functions and types are handed over once, by
 * locus.torch, so that a call looks nothing up: after the weights of a model have been through
 * the caches, a name in Python costs microseconds. */
#include "native.h"

enum {
    TENSOR,     /* torch.Tensor                                            */
    PARAMETER,  /* torch.nn.Parameter                                      */
    IS_NEG,     /* torch.Tensor.is_neg                                     */
    GRADIENTS,  /* torch.is_grad_enabled                                   */
    MODES,      /* torch._C._len_torch_dispatch_stack                      */
    TRANSFORM,  /* torch._C._functorch.maybe_current_level                 */
    TRACE,      /* torch._C._get_tracing_state                             */
    FORWARD_AD, /* torch.autograd.forward_ad                               */
    THREADS,    /* torch.get_num_threads                                   */
    EMPTY_LIKE, /* torch.empty_like                                        */
    EMPTY,      /* torch.empty                                             */
    KEYWORDS,   /* of EMPTY, by the name of a type: {"F32": {"dtype": ...}} */
    HANDED_OVER,
};

static PyObject *torch; /* a tuple of these; NULL: locus.torch is not imported */
static PyObject *requires_grad, *current_level;

PyObject *native_torch(PyObject *module, PyObject *given)
{
    (void)module;
    if (!PyTuple_Check(given) || PyTuple_Size(given) != HANDED_OVER) {
        PyErr_Format(PyExc_TypeError, "torch: expected a tuple of %d", (int)HANDED_OVER);
        return NULL;
    }
    if (requires_grad == NULL) requires_grad = PyUnicode_InternFromString("requires_grad");
    if (current_level == NULL) current_level = PyUnicode_InternFromString("_current_level");
    if (requires_grad == NULL || current_level == NULL) return NULL;
    PyObject *before = torch;
    Py_INCREF(given);
    torch = given;
    Py_XDECREF(before);
    Py_RETURN_NONE;
}

static PyObject *handed(int which) { return PyTuple_GetItem(torch, which); }

/* The truth of a new reference, which is given back; -1: an exception is set. */
static int truth(PyObject *answer)
{
    if (answer == NULL) return -1;
    const int true_or_not = PyObject_IsTrue(answer);
    Py_DECREF(answer);
    return true_or_not;
}

/* 1: the function returns None. */
static int gives_none(int which)
{
    PyObject *answer = PyObject_CallNoArgs(handed(which));
    if (answer == NULL) return -1;
    const int none = answer == Py_None;
    Py_DECREF(answer);
    return none;
}

/* 1: nobody watches the dispatcher, and no derivative in forward mode is asked for. */
static int unwatched(void)
{
    const int modes = truth(PyObject_CallNoArgs(handed(MODES)));
    if (modes != 0) return modes < 0 ? -1 : 0;
    int alone = gives_none(TRANSFORM);
    if (alone == 1) alone = gives_none(TRACE);
    if (alone != 1) return alone;
    PyObject *level = PyObject_GetAttr(handed(FORWARD_AD), current_level);
    if (level == NULL) return -1;
    const long number = PyLong_AsLong(level);
    Py_DECREF(level);
    if (number == -1 && PyErr_Occurred()) return -1;
    return number < 0;
}

static int is_plain(PyObject *tensor, int gradients)
{
    PyObject *type = (PyObject *)Py_TYPE(tensor);
    if (type != handed(TENSOR) && type != handed(PARAMETER)) return 0;
    if (gradients) {
        const int wanted = truth(PyObject_GetAttr(tensor, requires_grad));
        if (wanted != 0) return wanted < 0 ? -1 : 0;
    }
    const int negative = truth(PyObject_CallFunctionObjArgs(handed(IS_NEG), tensor, NULL));
    return negative < 0 ? -1 : !negative;
}

int native_torch_plain(PyObject *const *pair, Py_ssize_t count)
{
    if (torch == NULL) return 0;
    const int gradients = truth(PyObject_CallNoArgs(handed(GRADIENTS)));
    if (gradients < 0) return -1;
    for (Py_ssize_t i = 0; i + 1 < count; i += 2) {
        const int plain = is_plain(pair[i + 1], gradients);
        if (plain != 1) return plain;
    }
    return unwatched();
}

int native_torch_readable(PyObject *tensor)
{
    if (torch == NULL) return 0;
    const int plain = is_plain(tensor, 0);
    return plain == 1 ? unwatched() : plain;
}

PyObject *native_torch_threads(void) { return PyObject_CallNoArgs(handed(THREADS)); }

PyObject *native_torch_like(PyObject *tensor)
{
    return PyObject_CallFunctionObjArgs(handed(EMPTY_LIKE), tensor, NULL);
}

PyObject *native_torch_new(locus_dtype dtype, int axes, const int64_t *shape)
{
    PyObject *keywords = PyDict_GetItemString(handed(KEYWORDS), locus_dtype_name(dtype));
    PyObject *size = keywords != NULL ? PyTuple_New(axes) : NULL;
    for (int i = 0; size != NULL && i < axes; i++) {
        PyObject *extent = PyLong_FromLongLong(shape[i]);
        if (extent == NULL || PyTuple_SetItem(size, i, extent) != 0) Py_CLEAR(size);
    }
    PyObject *arguments = size != NULL ? PyTuple_Pack(1, size) : NULL;
    Py_XDECREF(size);
    if (arguments == NULL) {
        if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "torch: no such type");
        return NULL;
    }
    PyObject *tensor = PyObject_Call(handed(EMPTY), arguments, keywords);
    Py_DECREF(arguments);
    return tensor;
}
