/* SPDX-License-Identifier: Apache-2.0 */
/* Trained models, in a capsule each. They never change, so any number of threads may use one. Arrays
 * come and go as bytes; _model.py gives them shapes. */
#include <stdlib.h>
#include <string.h>

#include "native.h"

static const char model_name[] = "locus.model";

static void free_model(PyObject *capsule)
{
    locus_model_free(PyCapsule_GetPointer(capsule, model_name));
}

static const locus_model *model_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, model_name);
}

PyObject *native_model_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_open", count, 2) != 0) return NULL;
    const long threads = PyLong_AsLong(args[1]);
    PyObject *bytes = PyErr_Occurred() ? NULL : native_path(args[0]);
    if (bytes == NULL) return NULL;
    const locus_model_config config = {.size = sizeof config,
                                       .threads = threads > 0 ? (uint32_t)threads : 0};
    const char *name = PyBytes_AsString(bytes);
    locus_model *model = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = locus_model_open(&model, name, &config, &error);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status != LOCUS_OK) {
        native_raise(status, error.text);
        return NULL;
    }
    PyObject *capsule = PyCapsule_New(model, model_name, free_model);
    if (capsule == NULL) locus_model_free(model);
    return capsule;
}

/* ---- what it is ---- */

static PyObject *labels_of(const locus_model *model, int64_t count)
{
    PyObject *list = PyList_New(0);
    for (int64_t i = 0; list != NULL && i < count; i++) {
        PyObject *label = PyUnicode_FromString(locus_model_label(model, i));
        if (label == NULL || PyList_Append(list, label) != 0) Py_CLEAR(list);
        Py_XDECREF(label);
    }
    return list;
}

PyObject *native_model_info(PyObject *module, PyObject *capsule)
{
    (void)module;
    const locus_model *model = model_of(capsule);
    locus_model_info info = {.size = sizeof info};
    if (model == NULL) return NULL;
    locus_model_describe(model, &info);
    PyObject *labels = labels_of(model, info.labels);
    if (labels == NULL) return NULL;
    const char *head = "";
    if (info.head == LOCUS_MODEL_CLASSIFY) head = "classify";
    if (info.head == LOCUS_MODEL_TAG) head = "tokens";
    if (info.head == LOCUS_MODEL_FILL) head = "fill";
    if (info.head == LOCUS_MODEL_GENERATE) head = "generate";
    return Py_BuildValue("{sssssssLsLsLsLsLsLsLsLsLsLsLsLsLsLsisisssN}", "family", info.family,
                         "positions", info.positions, "scheme", info.scheme, "width",
                         (long long)info.width, "last_width", (long long)info.last_width, "layers",
                         (long long)info.layers, "heads", (long long)info.heads, "head_dim",
                         (long long)info.head_dim, "feed_forward", (long long)info.feed_forward,
                         "vocabulary", (long long)info.vocabulary, "types", (long long)info.types,
                         "most_tokens", (long long)info.most_tokens, "parameters",
                         (long long)info.parameters, "bytes", (long long)info.bytes,
                         "decoder_layers", (long long)info.decoder_layers, "next_tokens",
                         (long long)info.next_tokens, "qkv_width", (long long)info.qkv_width,
                         "modules", (int)info.modules, "multi_label", (int)info.multi_label, "head",
                         head, "labels", labels);
}

/* ---- running ---- */

typedef struct run {
    const locus_model *model;
    locus_model_info info;
    const int64_t *offsets;
    int64_t texts, tokens;
    locus_model_batch batch;
    PyObject *hidden, *logits, *embedding, *qkv; /* bytearrays; NULL: not wanted */
    float **layers;                              /* pointers into hidden, then into qkv */
    locus_model_results results;
} run;

/* `object` as `size` bytes each; -1: an exception is set. */
static int64_t array_of(PyObject *object, const void **data, size_t size)
{
    char *bytes = NULL;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(object, &bytes, &length) != 0) return -1;
    *data = bytes;
    return (int64_t)((size_t)length / size);
}

