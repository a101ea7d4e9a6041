/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that speak DLPack: through the type's C table where there is one, else through
 * __dlpack__, versioned or not. */
#include "dlpack.h"

#include <stdio.h>

#include "native.h"

static void release_legacy(native_hold *hold)
{
    dlpack_legacy *managed = hold->managed;
    if (managed->deleter != NULL) managed->deleter(managed);
}

static void release_versioned(native_hold *hold)
{
    dlpack_versioned *managed = hold->managed;
    if (managed->deleter != NULL) managed->deleter(managed);
}

static void release_object(native_hold *hold) { Py_DECREF((PyObject *)hold->managed); }

/* ---- one tensor ---- */

static int read_dtype(const dlpack_tensor *t, locus_dtype *dtype, const native_role *role)
{
    static const char *const kinds[] = {
        [DLPACK_INT] = "I", [DLPACK_UINT] = "U", [DLPACK_FLOAT] = "F", [DLPACK_BFLOAT] = "BF"};
    const unsigned code = t->dtype.code, bits = t->dtype.bits;
    if (t->dtype.lanes != 1) return native_refuse_type(role, "vectors as elements");
    char found[16];
    const int known = code < sizeof kinds / sizeof *kinds && kinds[code] != NULL;
    snprintf(found, sizeof found, "%s%u", known ? kinds[code] : "", bits);
    if (native_find_dtype(code == DLPACK_BOOL && bits == 8 ? "U8" : found, dtype)) return 0;
    return native_refuse_type(role, known ? found : "another type");
}

static int check_device(const dlpack_tensor *t, const native_role *role)
{
    static const char *const names[] = {
        [2] = "CUDA", [8] = "Metal", [10] = "ROCm", [14] = "oneAPI"};
    const int type = t->device.type;
    if (type == DLPACK_CPU) return 0;
    const int known = type > 0 && type < (int)(sizeof names / sizeof *names) && names[type] != NULL;
    native_refuse(LOCUS_ERR_TENSOR,
                  "tensor %s%s: found memory of device %s (type %d), expected CPU", role->prefix,
                  role->name, known ? names[type] : "another", type);
    return -1;
}

static int read_tensor(locus_tensor *view, const dlpack_tensor *t, const native_role *role)
{
    native_layout layout = {.axes = t->axes, .shape = t->shape};
    if (check_device(t, role) != 0 || native_check_axes(t->axes, role) != 0 ||
        read_dtype(t, &layout.dtype, role) != 0)
        return -1;
    const int64_t bytes = t->dtype.bits / 8;
    int64_t dense = bytes;
    for (int i = t->axes; i-- > 0;) {
        int fits = 1;
        layout.stride[i] = dense;
        if (t->stride != NULL)
            fits = !__builtin_mul_overflow(t->stride[i], bytes, &layout.stride[i]);
        /* Where the last product does not fit, native_fill_view finds the same. */
        if (t->shape[i] > 0 && __builtin_mul_overflow(dense, t->shape[i], &dense)) dense = 0;
        if (!fits) layout.stride[i] = INT64_MIN;
    }
    if (t->data != NULL) layout.data = (char *)t->data + t->byte_offset;
    return native_fill_view(view, &layout, role);
}

static int read_versioned(locus_tensor *view, native_hold *hold, dlpack_versioned *managed,
                          const native_role *role)
{
    hold->managed = managed;
    hold->release = release_versioned;
    if (managed->version.major != DLPACK_MAJOR)
        native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found DLPack %u, expected %d", role->prefix,
                      role->name, (unsigned)managed->version.major, DLPACK_MAJOR);
    else if (role->writable && (managed->flags & DLPACK_READ_ONLY) != 0)
        native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found read-only memory, expected an output",
                      role->prefix, role->name);
    else if (read_tensor(view, &managed->tensor, role) == 0)
        return 1;
    native_release(hold);
    return -1;
}

static int read_legacy(locus_tensor *view, native_hold *hold, dlpack_legacy *managed,
                       const native_role *role)
{
    hold->managed = managed;
    hold->release = release_legacy;
    if (read_tensor(view, &managed->tensor, role) == 0) return 1;
    native_release(hold);
    return -1;
}

/* ---- the ways in ---- */

