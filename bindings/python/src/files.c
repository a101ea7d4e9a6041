/* SPDX-License-Identifier: Apache-2.0 */
/* Safetensors files as dicts and byte arrays, through the library's reader and writer. */
#include <string.h>

#include "native.h"

PyObject *native_path(PyObject *object)
{
    PyObject *bytes = NULL;
    return PyUnicode_FSConverter(object, &bytes) ? bytes : NULL;
}

static PyObject *shape_tuple(const uint64_t *shape, uint32_t rank)
{
    PyObject *tuple = PyTuple_New(rank);
    for (uint32_t i = 0; tuple != NULL && i < rank; i++) {
        PyObject *extent = PyLong_FromUnsignedLongLong(shape[i]);
        if (extent == NULL)
            Py_CLEAR(tuple);
        else if (PyTuple_SetItem(tuple, (Py_ssize_t)i, extent) != 0)
            Py_CLEAR(tuple);
    }
    return tuple;
}

/* Copy element after element in row-major order; an empty tensor has none. */
static void copy_dense(char *out, const locus_tensor *t, size_t bytes)
{
    int64_t index[LOCUS_MAX_RANK] = {0};
    for (int64_t left = locus_tensor_elements(t); left > 0; left--, out += bytes) {
        int64_t offset = 0;
        for (uint32_t i = 0; i < t->rank; i++) offset += index[i] * t->stride[i];
        memcpy(out, (const char *)t->data + offset * (int64_t)bytes, bytes);
        for (uint32_t i = t->rank; i-- > 0 && ++index[i] == t->shape[i];) index[i] = 0;
    }
}

PyObject *native_pack_tensor(const char *name, const locus_tensor *tensor)
{
    const size_t bytes = locus_dtype_bytes(tensor->dtype);
    uint64_t shape[LOCUS_MAX_RANK] = {0};
    for (uint32_t i = 0; i < tensor->rank; i++) shape[i] = (uint64_t)tensor->shape[i];
    const size_t total = (size_t)locus_tensor_elements(tensor) * bytes;
    PyObject *data = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)total);
    if (data == NULL) return NULL;
    copy_dense(PyByteArray_AsString(data), tensor, bytes);
    PyObject *tuple = shape_tuple(shape, tensor->rank);
    if (tuple == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    return Py_BuildValue("(ssNN)", name, locus_dtype_name(tensor->dtype), tuple, data);
}

/* ---- reading ---- */

static PyObject *read_metadata(const locus_file *file)
{
    PyObject *metadata = PyDict_New();
    for (size_t i = 0; metadata != NULL && i < locus_file_metadata_count(file); i++) {
        const char *key = NULL, *value = NULL;
        locus_file_metadata_at(file, i, &key, &value);
        PyObject *text = PyUnicode_FromString(value);
        if (text == NULL || PyDict_SetItemString(metadata, key, text) != 0) Py_CLEAR(metadata);
        Py_XDECREF(text);
    }
    return metadata;
}

static PyObject *read_tensor(const locus_file *file, size_t index)
{
    const locus_file_tensor *t = locus_file_tensor_at(file, index);
    const uint64_t bytes = t->end - t->begin;
    PyObject *data = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
    if (data == NULL) return NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    char *out = PyByteArray_AsString(data);
    Py_BEGIN_ALLOW_THREADS if (bytes > 0) status =
        locus_file_read(file, index, 0, bytes, out, &error);
    Py_END_ALLOW_THREADS PyObject *shape =
        status == LOCUS_OK ? shape_tuple(t->shape, t->rank) : NULL;
    if (status != LOCUS_OK) native_raise(status, error.text);
    if (shape == NULL) {
        Py_DECREF(data);
        return NULL;
    }
    return Py_BuildValue("(ssNN)", t->name, t->dtype, shape, data);
}

static PyObject *read_all(const locus_file *file)
{
    PyObject *metadata = read_metadata(file);
    PyObject *tensors = metadata != NULL ? PyList_New(0) : NULL;
    for (size_t i = 0; tensors != NULL && i < locus_file_count(file); i++) {
        PyObject *tensor = read_tensor(file, i);
        if (tensor == NULL || PyList_Append(tensors, tensor) != 0) Py_CLEAR(tensors);
        Py_XDECREF(tensor);
    }
    if (tensors == NULL) {
        Py_XDECREF(metadata);
        return NULL;
    }
    return Py_BuildValue("(NN)", metadata, tensors);
}

PyObject *native_file_read(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes = native_path(path);
    if (bytes == NULL) return NULL;
    const char *name = PyBytes_AsString(bytes);
    locus_file *file = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_file_open(&file, name, NULL, &error);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status != LOCUS_OK) {
        native_raise(status, error.text);
        return NULL;
    }
    PyObject *all = read_all(file);
    locus_file_close(file);
    return all;
}

/* ---- writing ---- */

/* Bytes of one element of what a case holds; 0: another type. */
static uint64_t type_bytes(const char *dtype)
{
    for (int i = 0; locus_dtype_name((locus_dtype)i) != NULL; i++)
        if (strcmp(locus_dtype_name((locus_dtype)i), dtype) == 0)
            return locus_dtype_bytes((locus_dtype)i);
    return 0;
}