static int read_arrays(run *r, PyObject *const *args)
{
    const void *ids = NULL, *types = NULL, *offsets = NULL, *rows = NULL;
    const int64_t tokens = array_of(args[1], &ids, sizeof(int32_t));
    const int64_t marks = tokens < 0 ? -1 : array_of(args[3], &offsets, sizeof(int64_t));
    if (marks < 0) return -1;
    if (args[2] != Py_None) {
        const int64_t found = array_of(args[2], &types, sizeof(int32_t));
        if (found < 0) return -1;
        if (found != tokens) {
            native_refuse(LOCUS_ERR_ARGUMENT, "types: found %lld numbers, expected %lld",
                          (long long)found, (long long)tokens);
            return -1;
        }
    }
    if (args[4] != Py_None) {
        r->batch.row_count = array_of(args[4], &rows, sizeof(int32_t));
        if (r->batch.row_count < 0) return -1;
    }
    r->offsets = offsets;
    r->texts = marks - 1;
    if (r->texts < 0 || r->offsets[r->texts] != tokens) {
        native_refuse(LOCUS_ERR_ARGUMENT, "offsets: the last one is not the number of ids");
        return -1;
    }
    r->tokens = tokens;
    r->batch.ids = ids;
    r->batch.types = types;
    r->batch.rows = rows;
    return 0;
}

static int64_t logit_count(const run *r)
{
    const int64_t rows = r->batch.rows != NULL ? r->batch.row_count : r->tokens;
    switch (r->info.head) {
    case LOCUS_MODEL_CLASSIFY: return r->texts * r->info.labels;
    case LOCUS_MODEL_TAG: return r->tokens * r->info.labels;
    case LOCUS_MODEL_FILL: return rows * r->info.vocabulary;
    case LOCUS_MODEL_GENERATE: return r->tokens * r->info.next_tokens;
    default: return 0;
    }
}

/* Room for `count` floats where `wanted`; -1: an exception is set. */
static int make(PyObject **bytes, int wanted, int64_t count)
{
    if (!wanted) return 0;
    if (count > INT64_MAX / (int64_t)sizeof(float)) {
        PyErr_NoMemory();
        return -1;
    }
    *bytes = PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * (int64_t)sizeof(float)));
    return *bytes != NULL ? 0 : -1;
}

static float *floats_of(PyObject *bytes)
{
    return bytes != NULL ? (float *)(void *)PyByteArray_AsString(bytes) : NULL;
}

/* what: 1 hidden, 2 logits, 4 embedding, 8 qkv. */
static int make_room(run *r, long what)
{
    const int64_t L = r->info.layers, state = r->tokens * r->info.width;
    const int64_t row = r->tokens * r->info.qkv_width;
    if (make(&r->hidden, (what & 1) != 0, L * state + r->tokens * r->info.last_width) != 0 ||
        make(&r->logits, (what & 2) != 0, logit_count(r)) != 0 ||
        make(&r->embedding, (what & 4) != 0, r->texts * r->info.last_width) != 0 ||
        make(&r->qkv, (what & 8) != 0, L * row) != 0)
        return -1;
    r->layers = calloc((size_t)(2 * L + 1), sizeof *r->layers);
    if (r->layers == NULL) {
        PyErr_NoMemory();
        return -1;
    }
    for (int64_t l = 0; r->hidden != NULL && l <= L; l++)
        r->layers[l] = floats_of(r->hidden) + l * state;
    for (int64_t l = 0; r->qkv != NULL && l < L; l++)
        r->layers[L + 1 + l] = floats_of(r->qkv) + l * row;
    r->results = (locus_model_results){.size = sizeof r->results,
                                       .hidden = r->hidden != NULL ? r->layers : NULL,
                                       .logits = floats_of(r->logits),
                                       .embedding = floats_of(r->embedding),
                                       .qkv = r->qkv != NULL ? r->layers + L + 1 : NULL};
    return 0;
}

static locus_status compute(const run *r, locus_error *error)
{
    locus_model_pass *pass = NULL;
    locus_status status = locus_model_pass_new(&pass, r->model, r->offsets, r->texts, error);
    if (status != LOCUS_OK) return status;
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes + 1);
    status = workspace != NULL
                 ? locus_model_forward(pass, &r->batch, &r->results, workspace, bytes, error)
                 : LOCUS_ERR_MEMORY;
    free(workspace);
    locus_model_pass_free(pass);
    return status;
}

static PyObject *given(PyObject *bytes) { return bytes != NULL ? bytes : Py_None; }

