/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a mask hides anything, read in place. Every layer of a model gets the same mask by key; to
 * read its few numbers anew costs less than to remember them in a way that notices every change. */
#include <string.h>

#include "native.h"

/* Longer masks are for those who remember what they read. */
enum { MOST_READ = 32768 };

/* Seen: added numbers that are 0, of either sign; booleans that are true. */
static int sees(const locus_tensor *t, int64_t at)
{
    uint32_t wide;
    uint16_t narrow;
    switch (t->dtype) {
    case LOCUS_F32:
        memcpy(&wide, (const float *)t->data + at, sizeof wide);
        return (wide & 0x7FFFFFFFu) == 0;
    case LOCUS_F16:
    case LOCUS_BF16:
        memcpy(&narrow, (const uint16_t *)t->data + at, sizeof narrow);
        return (narrow & 0x7FFFu) == 0;
    case LOCUS_U8: return ((const uint8_t *)t->data)[at] != 0;
    default: return 0;
    }
}

/* Along an axis of stride 0 everything is the same. */
static int64_t different(const locus_tensor *t, uint32_t axis)
{
    return t->stride[axis] == 0 && t->shape[axis] > 1 ? 1 : t->shape[axis];
}

static int is_short(const locus_tensor *t)
{
    int64_t elements = 1;
    for (uint32_t i = 0; i < t->rank && elements <= MOST_READ; i++) elements *= different(t, i);
    return elements <= MOST_READ;
}

/* Everything along the axes from `axis` on. */
static int sees_all(const locus_tensor *t, uint32_t axis, int64_t first)
{
    if (axis == t->rank) return sees(t, first);
    for (int64_t i = 0; i < different(t, axis); i++)
        if (!sees_all(t, axis + 1, first + i * t->stride[axis])) return 0;
    return 1;
}

PyObject *native_hides_nothing(PyObject *module, PyObject *mask)
{
    (void)module;
    const int readable = native_torch_readable(mask);
    if (readable != 1) return readable == 0 ? Py_NewRef(Py_False) : NULL;
    locus_tensor view;
    native_holds holds;
    holds.count = 0;
    memset(&view, 0, sizeof view);
    const native_role role = {"", "mask", 0};
    if (native_view(&view, &holds, mask, &role) != 0) {
        if (!PyErr_ExceptionMatches(PyExc_Exception)) return NULL;
        PyErr_Clear(); /* doubles, or memory elsewhere: not for us */
        return Py_NewRef(Py_False);
    }
    const int all = is_short(&view) && sees_all(&view, 0, 0);
    native_let_go(&holds);
    return Py_NewRef(all ? Py_True : Py_False);
}
