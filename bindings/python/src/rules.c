/* SPDX-License-Identifier: Apache-2.0 */
/* What a declaration says about one call, as numbers: scale, offset, table rows, rotations. Who
 * writes the formula out in other operations (locus.torch.exact) keeps no copy of the rules. */
#include <string.h>

#include "native.h"

/* ---- shapes without data ---- */

static int read_axes(locus_tensor *view, PyObject *shape, const native_role *role)
{
    const Py_ssize_t axes = PyTuple_Size(shape);
    if (native_check_axes((int)axes, role) != 0) return -1;
    view->rank = (uint32_t)axes;
    int64_t dense = 1;
    for (Py_ssize_t i = axes; i-- > 0;) {
        view->shape[i] = PyLong_AsLongLong(PyTuple_GetItem(shape, i));
        if (PyErr_Occurred()) return -1;
        view->stride[i] = dense;
        if (view->shape[i] <= 1 || !__builtin_mul_overflow(dense, view->shape[i], &dense)) continue;
        native_refuse(LOCUS_ERR_TENSOR, "tensor %s: found a size that does not fit 64 bits",
                      role->name);
        return -1;
    }
    return 0;
}

/* `dict`: a shape, or an array where the numbers matter to a plan (rows, frequencies, ...). */
static int read_shapes(locus_tensors *tensors, native_holds *holds, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = native_text(key, "tensor");
        const int index = name != NULL ? locus_tensor_index(name) : -1;
        if (name != NULL && index < 0)
            native_refuse(LOCUS_ERR_TENSOR, "tensor %s is not known", name);
        if (index < 0) return -1;
        const native_role role = {"", locus_tensor_name((size_t)index), 0};
        locus_tensor *view = locus_tensor_at(tensors, (size_t)index);
        if (PyTuple_Check(value)) {
            const int is_mask = view == &tensors->mask || view == &tensors->key_mask;
            view->dtype = is_mask ? LOCUS_U8 : LOCUS_F32;
            if (read_axes(view, value, &role) != 0) return -1;
        } else if (native_view(view, holds, value, &role) != 0) {
            return -1;
        }
        native_add_axes(tensors, view);
    }
    return 0;
}

/* ---- numbers ---- */

/* room for `count` elements of 8 bytes, and where it begins */
static PyObject *new_numbers(size_t count, void **data)
{
    PyObject *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * 8));
    if (bytes != NULL) *data = PyByteArray_AsString(bytes);
    return bytes;
}

typedef struct rules {
    const native_config *config;
    const locus_tensors *shapes;
    locus_plan_info info;
    locus_error error;
} rules;

/* (rows, bias_rows) of the distances query_offset - Tk + 1 ... query_offset + Tq - 1 */
static PyObject *rows_of(rules *r, locus_status *status)
{
    const int64_t pairs = r->info.queries + r->info.keys;
    const size_t count = pairs > 0 ? (size_t)pairs - 1 : 0;
    void *by_table = NULL, *by_bias = NULL;
    PyObject *rows = new_numbers(count, &by_table), *bias_rows = new_numbers(count, &by_bias);
    if (rows != NULL && bias_rows != NULL)
        *status = locus_call_rows(r->config->level, &r->config->c, r->shapes,
                                  r->info.query_offset - r->info.keys + 1, count, by_table, by_bias,
                                  &r->error);
    PyObject *both = rows && bias_rows ? PyTuple_Pack(2, rows, bias_rows) : NULL;
    Py_XDECREF(rows);
    Py_XDECREF(bias_rows);
    return both;
}

/* (frequency, log_gain) of every pair of columns that turns */
static PyObject *turns_of(rules *r, locus_status *status)
{
    double frequency[512], log_gain[512]; /* D is at most 1,024 */
    size_t pairs = sizeof frequency / sizeof *frequency;
    *status = locus_call_turns(r->config->level, &r->config->c, r->shapes, &pairs, frequency,
                               log_gain, &r->error);
    if (*status != LOCUS_OK) pairs = 0;
    const Py_ssize_t bytes = (Py_ssize_t)(pairs * sizeof *frequency);
    return Py_BuildValue("(NN)", PyByteArray_FromStringAndSize((char *)frequency, bytes),
                         PyByteArray_FromStringAndSize((char *)log_gain, bytes));
}