/* The extents in `tuple`, and how many bytes they ask for. */
static int read_extents(PyObject *tuple, uint64_t *shape, uint64_t *bytes, const char *name)
{
    const Py_ssize_t rank = PyTuple_Size(tuple);
    if (rank > LOCUS_FILE_MAX_RANK) {
        native_refuse(LOCUS_ERR_TENSOR, "tensor %s: found %zd axes, expected at most %d", name,
                      rank, LOCUS_FILE_MAX_RANK);
        return -1;
    }
    for (Py_ssize_t i = 0; i < rank; i++) {
        shape[i] = PyLong_AsUnsignedLongLong(PyTuple_GetItem(tuple, i));
        if (PyErr_Occurred()) return -1;
        if (__builtin_mul_overflow(*bytes, shape[i], bytes)) *bytes = UINT64_MAX;
    }
    return 0;
}

/* Declare one (name, dtype, shape, data); `data` stays with the caller until the commit. */
static int put_tensor(locus_file_writer *writer, PyObject *item, Py_buffer *data)
{
    const char *name = NULL, *dtype = NULL;
    PyObject *extents = NULL, *object = NULL;
    uint64_t shape[LOCUS_FILE_MAX_RANK] = {0};
    if (!PyArg_ParseTuple(item, "ssO!O", &name, &dtype, &PyTuple_Type, &extents, &object))
        return -1;
    uint64_t bytes = type_bytes(dtype);
    if (bytes == 0) {
        native_refuse(LOCUS_ERR_TENSOR,
                      "tensor %s: found %s, expected F32, F64, U8, I64, F16 or BF16", name, dtype);
        return -1;
    }
    if (read_extents(extents, shape, &bytes, name) != 0) return -1;
    if (PyObject_GetBuffer(object, data, PyBUF_SIMPLE) != 0) return -1;
    /* The writer trusts that the data is as long as shape and type say. */
    if ((uint64_t)data->len != bytes) {
        native_refuse(LOCUS_ERR_TENSOR, "tensor %s: found %zd bytes, expected %llu", name,
                      data->len, (unsigned long long)bytes);
        return -1;
    }
    locus_error error = {.text = ""};
    const locus_status status = locus_file_put(writer, name, dtype, (uint32_t)PyTuple_Size(extents),
                                               shape, data->buf, &error);
    if (status != LOCUS_OK) native_raise(status, error.text);
    return status == LOCUS_OK ? 0 : -1;
}

static int put_metadata(locus_file_writer *writer, PyObject *metadata)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    while (PyDict_Next(metadata, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        const char *text = name != NULL ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
        if (text == NULL) return -1;
        locus_error error = {.text = ""};
        const locus_status status = locus_file_put_metadata(writer, name, text, &error);
        if (status == LOCUS_OK) continue;
        native_raise(status, error.text);
        return -1;
    }
    return 0;
}

static int put_all(locus_file_writer *writer, PyObject *metadata, PyObject *tensors,
                   Py_buffer *data)
{
    int status = put_metadata(writer, metadata);
    for (Py_ssize_t i = 0; status == 0 && i < PyList_Size(tensors); i++)
        status = put_tensor(writer, PyList_GetItem(tensors, i), &data[i]);
    return status;
}

static int write_file(const char *path, PyObject *metadata, PyObject *tensors, Py_buffer *data)
{
    locus_file_writer *writer = NULL;
    locus_error error = {.text = ""};
    locus_status status = locus_file_create(&writer, path, NULL, &error);
    if (status == LOCUS_OK && put_all(writer, metadata, tensors, data) != 0) {
        locus_file_abandon(writer);
        return -1;
    }
    Py_BEGIN_ALLOW_THREADS if (status == LOCUS_OK) status = locus_file_commit(writer, &error);
    Py_END_ALLOW_THREADS if (status != LOCUS_OK) native_raise(status, error.text);
    return status == LOCUS_OK ? 0 : -1;
}

PyObject *native_file_write(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("file_write", count, 3) != 0) return NULL;
    if (!PyDict_Check(args[1]) || !PyList_Check(args[2])) {
        PyErr_SetString(PyExc_TypeError, "file_write: expected a path, a dict and a list");
        return NULL;
    }
    PyObject *path = native_path(args[0]);
    if (path == NULL) return NULL;
    const Py_ssize_t tensors = PyList_Size(args[2]);
    Py_buffer *data = PyMem_Calloc((size_t)tensors + 1, sizeof *data);
    int status = -1;
    if (data == NULL)
        PyErr_NoMemory();
    else
        status = write_file(PyBytes_AsString(path), args[1], args[2], data);
    for (Py_ssize_t i = 0; data != NULL && i < tensors; i++)
        if (data[i].obj != NULL) PyBuffer_Release(&data[i]);
    PyMem_Free(data);
    Py_DECREF(path);
    if (status != 0) return NULL;
    Py_RETURN_NONE;
}
