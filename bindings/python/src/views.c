/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of other people as views: the buffer protocol, and what it shares with DLPack. */
#include <string.h>

#include "native.h"

/* An owner may run Python code when it gets its memory back, and that must not meet our
 * exception. */
void native_release(native_hold *hold)
{
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    hold->release(hold);
    PyErr_Restore(type, value, trace);
}

void native_let_go(native_holds *holds)
{
    while (holds->count > 0) native_release(&holds->hold[--holds->count]);
}

int native_refuse_type(const native_role *role, const char *found)
{
    native_refuse(
        LOCUS_ERR_TENSOR,
        "tensor %s%s: found %s, expected F32, F16 or BF16, or U8 or BOOL in a mask, or I64",
        role->prefix, role->name, found);
    return -1;
}

/* Doubles are the oracle's, which takes files. */
int native_find_dtype(const char *name, locus_dtype *dtype)
{
    for (int i = 0; locus_dtype_name((locus_dtype)i) != NULL; i++) {
        if (i == LOCUS_F64 || strcmp(locus_dtype_name((locus_dtype)i), name) != 0) continue;
        *dtype = (locus_dtype)i;
        return 1;
    }
    return 0;
}

/* Rank 0 means "absent" to the library, so a scalar must not get that far. */
int native_check_axes(int axes, const native_role *role)
{
    if (axes >= 1 && axes <= LOCUS_MAX_RANK) return 0;
    native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found %d axes, expected 1 to %d", role->prefix,
                  role->name, axes, LOCUS_MAX_RANK);
    return -1;
}

/* Bytes from the first element to the last, either way, must be a number. */
static int span_fits(const native_layout *layout)
{
    int64_t span = 0;
    for (int i = 0; i < layout->axes; i++) {
        int64_t step = 0;
        if (layout->shape[i] < 0) return 0;
        if (layout->shape[i] <= 1) continue;
        if (layout->stride[i] == INT64_MIN) return 0;
        const int64_t stride = layout->stride[i] < 0 ? -layout->stride[i] : layout->stride[i];
        if (__builtin_mul_overflow(layout->shape[i] - 1, stride, &step)) return 0;
        if (__builtin_add_overflow(span, step, &span)) return 0;
    }
    return span < INT64_MAX / 2;
}

/* Elements of a call are counted in int64_t by the library. */
static int count_fits(const native_layout *layout)
{
    int64_t elements = 1;
    for (int i = 0; i < layout->axes; i++)
        if (layout->shape[i] == 0) return 1;
    for (int i = 0; i < layout->axes; i++)
        if (__builtin_mul_overflow(elements, layout->shape[i], &elements)) return 0;
    return elements < INT64_MAX / 16;
}

int native_fill_view(locus_tensor *view, const native_layout *layout, const native_role *role)
{
    const int64_t bytes = (int64_t)locus_dtype_bytes(layout->dtype);
    const char *trouble = NULL;
    view->data = layout->data;
    view->dtype = layout->dtype;
    view->rank = (uint32_t)layout->axes;
    if (!span_fits(layout) || !count_fits(layout)) trouble = "a size that does not fit 64 bits";
    if ((uintptr_t)layout->data % (uintptr_t)bytes != 0) trouble = "data at an odd address";
    int64_t dense = 1;
    int is_empty = 0;
    for (int i = 0; i < layout->axes; i++) is_empty |= layout->shape[i] == 0;
    for (int i = layout->axes; trouble == NULL && i-- > 0;) {
        /* An axis of one element is never stepped along, whatever its stride says, and none of an
         * array without elements. */
        const int stepped = layout->shape[i] > 1 && !is_empty;
        if (stepped && layout->stride[i] % bytes != 0) trouble = "strides of parts of elements";
        view->shape[i] = layout->shape[i];
        view->stride[i] = stepped ? layout->stride[i] / bytes : dense;
        dense = stepped ? layout->shape[i] * dense : dense;
    }
    if (trouble == NULL) return 0;
    native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found %s", role->prefix, role->name, trouble);
    return -1;
}

int native_is_dense(const locus_tensor *t)
{
    int64_t stride = 1;
    for (uint32_t i = t->rank; i-- > 0; stride *= t->shape[i])
        if (t->shape[i] > 1 && t->stride[i] != stride) return 0;
    return 1;
}

/* ---- the buffer protocol ---- */

