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

locus_model *native_model_of(PyObject *capsule)
{
    return PyCapsule_GetPointer(capsule, model_name);
}

/* *precision of its name. 0, with the error set: there is none. */
static int precision_of(PyObject *text, uint32_t *precision)
{
    PyObject *bytes = PyUnicode_AsUTF8String(text);
    if (bytes == NULL) return 0;
    uint32_t i = 0;
    while (locus_precision_name(i) != NULL &&
           strcmp(locus_precision_name(i), PyBytes_AsString(bytes)) != 0)
        i++;
    Py_DECREF(bytes);
    *precision = i;
    if (locus_precision_name(i) != NULL) return 1;
    PyErr_Format(PyExc_ValueError, "precision: expected exact, i16 or int8, got %R", text);
    return 0;
}

PyObject *native_model_open(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_open", count, 4) != 0) return NULL;
    const long threads = PyLong_AsLong(args[1]);
    const int trainable = PyObject_IsTrue(args[2]);
    uint32_t precision = LOCUS_EXACT;
    PyObject *bytes =
        PyErr_Occurred() || !precision_of(args[3], &precision) ? NULL : native_path(args[0]);
    if (bytes == NULL) return NULL;
    const locus_model_config config = {.size = sizeof config,
                                       .threads = threads > 0 ? (uint32_t)threads : 0,
                                       .trainable = trainable == 1,
                                       .precision = precision};
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
    const locus_model *model = native_model_of(capsule);
    locus_model_info info = {.size = sizeof info};
    if (model == NULL) return NULL;
    locus_model_describe(model, &info);
    PyObject *labels = labels_of(model, info.labels);
    if (labels == NULL) return NULL;
    const char *head = "";
    if (info.head == LOCUS_MODEL_CLASSIFY) head = "classify";
    if (info.head == LOCUS_MODEL_TAG) head = "tokens";
    if (info.head == LOCUS_MODEL_SPAN) head = "answer";
    if (info.head == LOCUS_MODEL_FILL) head = "fill";
    if (info.head == LOCUS_MODEL_GENERATE) head = "generate";
    return Py_BuildValue("{sssssssLsLsLsLsLsLsLsLsLsLsLsLsLsLsisisssssssssLsLszsN}", "family",
                         info.family, "positions", info.positions, "scheme", info.scheme, "width",
                         (long long)info.width, "last_width", (long long)info.last_width, "layers",
                         (long long)info.layers, "heads", (long long)info.heads, "head_dim",
                         (long long)info.head_dim, "feed_forward", (long long)info.feed_forward,
                         "vocabulary", (long long)info.vocabulary, "types", (long long)info.types,
                         "most_tokens", (long long)info.most_tokens, "parameters",
                         (long long)info.parameters, "bytes", (long long)info.bytes,
                         "decoder_layers", (long long)info.decoder_layers, "next_tokens",
                         (long long)info.next_tokens, "qkv_width", (long long)info.qkv_width,
                         "modules", (int)info.modules, "multi_label", (int)info.multi_label, "head",
                         head, "unread_head", info.unread_head != NULL ? info.unread_head : "",
                         "precision", locus_precision_name(info.precision), "embedding",
                         info.embedding, "embedding_width", (long long)info.embedding_width,
                         "cut_tokens", (long long)info.cut_tokens, "prompt", info.prompt, "labels",
                         labels);
}

/* ---- running ---- */

/* What a run may give, in the order of the bits by which it is asked for. */
typedef enum part {
    HIDDEN,
    LOGITS,
    EMBEDDING,
    QKV,
    DECODER_HIDDEN,
    DECODER_QKV,
    CROSS_Q,
    CROSS_KV,
    PARTS
} part;
static const char *const part_names[PARTS] = {"hidden",  "logits",         "embedding",
                                              "qkv",     "decoder_hidden", "decoder_qkv",
                                              "cross_q", "cross_kv"};

typedef struct run {
    PyObject *capsule;
    const locus_model *model;
    locus_model_info info, decoder; /* decoder.layers 0: no decoder runs */
    const int64_t *offsets, *decoder_offsets;
    int64_t texts, tokens, decoder_tokens;
    locus_model_batch batch;
    PyObject *found; /* name: [(bytearray, rows, width) of every layer] */
    float **arrays[PARTS];
    int keep;       /* 1: for the way back */
    PyObject *kept; /* what that needs */
} run;

