/* SPDX-License-Identifier: Apache-2.0 */
/* Tokenizers, in a capsule each. They never change, so any number of threads may use one. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const char tokenizer_name[] = "locus.tokenizer";

static void free_tokenizer(PyObject *capsule)
{
    locus_tokenizer_close(PyCapsule_GetPointer(capsule, tokenizer_name));
}

static const locus_tokenizer *tokenizer_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, tokenizer_name);
}

PyObject *native_tokenizer_open(PyObject *module, PyObject *path)
{
    (void)module;
    PyObject *bytes = native_path(path);
    if (bytes == NULL) return NULL;
    const char *name = PyBytes_AsString(bytes);
    locus_tokenizer *tokenizer = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_tokenizer_open(&tokenizer, name, NULL, &error);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status != LOCUS_OK) {
        native_raise(status, error.text);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(tokenizer, tokenizer_name, free_tokenizer);
    if (capsule == NULL) locus_tokenizer_close(tokenizer);
    return capsule;
}

static PyObject *text_of(const char *text, size_t bytes)
{
    return PyUnicode_DecodeUTF8(text, (Py_ssize_t)bytes, "replace");
}

PyObject *native_tokenizer_info(PyObject *module, PyObject *capsule)
{
    (void)module;
    const locus_tokenizer *tokenizer = tokenizer_of(capsule);
    locus_tokenizer_info info = {.size = sizeof info};
    if (tokenizer == NULL || locus_tokenizer_describe(tokenizer, &info, NULL) != LOCUS_OK)
        return NULL;
    PyObject *parts = PyDict_New();
    static const char *const names[] = {"bos", "eos", "unk", "sep", "pad", "cls", "mask"};
    for (size_t i = 0; parts != NULL && i < sizeof names / sizeof *names; i++) {
        const int64_t id = locus_tokenizer_special(tokenizer, names[i]);
        PyObject *value = id < 0 ? Py_NewRef(Py_None) : PyLong_FromLongLong(id);
        if (value == NULL || PyDict_SetItemString(parts, names[i], value) != 0) Py_CLEAR(parts);
        Py_XDECREF(value);
    }
    if (parts == NULL) return NULL;
    return Py_BuildValue("{sssssssnsOsN}", "kind", info.kind, "source", info.source, "rules",
                         info.rules, "vocabulary", (Py_ssize_t)info.vocabulary, "has_types",
                         info.has_types ? Py_True : Py_False, "special", parts);
}

PyObject *native_tokenizer_token(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("tokenizer_token", count, 2) != 0) return NULL;
    const locus_tokenizer *tokenizer = tokenizer_of(args[0]);
    const unsigned long id = PyLong_AsUnsignedLong(args[1]);
    if (tokenizer == NULL || PyErr_Occurred()) return NULL;
    size_t bytes = 0;
    const char *token =
        id > UINT32_MAX ? NULL : locus_tokenizer_token(tokenizer, (uint32_t)id, &bytes);
    if (token == NULL) Py_RETURN_NONE;
    return text_of(token, bytes);
}

PyObject *native_tokenizer_find(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("tokenizer_find", count, 2) != 0) return NULL;
    const locus_tokenizer *tokenizer = tokenizer_of(args[0]);
    Py_ssize_t bytes = 0;
    const char *token = tokenizer == NULL ? NULL : PyUnicode_AsUTF8AndSize(args[1], &bytes);
    if (token == NULL) return NULL;
    const int64_t id = locus_tokenizer_find(tokenizer, token, (size_t)bytes);
    if (id < 0) Py_RETURN_NONE;
    return PyLong_FromLongLong(id);
}

/* ---- encoding ---- */

