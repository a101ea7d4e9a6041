/* SPDX-License-Identifier: Apache-2.0 */
/* Generation: settings by their names here or in transformers, texts with their scores, tokens as they come. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

typedef enum kind { WHOLE, REAL, FLAG, ID } kind;

/* `theirs`: what transformers calls it, where that is another name. */
typedef struct setting {
    const char *name, *theirs;
    kind kind;
    size_t offset;
} setting;

#define AT(field) offsetof(locus_generation, field)
static const setting settings[] = {
    {"beams", "num_beams", WHOLE, AT(beams)},
    {"sample", "do_sample", FLAG, AT(sample)},
    {"max_length", NULL, WHOLE, AT(max_length)},
    {"max_new_tokens", NULL, WHOLE, AT(max_new_tokens)},
    {"min_length", NULL, WHOLE, AT(min_length)},
    {"min_new_tokens", NULL, WHOLE, AT(min_new_tokens)},
    {"no_repeat_ngram", "no_repeat_ngram_size", WHOLE, AT(no_repeat_ngram)},
    {"top_k", NULL, WHOLE, AT(top_k)},
    {"top_p", NULL, REAL, AT(top_p)},
    {"temperature", NULL, REAL, AT(temperature)},
    {"length_penalty", NULL, REAL, AT(length_penalty)},
    {"repetition_penalty", NULL, REAL, AT(repetition_penalty)},
    {"decoder_start_token_id", NULL, ID, AT(start)},
    {"forced_bos_token_id", NULL, ID, AT(forced_begin)},
    {"forced_eos_token_id", NULL, ID, AT(forced_end)},
    {"renormalize_logits", NULL, FLAG, AT(renormalize)},
};

/* Lists of ids, which live as long as the call. */
typedef struct lists {
    int32_t *ends, *suppressed;
} lists;

static int is_called(const setting *s, const char *name)
{
    return strcmp(s->name, name) == 0 || (s->theirs != NULL && strcmp(s->theirs, name) == 0);
}

static int read_id(const char *name, PyObject *value, int32_t *id)
{
    const long long number = PyLong_AsLongLong(value);
    if (PyErr_Occurred()) return -1;
    if (number >= -1 && number <= INT32_MAX) {
        *id = (int32_t)number;
        return 0;
    }
    native_refuse(LOCUS_ERR_ARGUMENT, "generate: %s: found %lld, expected a token's number", name,
                  number);
    return -1;
}

/* An id, or a list of them. */
static int read_list(const char *name, PyObject *value, int32_t **ids, int64_t *count)
{
    PyObject *all = PyLong_Check(value) ? PyTuple_Pack(1, value) : PySequence_Tuple(value);
    if (all == NULL) return -1;
    const Py_ssize_t found = PyTuple_Size(all);
    free(*ids);
    *ids = malloc(((size_t)found + 1) * sizeof **ids);
    int status = *ids != NULL ? 0 : -1;
    if (status != 0) PyErr_NoMemory();
    for (Py_ssize_t i = 0; status == 0 && i < found; i++)
        status = read_id(name, PyTuple_GetItem(all, i), *ids + i);
    Py_DECREF(all);
    *count = found;
    return status;
}

static int read_stopping(locus_generation *g, PyObject *value)
{
    if (PyUnicode_Check(value)) {
        if (PyUnicode_CompareWithASCIIString(value, "never") == 0) {
            g->early_stopping = LOCUS_STOP_NEVER;
            return 0;
        }
        native_refuse(LOCUS_ERR_ARGUMENT, "generate: early_stopping: expected True, False or "
                                          "\"never\"");
        return -1;
    }
    const int truth = PyObject_IsTrue(value);
    g->early_stopping = truth == 1 ? LOCUS_STOP_EARLY : LOCUS_STOP_ESTIMATE;
    return truth < 0 ? -1 : 0;
}

static int set_field(locus_generation *g, const setting *s, PyObject *value)
{
    void *field = (char *)g + s->offset;
    if (s->kind == ID) return read_id(s->name, value, field);
    if (s->kind == FLAG) {
        const int truth = PyObject_IsTrue(value);
        *(uint32_t *)field = truth == 1;
        return truth < 0 ? -1 : 0;
    }
    if (s->kind == REAL)
        *(double *)field = PyFloat_AsDouble(value);
    else
        *(int64_t *)field = PyLong_AsLongLong(value);
    return PyErr_Occurred() ? -1 : 0;
}