/* model_run(model, ids, types, offsets, rows, what) */
PyObject *native_model_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_run", count, 6) != 0) return NULL;
    run r = {.model = model_of(args[0]),
             .info = {.size = sizeof r.info},
             .batch = {.size = sizeof r.batch}};
    const long what = PyLong_AsLong(args[5]);
    if (r.model == NULL || PyErr_Occurred()) return NULL;
    locus_model_describe(r.model, &r.info);
    PyObject *answer = NULL;
    if (read_arrays(&r, args) == 0 && make_room(&r, what) == 0) {
        locus_error error = {.text = "out of memory"};
        locus_status status = LOCUS_OK;
        Py_BEGIN_ALLOW_THREADS status = compute(&r, &error);
        Py_END_ALLOW_THREADS if (status == LOCUS_OK) answer =
            Py_BuildValue("(OOOO)", given(r.hidden), given(r.logits), given(r.embedding),
                          given(r.qkv));
        else native_raise(status, error.text);
    }
    free(r.layers);
    Py_XDECREF(r.hidden);
    Py_XDECREF(r.logits);
    Py_XDECREF(r.embedding);
    Py_XDECREF(r.qkv);
    return answer;
}

/* ---- the attention of a layer ---- */

/* A dense copy: (bytes, shape). */
static PyObject *copy_of(const locus_tensor *t)
{
    int64_t count = 1, index[LOCUS_MAX_RANK] = {0};
    PyObject *shape = PyTuple_New((Py_ssize_t)t->rank);
    const int rank = (int)t->rank;
    for (int a = 0; shape != NULL && a < rank; a++) {
        count *= t->shape[a];
        PyTuple_SetItem(shape, a, PyLong_FromLongLong(t->shape[a]));
    }
    PyObject *bytes =
        shape != NULL
            ? PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * (int64_t)sizeof(float)))
            : NULL;
    if (bytes == NULL) {
        Py_XDECREF(shape);
        return NULL;
    }
    float *to = floats_of(bytes);
    for (int64_t i = 0; i < count; i++) {
        int64_t at = 0;
        for (int a = 0; a < rank; a++) at += index[a] * t->stride[a];
        to[i] = ((const float *)t->data)[at];
        for (int a = rank - 1; a >= 0 && ++index[a] == t->shape[a]; a--) index[a] = 0;
    }
    return bytes != NULL ? Py_BuildValue("(NN)", bytes, shape) : NULL;
}

static PyObject *tensors_of(locus_tensors *in)
{
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && locus_tensor_name(i) != NULL; i++) {
        const locus_tensor *t = locus_tensor_named(in, locus_tensor_name(i));
        if (t == NULL || t->rank == 0 || t->dtype != LOCUS_F32) continue;
        PyObject *copy = copy_of(t);
        if (copy == NULL || PyDict_SetItemString(dict, locus_tensor_name(i), copy) != 0)
            Py_CLEAR(dict);
        Py_XDECREF(copy);
    }
    return dict;
}