static PyObject *numbers_of(const uint32_t *numbers, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *number = PyLong_FromUnsignedLong(numbers[i]);
        if (number == NULL || PyList_SetItem(list, (Py_ssize_t)i, number) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *offsets_of(const locus_offset *offsets, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *pair = Py_BuildValue("(KK)", (unsigned long long)offsets[i].begin,
                                       (unsigned long long)offsets[i].end);
        if (pair == NULL || PyList_SetItem(list, (Py_ssize_t)i, pair) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *result_of(const locus_encoding *encoding)
{
    const size_t count = locus_encoding_count(encoding);
    PyObject *ids = numbers_of(locus_encoding_ids(encoding), count);
    PyObject *types = ids == NULL ? NULL : numbers_of(locus_encoding_types(encoding), count);
    PyObject *offsets = types == NULL ? NULL : offsets_of(locus_encoding_offsets(encoding), count);
    if (offsets == NULL) {
        Py_XDECREF(ids);
        Py_XDECREF(types);
        return NULL;
    }
    return Py_BuildValue("(NNNy#)", ids, types, offsets,
                         (const char *)locus_encoding_segments(encoding), (Py_ssize_t)count);
}

/* tokenizer_encode(tokenizer, text, pair, plain, truncate): bytes in, lists out. */
PyObject *native_tokenizer_encode(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("tokenizer_encode", count, 5) != 0) return NULL;
    const locus_tokenizer *tokenizer = tokenizer_of(args[0]);
    char *text = NULL, *pair = NULL;
    Py_ssize_t bytes = 0, pair_bytes = 0;
    if (tokenizer == NULL || PyBytes_AsStringAndSize(args[1], &text, &bytes) != 0) return NULL;
    if (args[2] != Py_None && PyBytes_AsStringAndSize(args[2], &pair, &pair_bytes) != 0)
        return NULL;
    const int plain = PyObject_IsTrue(args[3]);
    const unsigned long truncate = PyLong_AsUnsignedLong(args[4]);
    if (plain < 0 || PyErr_Occurred()) return NULL;
    const locus_text_input input = {.size = sizeof input,
                                    .text = text,
                                    .bytes = (size_t)bytes,
                                    .pair = pair,
                                    .pair_bytes = (size_t)pair_bytes,
                                    .plain = plain,
                                    .truncate =
                                        truncate > UINT32_MAX ? UINT32_MAX : (uint32_t)truncate};
    locus_encoding *encoding = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_encoding_new(&encoding, NULL, &error);
    if (status == LOCUS_OK) status = locus_tokenizer_encode(tokenizer, &input, encoding, &error);
    Py_END_ALLOW_THREADS PyObject *result = NULL;
    if (status == LOCUS_OK)
        result = result_of(encoding);
    else
        native_raise(status, error.text);
    locus_encoding_free(encoding);
    return result;
}

/* ---- decoding ---- */

static uint32_t *ids_of(PyObject *list, size_t *count)
{
    const Py_ssize_t length = PyList_Size(list);
    if (length < 0) return NULL;
    uint32_t *ids = calloc((size_t)length + 1, sizeof *ids);
    if (ids == NULL) PyErr_NoMemory();
    for (Py_ssize_t i = 0; ids != NULL && i < length; i++) {
        const unsigned long id = PyLong_AsUnsignedLong(PyList_GetItem(list, i));
        if (PyErr_Occurred()) {
            free(ids);
            return NULL;
        }
        ids[i] = id > UINT32_MAX ? UINT32_MAX : (uint32_t)id;
    }
    *count = (size_t)length;
    return ids;
}

PyObject *native_tokenizer_decode(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("tokenizer_decode", count, 3) != 0) return NULL;
    const locus_tokenizer *tokenizer = tokenizer_of(args[0]);
    const int skip = PyObject_IsTrue(args[2]);
    size_t id_count = 0, bytes = 0;
    uint32_t *ids = tokenizer == NULL || skip < 0 ? NULL : ids_of(args[1], &id_count);
    if (ids == NULL) return NULL;
    locus_error error = {.text = ""};
    locus_status status =
        locus_tokenizer_decode(tokenizer, ids, id_count, skip, NULL, 0, &bytes, &error);
    char *text = status == LOCUS_OK ? calloc(bytes + 1, 1) : NULL;
    if (text != NULL)
        status =
            locus_tokenizer_decode(tokenizer, ids, id_count, skip, text, bytes, &bytes, &error);
    PyObject *result = NULL;
    if (status != LOCUS_OK)
        native_raise(status, error.text);
    else if (text == NULL)
        PyErr_NoMemory();
    else
        result = text_of(text, bytes);
    free(text);
    free(ids);
    return result;
}