int64_t native_array(PyObject *object, const void **data, size_t size)
{
    char *bytes = NULL;
    Py_ssize_t length = 0;
    if (PyBytes_AsStringAndSize(object, &bytes, &length) != 0) return -1;
    *data = bytes;
    return (int64_t)((size_t)length / size);
}

/* Numbers that must be as many as there are tokens. */
static int read_equal(PyObject *object, const char *name, int64_t count, const void **data)
{
    if (object == Py_None) return 0;
    const int64_t found = native_array(object, data, sizeof(int32_t));
    if (found >= 0 && found != count)
        native_refuse(LOCUS_ERR_ARGUMENT, "%s: found %lld numbers, expected %lld", name,
                      (long long)found, (long long)count);
    return found == count ? 0 : -1;
}

/* Ids and where the texts among them begin. */
int native_read_ids(PyObject *ids_object, PyObject *offsets_object, const void **ids,
                    const int64_t **offsets, int64_t *texts, int64_t *tokens)
{
    const void *marks = NULL;
    *tokens = native_array(ids_object, ids, sizeof(int32_t));
    const int64_t count = *tokens < 0 ? -1 : native_array(offsets_object, &marks, sizeof(int64_t));
    if (count < 0) return -1;
    *offsets = marks;
    *texts = count - 1;
    if (*texts >= 0 && (*offsets)[*texts] == *tokens) return 0;
    native_refuse(LOCUS_ERR_ARGUMENT, "offsets: the last one is not the number of ids");
    return -1;
}

static int read_decoder(run *r, PyObject *ids, PyObject *offsets)
{
    const void *found = NULL;
    int64_t texts = 0;
    locus_error error = {.text = ""};
    if (ids == Py_None) return 0;
    if (native_read_ids(ids, offsets, &found, &r->decoder_offsets, &texts, &r->decoder_tokens) != 0)
        return -1;
    if (texts != r->texts) {
        native_refuse(LOCUS_ERR_ARGUMENT, "decoder_ids: found %lld texts, expected %lld",
                      (long long)texts, (long long)r->texts);
        return -1;
    }
    r->batch.decoder_ids = found;
    const locus_status status =
        locus_model_describe_stack(r->model, LOCUS_MODEL_DECODER, &r->decoder, &error);
    if (status != LOCUS_OK) native_raise(status, error.text);
    return status == LOCUS_OK ? 0 : -1;
}

static int read_arrays(run *r, PyObject *const *args)
{
    const void *ids = NULL, *types = NULL, *rows = NULL;
    if (native_read_ids(args[1], args[3], &ids, &r->offsets, &r->texts, &r->tokens) != 0 ||
        read_equal(args[2], "types", r->tokens, &types) != 0 ||
        read_decoder(r, args[5], args[6]) != 0)
        return -1;
    if (args[4] != Py_None) {
        r->batch.row_count = native_array(args[4], &rows, sizeof(int32_t));
        if (r->batch.row_count < 0) return -1;
    }
    r->batch.ids = ids;
    r->batch.types = types;
    r->batch.rows = rows;
    return 0;
}

/* ---- what comes out ---- */

typedef struct extent {
    int64_t layers, rows, width, last; /* last: width of the last layer */
} extent;

static extent logits_of(const run *r)
{
    const int64_t rows = r->batch.rows != NULL ? r->batch.row_count : r->tokens;
    switch (r->info.head) {
    case LOCUS_MODEL_CLASSIFY: return (extent){1, r->texts, r->info.labels, r->info.labels};
    case LOCUS_MODEL_SPAN:
    case LOCUS_MODEL_TAG: return (extent){1, r->tokens, r->info.labels, r->info.labels};
    case LOCUS_MODEL_FILL: return (extent){1, rows, r->info.vocabulary, r->info.vocabulary};
    case LOCUS_MODEL_GENERATE:
        return (extent){1, r->decoder.layers > 0 ? r->decoder_tokens : r->tokens,
                        r->info.next_tokens, r->info.next_tokens};
    default: return (extent){1, 0, 0, 0};
    }
}