static PyObject *options_of(const locus_config *config)
{
    PyObject *dict = PyDict_New();
    const locus_scheme_info *scheme = locus_scheme_find(config->scheme);
    const locus_option_info *o;
    for (size_t i = 0; dict != NULL && (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        const void *field = (const char *)&config->options + o->offset;
        const double real = *(const double *)field;
        const int64_t whole = *(const int64_t *)field;
        PyObject *value = NULL;
        if ((o->levels & LOCUS_ATTEND) == 0) continue;
        if (o->kind == LOCUS_OPTION_REAL) {
            if (real != LOCUS_UNSET_REAL) value = PyFloat_FromDouble(real);
        } else if (whole != LOCUS_UNSET) {
            value = PyLong_FromLongLong(whole);
            for (const locus_choice *c = o->choices; c != NULL && c->name != NULL; c++)
                if (c->value == whole) {
                    Py_XDECREF(value);
                    value = PyUnicode_FromString(c->name);
                }
        }
        if (value != NULL && PyDict_SetItemString(dict, o->name, value) != 0) Py_CLEAR(dict);
        Py_XDECREF(value);
    }
    return dict;
}

/* model_attention(model, layer, qkv, tokens) -> scheme, causal, scale or None, options, tensors */
PyObject *native_model_attention(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_attention", count, 4) != 0) return NULL;
    const locus_model *model = model_of(args[0]);
    const long long layer = PyLong_AsLongLong(args[1]), tokens = PyLong_AsLongLong(args[3]);
    const void *qkv = NULL;
    if (model == NULL || PyErr_Occurred()) return NULL;
    locus_model_info info = {.size = sizeof info};
    locus_model_describe(model, &info);
    const int64_t floats = array_of(args[2], &qkv, sizeof(float));
    if (floats < 0) return NULL;
    if (tokens < 0 || floats != tokens * info.qkv_width) {
        native_refuse(LOCUS_ERR_ARGUMENT, "qkv: not a row of %lld for every token",
                      (long long)info.qkv_width);
        return NULL;
    }
    locus_config config;
    locus_tensors in;
    locus_error error = {.text = ""};
    float *room = PyMem_Calloc((size_t)locus_model_attention_room(model, tokens) + 1, sizeof *room);
    if (room == NULL) return PyErr_NoMemory();
    const locus_status status =
        locus_model_attention_in(model, layer, qkv, tokens, room, &config, &in, &error);
    PyObject *tensors = status == LOCUS_OK ? tensors_of(&in) : NULL;
    PyMem_Free(room);
    if (status != LOCUS_OK) {
        native_raise(status, error.text);
        return NULL;
    }
    PyObject *options = options_of(&config);
    PyObject *scale =
        config.scale == LOCUS_UNSET_REAL ? Py_NewRef(Py_None) : PyFloat_FromDouble(config.scale);
    if (options == NULL || tensors == NULL || scale == NULL) {
        Py_XDECREF(options);
        Py_XDECREF(tensors);
        Py_XDECREF(scale);
        return NULL;
    }
    return Py_BuildValue("(siNNN)", config.scheme, (int)config.causal, scale, options, tensors);
}

/* ---- generation ---- */

typedef struct number_setting {
    const char *name;
    int real;
    size_t offset;
} number_setting;

#define SETTING(field, real)                                                                       \
    {                                                                                              \
#field, real, offsetof(locus_generation, field)                                            \
    }
static const number_setting settings[] = {SETTING(beams, 0),
                                          SETTING(max_length, 0),
                                          SETTING(max_new_tokens, 0),
                                          SETTING(min_length, 0),
                                          SETTING(min_new_tokens, 0),
                                          SETTING(no_repeat_ngram, 0),
                                          SETTING(top_k, 0),
                                          SETTING(top_p, 1),
                                          SETTING(temperature, 1),
                                          SETTING(length_penalty, 1),
                                          SETTING(repetition_penalty, 1)};

static int set_one(locus_generation *g, const char *name, PyObject *value)
{
    if (strcmp(name, "seed") == 0) {
        g->seed = PyLong_AsUnsignedLongLong(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (strcmp(name, "sample") == 0) {
        const int truth = PyObject_IsTrue(value);
        g->sample = truth == 1;
        return truth < 0 ? -1 : 0;
    }
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        char *field = (char *)g + settings[i].offset;
        if (strcmp(settings[i].name, name) != 0) continue;
        if (settings[i].real)
            *(double *)(void *)field = PyFloat_AsDouble(value);
        else
            *(int64_t *)(void *)field = PyLong_AsLongLong(value);
        return PyErr_Occurred() ? -1 : 0;
    }
    native_refuse(LOCUS_ERR_ARGUMENT, "generate: no setting \"%s\"", name);
    return -1;
}

static int read_settings(locus_generation *g, PyObject *dict)
{
    PyObject *key = NULL, *value = NULL;
    Py_ssize_t at = 0;
    while (PyDict_Next(dict, &at, &key, &value)) {
        const char *name = PyUnicode_AsUTF8AndSize(key, NULL);
        if (name == NULL || set_one(g, name, value) != 0) return -1;
    }
    return 0;
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

/* model_generate(model, ids, offsets, settings) -> [(ids, score)] */
PyObject *native_model_generate(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_generate", count, 4) != 0) return NULL;
    const locus_model *model = model_of(args[0]);
    PyObject *const arrays[] = {args[0], args[1], Py_None, args[2], Py_None};
    run r = {.model = model, .batch = {.size = sizeof r.batch}};
    locus_generation generation = {.size = sizeof generation};
    if (model == NULL || read_arrays(&r, arrays) != 0) return NULL;
    locus_generation_init(&generation, model);
    if (read_settings(&generation, args[3]) != 0) return NULL;
    locus_generated *generated = NULL;
    locus_error error = {.text = ""};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status =
        locus_generate(&generated, model, &generation, r.batch.ids, r.offsets, r.texts, &error);
    Py_END_ALLOW_THREADS if (status != LOCUS_OK)
    {
        native_raise(status, error.text);
        return NULL;
    }
    PyObject *list = texts_of(generated, r.texts);
    locus_generated_free(generated);
    return list;
}