/* The object itself is kept, so nothing is allocated: what a small call would notice. */
static int read_borrowed(locus_tensor *view, native_hold *hold, PyObject *object,
                         const dlpack_exchange *exchange, const native_role *role)
{
    dlpack_tensor tensor;
    if (exchange->borrow(object, &tensor) != 0) return -1;
    if (read_tensor(view, &tensor, role) != 0) return -1;
    Py_INCREF(object);
    hold->managed = object;
    hold->release = release_object;
    return 1;
}

/* 1: *out is the type's table; 0: it has none that we know. */
static int ask_exchange(PyTypeObject *type, const dlpack_exchange **out)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    if (capsule == NULL) {
        PyErr_Clear();
        return 0;
    }
    *out = NULL;
    if (PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        *out = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    Py_DECREF(capsule); /* the type keeps it */
    return *out != NULL && (*out)->version.major == DLPACK_MAJOR && (*out)->from_object != NULL;
}

/* The same, remembered for the types that had a table last: a call brings tensors, and
 * parameters between them. A table is static by DLPack's rules, and the type is kept so that its
 * address is its. */
static int find_exchange(PyObject *object, const dlpack_exchange **out)
{
    enum { KNOWN_TYPES = 2 };
    static PyTypeObject *known[KNOWN_TYPES];
    static const dlpack_exchange *table[KNOWN_TYPES];
    static unsigned next;
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < KNOWN_TYPES; i++) {
        if (type != known[i]) continue;
        *out = table[i];
        return 1;
    }
    if (!ask_exchange(type, out)) return 0;
    const unsigned slot = next++ % KNOWN_TYPES;
    Py_INCREF((PyObject *)type);
    Py_XDECREF((PyObject *)known[slot]);
    known[slot] = type;
    table[slot] = *out;
    return 1;
}

/* object.__dlpack__(max_version=(1, 0)), or without, as producers before 1.0 know it. */
static PyObject *ask_capsule(PyObject *method)
{
    PyObject *named = Py_BuildValue("{s(ii)}", "max_version", DLPACK_MAJOR, 0);
    PyObject *none = named != NULL ? PyTuple_New(0) : NULL;
    PyObject *capsule = none != NULL ? PyObject_Call(method, none, named) : NULL;
    if (capsule == NULL && none != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = PyObject_CallNoArgs(method);
    }
    Py_XDECREF(named);
    Py_XDECREF(none);
    return capsule;
}

static int read_capsule(locus_tensor *view, native_hold *hold, PyObject *capsule,
                        const native_role *role)
{
    /* A capsule is used up by its new name, whatever comes of it. */
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        dlpack_versioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) return -1;
        return read_versioned(view, hold, managed, role);
    }
    if (PyCapsule_IsValid(capsule, "dltensor")) {
        dlpack_legacy *managed = PyCapsule_GetPointer(capsule, "dltensor");
        if (PyCapsule_SetName(capsule, "used_dltensor") != 0) return -1;
        return read_legacy(view, hold, managed, role);
    }
    native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found no fresh DLPack capsule", role->prefix,
                  role->name);
    return -1;
}

int native_view_dlpack(locus_tensor *view, native_hold *hold, PyObject *object,
                       const native_role *role)
{
    const dlpack_exchange *exchange = NULL;
    if (find_exchange(object, &exchange)) {
        /* A borrowed tensor does not say whether it may be written to. */
        if (exchange->borrow != NULL && !role->writable)
            return read_borrowed(view, hold, object, exchange, role);
        dlpack_versioned *managed = NULL;
        if (exchange->from_object(object, &managed) != 0 || managed == NULL) {
            if (!PyErr_Occurred())
                native_refuse(LOCUS_ERR_TENSOR, "tensor %s%s: found no data", role->prefix,
                              role->name);
            return -1;
        }
        return read_versioned(view, hold, managed, role);
    }
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    if (method == NULL) {
        if (PyErr_ExceptionMatches(PyExc_AttributeError)) PyErr_Clear();
        return PyErr_Occurred() ? -1 : 0;
    }
    PyObject *capsule = ask_capsule(method);
    Py_DECREF(method);
    if (capsule == NULL) return -1;
    const int status = read_capsule(view, hold, capsule, role);
    Py_DECREF(capsule);
    return status;
}