static int set_one(locus_generation *g, lists *l, const char *name, PyObject *value)
{
    if (strcmp(name, "seed") == 0) {
        g->seed = PyLong_AsUnsignedLongLong(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (strcmp(name, "early_stopping") == 0) return read_stopping(g, value);
    if (strcmp(name, "eos_token_id") == 0) {
        const int status = read_list(name, value, &l->ends, &g->end_count);
        g->ends = l->ends;
        return status;
    }
    if (strcmp(name, "suppress_tokens") == 0) {
        const int status = read_list(name, value, &l->suppressed, &g->suppressed_count);
        g->suppressed = l->suppressed;
        return status;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++)
        if (is_called(&settings[i], name)) return set_field(g, &settings[i], value);
    native_refuse(LOCUS_ERR_ARGUMENT, "generate: no setting \"%s\"", name);
    return -1;
}

static int has(PyObject *dict, const char *name)
{
    PyObject *value = PyDict_GetItemString(dict, name); /* borrowed */
    return value != NULL && value != Py_None;
}

/* None: as the model says. A length of the whole goes before what a model says of new tokens. */
static int read_settings(locus_generation *g, lists *l, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    if (has(dict, "max_length")) g->max_new_tokens = 0;
    if (has(dict, "min_length")) g->min_new_tokens = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (name == NULL) return -1;
        if (value != Py_None && set_one(g, l, name, value) != 0) return -1;
    }
    return 0;
}

/* All names, for messages of those that are none. */
PyObject *native_generation_settings(PyObject *module, PyObject *unused)
{
    static const char *const others[] = {"seed", "early_stopping", "eos_token_id",
                                         "suppress_tokens"};
    (void)module, (void)unused;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list != NULL && i < sizeof settings / sizeof *settings; i++) {
        PyObject *pair = Py_BuildValue("(sz)", settings[i].name, settings[i].theirs);
        if (pair == NULL || PyList_Append(list, pair) != 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    for (size_t i = 0; list != NULL && i < sizeof others / sizeof *others; i++) {
        PyObject *pair = Py_BuildValue("(sO)", others[i], Py_None);
        if (pair == NULL || PyList_Append(list, pair) != 0) Py_CLEAR(list);
        Py_XDECREF(pair);
    }
    return list;
}

static PyObject *texts_of(const locus_generated *generated, int64_t texts)
{
    PyObject *list = PyList_New(0);
    for (int64_t t = 0; list != NULL && t < texts; t++) {
        int64_t count = 0;
        const int32_t *ids = locus_generated_ids(generated, t, &count);
        PyObject *item =
            Py_BuildValue("(y#d)", (const char *)ids, (Py_ssize_t)((size_t)count * sizeof *ids),
                          locus_generated_score(generated, t));
        if (item == NULL || PyList_Append(list, item) != 0) Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return list;
}

/* A token as it is chosen, on the thread that computes, which does not hold the GIL. */
static void tell(void *context, int64_t text, int32_t id)
{
    const PyGILState_STATE state = PyGILState_Ensure();
    PyObject *answer = PyObject_CallFunction(context, "Li", (long long)text, (int)id);
    if (answer == NULL) PyErr_WriteUnraisable(context);
    Py_XDECREF(answer);
    PyGILState_Release(state);
}

static PyObject *generate(const locus_model *model, const locus_generation *how, const int32_t *ids,
                          const int64_t *offsets, int64_t texts)
{
    locus_generated *generated = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_generate(&generated, model, how, ids, offsets, texts, &error);
    Py_END_ALLOW_THREADS if (status != LOCUS_OK)
    {
        native_raise(status, error.text);
        return NULL;
    }
    PyObject *list = texts_of(generated, texts);
    locus_generated_free(generated);
    return list;
}

/* model_generate(model, ids, offsets, settings[, told]) -> [(ids, score)]; told(text, id) for each token */
PyObject *native_model_generate(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_generate", count == 5 ? 4 : count, 4) != 0) return NULL;
    const locus_model *model = native_model_of(args[0]);
    const void *ids = NULL;
    const int64_t *offsets = NULL;
    int64_t texts = 0, tokens = 0;
    locus_generation how = {.size = sizeof how};
    if (model == NULL || native_read_ids(args[1], args[2], &ids, &offsets, &texts, &tokens) != 0)
        return NULL;
    if (!PyDict_Check(args[3])) {
        PyErr_SetString(PyExc_TypeError, "settings: expected a dict");
        return NULL;
    }
    locus_generation_init(&how, model);
    if (count == 5 && args[4] != Py_None) {
        how.token = tell;
        how.context = args[4];
    }
    lists l = {NULL, NULL};
    PyObject *list =
        read_settings(&how, &l, args[3]) == 0 ? generate(model, &how, ids, offsets, texts) : NULL;
    free(l.ends);
    free(l.suppressed);
    return list;
}