/* A struct-module format of one native element; "" for anything else. */
static const char *format_name(const char *format)
{
    static const struct {
        char code;
        const char *name;
    } names[] = {{'f', "F32"},  {'d', "F64"},  {'e', "F16"},    {'?', "BOOL"}, {'B', "U8"},
                 {'b', "I8"},   {'h', "I16"},  {'H', "U16"},    {'i', "I32"},  {'I', "U32"},
                 {'l', "I64"},  {'L', "U64"},  {'q', "I64"},    {'Q', "U64"},  {'g', "long double"},
                 {'c', "text"}, {'s', "text"}, {'O', "objects"}};
    const uint16_t one = 1;
    unsigned char first = 0;
    memcpy(&first, &one, 1);
    if (format == NULL) return "U8";
    if (*format == '@' || *format == '=' || *format == (first == 1 ? '<' : '>')) format++;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (format[0] == names[i].code && format[1] == '\0') return names[i].name;
    return "";
}

static int buffer_dtype(const Py_buffer *buffer, locus_dtype *dtype, const native_role *role)
{
    const char *name = format_name(buffer->format);
    if (!native_find_dtype(strcmp(name, "BOOL") == 0 ? "U8" : name, dtype))
        return native_refuse_type(role, *name != '\0' ? name : "another type");
    if (buffer->itemsize == (Py_ssize_t)locus_dtype_bytes(*dtype)) return 0;
    return native_refuse_type(role, "elements of another size");
}

/* NumPy exports no buffer of types that it does not know itself: bfloat16 is that of ml_dtypes, whose
 * bits a view of integers has. 1: so it was; the exception of the first try is then gone. */
static int get_bfloat16(PyObject *object, Py_buffer *buffer)
{
    PyObject *raised[3];
    PyErr_Fetch(&raised[0], &raised[1], &raised[2]);
    PyObject *dtype = PyObject_GetAttrString(object, "dtype");
    PyObject *name = dtype != NULL ? PyObject_GetAttrString(dtype, "name") : NULL;
    PyObject *bits = NULL;
    if (name != NULL && PyUnicode_Check(name) &&
        PyUnicode_CompareWithASCIIString(name, "bfloat16") == 0)
        bits = PyObject_CallMethod(object, "view", "s", "u2");
    const int found =
        bits != NULL && PyObject_GetBuffer(bits, buffer, PyBUF_STRIDES | PyBUF_FORMAT) == 0;
    Py_XDECREF(bits);
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    PyErr_Restore(raised[0], raised[1], raised[2]);
    if (found) PyErr_Clear();
    return found;
}

static void release_buffer(native_hold *hold) { PyBuffer_Release(&hold->buffer); }

static int view_buffer(locus_tensor *view, native_hold *hold, PyObject *object,
                       const native_role *role)
{
    Py_buffer *buffer = &hold->buffer;
    int is_bfloat16 = 0;
    if (PyObject_GetBuffer(object, buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
        is_bfloat16 = get_bfloat16(object, buffer);
        if (!is_bfloat16) return -1;
    }
    int64_t shape[LOCUS_MAX_RANK] = {0};
    native_layout layout = {.data = buffer->buf, .axes = buffer->ndim, .shape = shape};
    int status = native_check_axes(buffer->ndim, role);
    layout.dtype = LOCUS_BF16;
    if (status == 0 && !is_bfloat16) status = buffer_dtype(buffer, &layout.dtype, role);
    if (status == 0 && role->writable && buffer->readonly) {
        native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found read-only memory, expected an output",
                      role->prefix, role->name);
        status = -1;
    }
    for (int i = 0; status == 0 && i < buffer->ndim; i++) {
        shape[i] = buffer->shape[i];
        layout.stride[i] = buffer->strides[i];
    }
    if (status == 0) status = native_fill_view(view, &layout, role);
    if (status != 0) PyBuffer_Release(buffer);
    hold->release = release_buffer;
    return status;
}

int native_view(locus_tensor *view, native_holds *holds, PyObject *object, const native_role *role)
{
    native_hold *hold = &holds->hold[holds->count];
    if (PyObject_CheckBuffer(object)) {
        if (view_buffer(view, hold, object, role) != 0) return -1;
    } else {
        const int done = native_view_dlpack(view, hold, object, role);
        if (done < 0) return -1;
        if (done == 0) {
            PyErr_Format(PyExc_TypeError,
                         "tensor %s%s: found %R, expected an array (buffer protocol or __dlpack__)",
                         role->prefix, role->name, (PyObject *)Py_TYPE(object));
            return -1;
        }
    }
    holds->count++;
    return 0;
}
