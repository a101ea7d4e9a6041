/* SPDX-License-Identifier: Apache-2.0 */
/* A score split into its terms: one block of pairs of one head, in bytes for NumPy. */
#include <string.h>

#include "native.h"

typedef struct explanation {
    native_config config;
    locus_tensors in;
    native_holds holds;
    locus_explainer *explainer;
    locus_explainer_info info;
    locus_explain_block block;
    PyObject *terms, *score, *visible, *weight, *lse; /* bytearrays */
} explanation;

static void finish(explanation *e)
{
    Py_XDECREF(e->terms);
    Py_XDECREF(e->score);
    Py_XDECREF(e->visible);
    Py_XDECREF(e->weight);
    Py_XDECREF(e->lse);
    locus_explainer_free(e->explainer);
    native_let_go(&e->holds);
}

/* A range of 0 .. most; its end -1 stands for most. */
static int check_range(const char *name, int64_t first, int64_t *count, int64_t most)
{
    if (*count == -1) *count = most - first;
    if (first >= 0 && *count >= 0 && first <= most && *count <= most - first) return 0;
    native_refuse(LOCUS_ERR_ARGUMENT, "%s: found %lld and %lld more, expected them within 0..%lld",
                  name, (long long)first, (long long)*count, (long long)most);
    return -1;
}

static int prepare(explanation *e)
{
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    e->config.c.threads = native_threads(e->config.c.threads);
    Py_BEGIN_ALLOW_THREADS status =
        locus_explainer_new(&e->explainer, e->config.level, &e->config.c, &e->in, &error);
    Py_END_ALLOW_THREADS if (status != LOCUS_OK)
    {
        native_raise(status, error.text);
        return -1;
    }
    e->info.size = sizeof e->info;
    locus_explainer_describe(e->explainer, &e->info);
    if (check_range("rows", e->block.query, &e->block.queries, e->info.queries) != 0) return -1;
    return check_range("keys", e->block.key, &e->block.keys, e->info.keys);
}

static PyObject *new_bytes(int64_t elements, int64_t each)
{
    int64_t bytes = 0;
    if (__builtin_mul_overflow(elements, each, &bytes) || bytes > INT64_MAX / 2)
        return PyErr_NoMemory();
    return PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)bytes);
}

static int make_room(explanation *e)
{
    int64_t pairs = 0, parts = 0;
    const int64_t most = INT64_MAX;
    if (__builtin_mul_overflow(e->block.queries, e->block.keys, &pairs)) pairs = most;
    if (__builtin_mul_overflow(pairs, (int64_t)e->info.terms, &parts)) parts = most;
    e->terms = new_bytes(parts, sizeof(double));
    e->score = e->terms != NULL ? new_bytes(pairs, sizeof(double)) : NULL;
    e->weight = e->score != NULL ? new_bytes(pairs, sizeof(double)) : NULL;
    e->visible = e->weight != NULL ? new_bytes(pairs, 1) : NULL;
    e->lse = e->visible != NULL ? new_bytes(e->block.queries, sizeof(double)) : NULL;
    return e->lse != NULL ? 0 : -1;
}

static void *memory_of(PyObject *bytes) { return PyByteArray_AsString(bytes); }

static int compute(explanation *e)
{
    double *lse = memory_of(e->lse);
    const locus_explained explained = {
        .size = sizeof explained,
        .terms = memory_of(e->terms),
        .score = memory_of(e->score),
        .visible = memory_of(e->visible),
        .lse = lse,
        .weight = memory_of(e->weight),
    };
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_explain_lse(e->explainer, &e->block, lse, &error);
    if (status == LOCUS_OK) status = locus_explain(e->explainer, &e->block, &explained, &error);
    Py_END_ALLOW_THREADS if (status != LOCUS_OK) native_raise(status, error.text);
    return status == LOCUS_OK ? 0 : -1;
}

static PyObject *names_of(const explanation *e)
{
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < e->info.terms; i++) {
        const locus_explainer_term *term = locus_explainer_term_at(e->explainer, i);
        PyObject *item = Py_BuildValue("(ss)", term->name, term->formula);
        if (item == NULL || PyList_Append(list, item) != 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

PyObject *native_explain(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    explanation e = {.in = {.size = sizeof e.in}, .block = {.size = sizeof e.block}};
    if (native_check_count("explain", count, 4) != 0) return NULL;
    long long batch, head, query, queries, key, keys;
    const int layer =
        PyUnicode_Check(args[0]) && PyUnicode_CompareWithASCIIString(args[0], "layer") == 0;
    if (!PyTuple_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "explain: expected a tuple of six numbers");
        return NULL;
    }
    if (!PyArg_ParseTuple(args[3], "LLLLLL", &batch, &head, &query, &queries, &key, &keys))
        return NULL;
    e.block.batch = batch;
    e.block.head = head;
    e.block.query = query;
    e.block.queries = queries;
    e.block.key = key;
    e.block.keys = keys;
    PyObject *result = NULL;
    if (native_read_config(&e.config, layer ? LOCUS_LAYER : LOCUS_ATTEND, args[1]) == 0 &&
        native_read_tensors(&e.in, &e.holds, args[2], "", 0) == 0 && prepare(&e) == 0 &&
        make_room(&e) == 0 && compute(&e) == 0)
        result =
            Py_BuildValue("{sNsLsLsLsLsLsdsOsOsOsOsO}", "names", names_of(&e), "queries",
                          (long long)e.block.queries, "keys", (long long)e.block.keys,
                          "all_queries", (long long)e.info.queries, "all_keys",
                          (long long)e.info.keys, "query_offset", (long long)e.info.query_offset,
                          "scale", e.info.scale, "terms", e.terms, "score", e.score, "visible",
                          e.visible, "weight", e.weight, "lse", e.lse);
    finish(&e);
    return result;
}