static PyObject *slopes_of(const rules *r)
{
    PyObject *list = PyList_New((Py_ssize_t)r->info.heads);
    for (int64_t h = 0; list != NULL && h < r->info.heads; h++)
        if (PyList_SetItem(list, (Py_ssize_t)h,
                           PyFloat_FromDouble(locus_alibi_slope(h, r->info.heads))) != 0)
            Py_CLEAR(list);
    return list;
}

static PyObject *describe(rules *r)
{
    locus_status rows_status = LOCUS_OK, turns_status = LOCUS_OK;
    PyObject *rows = rows_of(r, &rows_status);
    PyObject *turns = rows != NULL && rows_status == LOCUS_OK ? turns_of(r, &turns_status) : NULL;
    const locus_status status = rows_status != LOCUS_OK ? rows_status : turns_status;
    if (status != LOCUS_OK) native_raise(status, r->error.text);
    PyObject *result = NULL;
    if (status == LOCUS_OK && rows != NULL && turns != NULL)
        result = Py_BuildValue("{sdsLsOsOsN}", "scale", r->info.scale, "query_offset",
                               (long long)r->info.query_offset, "rows", rows, "turns", turns,
                               "slopes", slopes_of(r));
    Py_XDECREF(rows);
    Py_XDECREF(turns);
    return result;
}

PyObject *native_rules(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    native_config config;
    locus_tensors shapes;
    memset(&shapes, 0, sizeof shapes);
    shapes.size = sizeof shapes;
    if (native_check_count("rules", count, 2) != 0) return NULL;
    if (!PyDict_Check(args[1])) {
        PyErr_SetString(PyExc_TypeError, "shapes: expected a dict");
        return NULL;
    }
    native_holds holds = {.count = 0};
    PyObject *result = NULL;
    native_plan *plan = NULL;
    if (native_read_config(&config, LOCUS_ATTEND, args[0]) == 0 &&
        read_shapes(&shapes, &holds, args[1]) == 0)
        plan = native_plan_for(&config, &shapes);
    if (plan != NULL) {
        rules r = {.config = &config, .shapes = &shapes, .info.size = sizeof r.info};
        locus_plan_describe(plan->attention, &r.info);
        result = describe(&r);
        native_plan_drop(plan);
    }
    native_let_go(&holds);
    return result;
}

/* ---- sinusoids ---- */

PyObject *native_sinusoids(PyObject *module, PyObject *arguments)
{
    (void)module;
    static const char *const names[] = {
        [LOCUS_TABLE_PAPER] = "paper", [LOCUS_TABLE_T2T] = "t2t", [LOCUS_TABLE_HALF] = "half"};
    const char *name = NULL;
    long long width = 0, first = 0, count = 0;
    if (!PyArg_ParseTuple(arguments, "sLLL", &name, &width, &first, &count)) return NULL;
    int64_t table = 0;
    while (table <= LOCUS_TABLE_HALF && strcmp(names[table], name) != 0) table++;
    if (table > LOCUS_TABLE_HALF || width < 1 || width > 1 << 20 || count < 0 || count > 1 << 22) {
        native_refuse(LOCUS_ERR_OPTION,
                      "sinusoids: found table %s, width %lld, %lld rows, expected paper, t2t or "
                      "half, 1..1048576, 0..4194304",
                      name, width, count);
        return NULL;
    }
    void *data = NULL;
    PyObject *rows = new_numbers((size_t)(width * count), &data);
    for (long long i = 0; rows != NULL && i < count; i++)
        locus_sinusoid(table, width, first + i, (double *)data + i * width);
    return rows;
}