static extent extent_of(const run *r, part which)
{
    const locus_model_info *i = &r->info, *d = &r->decoder;
    const int64_t A = d->heads * d->head_dim;
    switch (which) {
    case HIDDEN: return (extent){i->layers + 1, r->tokens, i->width, i->last_width};
    case LOGITS: return logits_of(r);
    case EMBEDDING: return (extent){1, r->texts, i->embedding_width, i->embedding_width};
    case QKV: return (extent){i->layers, r->tokens, i->qkv_width, i->qkv_width};
    case DECODER_HIDDEN: return (extent){d->layers + 1, r->decoder_tokens, d->width, d->last_width};
    case DECODER_QKV: return (extent){d->layers, r->decoder_tokens, d->qkv_width, d->qkv_width};
    case CROSS_Q: return (extent){d->layers, r->decoder_tokens, A, A};
    case CROSS_KV: return (extent){d->layers, r->tokens, 2 * A, 2 * A};
    case PARTS: break;
    }
    return (extent){0, 0, 0, 0};
}

PyObject *native_floats(int64_t count)
{
    if (count > INT64_MAX / (int64_t)sizeof(float)) return PyErr_NoMemory();
    return PyByteArray_FromStringAndSize(NULL, (Py_ssize_t)(count * (int64_t)sizeof(float)));
}

static float *floats_of(PyObject *bytes) { return (float *)(void *)PyByteArray_AsString(bytes); }

/* Room for one part, in r->found and r->arrays. */
static int make_part(run *r, part which)
{
    const extent e = extent_of(r, which);
    if (which == LOGITS && e.width == 0) {
        native_refuse(LOCUS_ERR_ARGUMENT, "logits: the model has no head that gives them");
        return -1;
    }
    PyObject *list = PyList_New(0);
    r->arrays[which] = calloc((size_t)e.layers + 1, sizeof *r->arrays[which]);
    for (int64_t l = 0; list != NULL && r->arrays[which] != NULL && l < e.layers; l++) {
        const int64_t width = l + 1 < e.layers ? e.width : e.last;
        PyObject *bytes = native_floats(e.rows * width);
        if (bytes != NULL) r->arrays[which][l] = floats_of(bytes);
        PyObject *entry = bytes == NULL
                              ? NULL
                              : Py_BuildValue("(NLL)", bytes, (long long)e.rows, (long long)width);
        if (entry == NULL || PyList_Append(list, entry) != 0) Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    const int made = list != NULL && r->arrays[which] != NULL &&
                     PyDict_SetItemString(r->found, part_names[which], list) == 0;
    if (!made && !PyErr_Occurred()) PyErr_NoMemory();
    Py_XDECREF(list);
    return made ? 0 : -1;
}

static int make_room(run *r, long what)
{
    r->found = PyDict_New();
    if (r->found == NULL) return -1;
    for (int which = 0; which < PARTS; which++)
        if ((what >> which & 1) != 0 && make_part(r, (part)which) != 0) return -1;
    return 0;
}

static locus_model_results results_of(const run *r)
{
    return (locus_model_results){.size = sizeof(locus_model_results),
                                 .hidden = r->arrays[HIDDEN],
                                 .logits = r->arrays[LOGITS] != NULL ? r->arrays[LOGITS][0] : NULL,
                                 .embedding =
                                     r->arrays[EMBEDDING] != NULL ? r->arrays[EMBEDDING][0] : NULL,
                                 .qkv = r->arrays[QKV],
                                 .decoder_hidden = r->arrays[DECODER_HIDDEN],
                                 .decoder_qkv = r->arrays[DECODER_QKV],
                                 .cross_q = r->arrays[CROSS_Q],
                                 .cross_kv = r->arrays[CROSS_KV]};
}

static locus_status compute(const run *r, native_kept *kept, locus_error *error)
{
    const locus_model_results results = results_of(r);
    locus_status status =
        r->decoder.layers > 0
            ? locus_model_pass_both(&kept->pass, r->model, r->offsets, r->decoder_offsets, r->texts,
                                    error)
            : locus_model_pass_new(&kept->pass, r->model, r->offsets, r->texts, error);
    if (status != LOCUS_OK) return status;
    const size_t bytes = locus_model_workspace(kept->pass);
    void *workspace = malloc(bytes + 1);
    kept->bytes = r->keep ? locus_model_kept(kept->pass) : 0;
    kept->data = r->keep ? malloc(kept->bytes + 1) : NULL;
    if (workspace == NULL || (r->keep && kept->data == NULL))
        status = LOCUS_ERR_MEMORY;
    else if (r->keep)
        status = locus_model_forward_kept(kept->pass, &r->batch, &results, kept->data, kept->bytes,
                                          workspace, bytes, error);
    else
        status = locus_model_forward(kept->pass, &r->batch, &results, workspace, bytes, error);
    free(workspace);
    return status;
}

/* The results as a dict, with "kept" where it is wanted. */
static PyObject *answer_of(run *r)
{
    native_kept kept = {.pass = NULL};
    locus_error error = {.text = "out of memory"};
    locus_status status = LOCUS_OK;
    Py_BEGIN_ALLOW_THREADS status = compute(r, &kept, &error);
    Py_END_ALLOW_THREADS if (status == LOCUS_OK && r->keep)
    {
        PyObject *capsule = native_kept_new(r->capsule, &kept); /* takes what is in it */
        if (capsule == NULL || PyDict_SetItemString(r->found, "kept", capsule) != 0)
            status = LOCUS_ERR_MEMORY;
        Py_XDECREF(capsule);
        return status == LOCUS_OK ? Py_NewRef(r->found) : NULL;
    }
    native_kept_clear(&kept);
    if (status == LOCUS_OK) return Py_NewRef(r->found);
    native_raise(status, error.text);
    return NULL;
}

/* model_run(model, ids, types, offsets, rows, decoder_ids, decoder_offsets, what, keep) */
PyObject *native_model_run(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_run", count, 9) != 0) return NULL;
    run r = {.capsule = args[0],
             .model = native_model_of(args[0]),
             .info = {.size = sizeof r.info},
             .decoder = {.size = sizeof r.decoder},
             .batch = {.size = sizeof r.batch}};
    const long what = PyLong_AsLong(args[7]);
    r.keep = PyObject_IsTrue(args[8]) == 1;
    if (r.model == NULL || PyErr_Occurred()) return NULL;
    locus_model_describe(r.model, &r.info);
    PyObject *answer =
        read_arrays(&r, args) == 0 && make_room(&r, what) == 0 ? answer_of(&r) : NULL;
    for (int which = 0; which < PARTS; which++) free(r.arrays[which]);
    Py_XDECREF(r.found);
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

/* Rows of q, and of k and v where they are others', of one sequence. */
static int read_attended(const locus_model *model, PyObject *const *args,
                         locus_model_attended *attended)
{
    const void *q = NULL, *kv = NULL, *types = NULL;
    locus_model_info info = {.size = sizeof info};
    locus_error error = {.text = ""};
    attended->stack = (uint32_t)PyLong_AsUnsignedLong(args[1]);
    attended->layer = PyLong_AsLongLong(args[2]);
    attended->queries = PyLong_AsLongLong(args[5]);
    attended->keys = PyLong_AsLongLong(args[6]);
    if (PyErr_Occurred()) return -1;
    const locus_status status = locus_model_describe_stack(model, attended->stack, &info, &error);
    if (status != LOCUS_OK) {
        native_raise(status, error.text);
        return -1;
    }
    const int64_t width = info.qkv_width;
    if (read_equal(args[3], "q", attended->queries * width, &q) != 0 ||
        read_equal(args[4], "kv", attended->keys * 2 * width, &kv) != 0 ||
        read_equal(args[7], "types", attended->queries, &types) != 0)
        return -1;
    attended->q = q;
    attended->kv = kv;
    attended->types = types;
    return 0;
}

/* model_attention(model, stack, layer, q, kv, queries, keys, types) -> scheme, causal, scale or None,
 * options, tensors */
PyObject *native_model_attention(PyObject *module, PyObject *const *args, Py_ssize_t count)
{
    (void)module;
    if (native_check_count("model_attention", count, 8) != 0) return NULL;
    const locus_model *model = native_model_of(args[0]);
    locus_model_attended attended = {.size = sizeof attended};
    if (model == NULL || read_attended(model, args, &attended) != 0) return NULL;
    locus_config config;
    locus_tensors in;
    locus_error error = {.text = ""};
    float *room =
        PyMem_Calloc((size_t)locus_model_attended_room(model, &attended) + 1, sizeof *room);
    if (room == NULL) return PyErr_NoMemory();
    const locus_status status =
        locus_model_attended_call(model, &attended, room, &config, &in, &error);
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
