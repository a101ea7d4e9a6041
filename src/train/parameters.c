/* SPDX-License-Identifier: Apache-2.0 */
#include "train/parameters.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "train/stream.h"

#define DEVIATION 0.02 /* of every matrix and every position table */
#define LEAST_KERPLE 0.01
enum {
    T5_BUCKETS = 32,
    DEBERTA_SPAN = 32,
    FAR = 128, /* where the buckets of t5 and deberta end */
    FIRE_FEATURES = 32,
    COPE_ROWS = 64, /* counted positions, as in the paper */
    GAP = 16        /* every tensor begins at a multiple of a cache line */
};

/* ---- the schemes ---- */

/* Extents that a table of shapes can name. */
typedef enum axis {
    AXIS_NONE,
    AXIS_ONE,
    AXIS_HEADS,
    AXIS_HEAD_WIDTH,
    AXIS_WIDTH,
    AXIS_POSITIONS, /* P */
    AXIS_DISTANCES, /* 2 P - 1 */
    AXIS_CLIPPED,   /* 2 clip + 1 */
    AXIS_BUCKETS,
    AXIS_SPAN,
    AXIS_FEATURES,
    AXIS_COUNTED,
} axis;

typedef struct scheme_tensor {
    const char *scheme, *tensor;
    axis axes[2];
    train_start start;
    double extent, least;
    int shared, input;
} scheme_tensor;

#define TABLE START_NORMAL, DEVIATION, -HUGE_VAL
static const scheme_tensor scheme_tensors[] = {
    /* clang-format off */
    {"learned",            "pos",   {AXIS_POSITIONS, AXIS_WIDTH},      TABLE, 1, 1},
    {"shaw",               "rel_k", {AXIS_CLIPPED, AXIS_HEAD_WIDTH},   TABLE, 0, 0},
    {"shaw",               "rel_v", {AXIS_CLIPPED, AXIS_HEAD_WIDTH},   TABLE, 0, 0},
    {"relative_key",       "rel_k", {AXIS_DISTANCES, AXIS_HEAD_WIDTH}, TABLE, 0, 0},
    {"relative_key_query", "rel_k", {AXIS_DISTANCES, AXIS_HEAD_WIDTH}, TABLE, 0, 0},
    {"transformer_xl",     "w_r",   {AXIS_WIDTH, AXIS_WIDTH},          TABLE, 0, 0},
    {"transformer_xl",     "u",     {AXIS_HEADS, AXIS_HEAD_WIDTH},     TABLE, 0, 0},
    {"transformer_xl",     "w",     {AXIS_HEADS, AXIS_HEAD_WIDTH},     TABLE, 0, 0},
    {"t5",                 "bias",  {AXIS_BUCKETS, AXIS_HEADS},        TABLE, 1, 0},
    {"tupe",               "pos",   {AXIS_POSITIONS, AXIS_WIDTH},      TABLE, 1, 0},
    {"tupe",               "w_pq",  {AXIS_WIDTH, AXIS_WIDTH},          TABLE, 1, 0},
    {"tupe",               "w_pk",  {AXIS_WIDTH, AXIS_WIDTH},          TABLE, 1, 0},
    {"deberta",            "rel",   {AXIS_SPAN, AXIS_WIDTH},           TABLE, 1, 0},
    {"kerple",             "a",     {AXIS_HEADS},  START_UNIFORM, 1.0, LEAST_KERPLE, 0, 0},
    {"kerple",             "p",     {AXIS_HEADS},  START_UNIFORM, 2.0, LEAST_KERPLE, 0, 0},
    {"distance",           "bias",  {AXIS_HEADS, AXIS_DISTANCES},      TABLE, 0, 0},
    {"fire",               "w_1",   {AXIS_FEATURES},                   TABLE, 0, 0},
    {"fire",               "b_1",   {AXIS_FEATURES},                   TABLE, 0, 0},
    {"fire",               "w_2",   {AXIS_HEADS, AXIS_FEATURES},       TABLE, 0, 0},
    {"fire",               "b_2",   {AXIS_HEADS},                      TABLE, 0, 0},
    {"fire",               "c",     {AXIS_ONE},    START_ONE, 0.0, -HUGE_VAL, 0, 0},
    {"fire",               "threshold", {AXIS_ONE}, START_ONE, 0.0, -HUGE_VAL, 0, 0},
    {"cope",               "rel_k", {AXIS_COUNTED, AXIS_HEAD_WIDTH},   TABLE, 0, 0},
    /* clang-format on */
};
enum { SCHEME_TENSORS = sizeof scheme_tensors / sizeof *scheme_tensors };

static int64_t extent_of(const train_shape *shape, axis which)
{
    switch (which) {
    case AXIS_NONE:
    case AXIS_ONE: return 1;
    case AXIS_HEADS: return shape->heads;
    case AXIS_HEAD_WIDTH: return shape->width / shape->heads;
    case AXIS_WIDTH: return shape->width;
    case AXIS_POSITIONS: return shape->position_rows;
    case AXIS_DISTANCES: return 2 * shape->longest - 1;
    case AXIS_CLIPPED: return 2 * shape->clip + 1;
    case AXIS_BUCKETS: return T5_BUCKETS;
    case AXIS_SPAN: return 2 * DEBERTA_SPAN;
    case AXIS_FEATURES: return FIRE_FEATURES;
    case AXIS_COUNTED: return COPE_ROWS;
    }
    return 1;
}

static int is(const train_shape *shape, const char *scheme)
{
    return strcmp(shape->scheme, scheme) == 0;
}

/* deberta with neither of its terms: content alone. */
static int is_bare(const train_shape *shape)
{
    return is(shape, "deberta") && !shape->c2p && !shape->p2c;
}

/* Positions of the input are added by the model, once: its attention knows of none. */
static const char *inner_scheme(const train_shape *shape)
{
    const int none = is(shape, "sinusoidal") || is(shape, "learned") || is_bare(shape);
    return none ? "none" : shape->scheme;
}

int64_t train_longest_row(const train_shape *shape)
{
    if (is(shape, "learned") || is(shape, "tupe")) return shape->position_rows;
    const int limited =
        is(shape, "relative_key") || is(shape, "relative_key_query") || is(shape, "distance");
    return limited ? shape->longest : INT64_MAX;
}

locus_status train_config(const train_shape *shape, uint32_t threads, locus_config *config,
                          locus_error *error)
{
    if (locus_config_init(config, inner_scheme(shape)) != LOCUS_OK)
        return locus_fail(error, LOCUS_ERR_SCHEME, "unknown scheme \"%s\"", shape->scheme);
    locus_options *options = &config->options;
    config->causal = (uint32_t)shape->causal;
    config->heads = (uint32_t)shape->heads;
    config->threads = threads;
    if (is(shape, "rope")) options->pairing = LOCUS_PAIRING_INTERLEAVED;
    if (is(shape, "shaw")) options->clip_left = options->clip_right = shape->clip;
    if (is(shape, "transformer_xl")) options->table = LOCUS_TABLE_HALF;
    if (is(shape, "t5")) {
        options->buckets = T5_BUCKETS;
        options->max_distance = FAR;
        options->bidirectional = !shape->causal;
    }
    if (is(shape, "t5") || is(shape, "distance"))
        config->scale = 1.0 / sqrt((double)(shape->width / shape->heads));
    if (is(shape, "deberta") && !is_bare(shape)) {
        options->span = DEBERTA_SPAN;
        options->buckets = DEBERTA_SPAN;
        options->max_distance = FAR;
        options->c2p = shape->c2p;
        options->p2c = shape->p2c;
    }
    if (is(shape, "kerple")) options->form = LOCUS_FORM_LOG;
    if (is(shape, "distance")) {
        options->delta_min = 1 - shape->longest;
        options->clamp = 0;
    }
    return LOCUS_OK;
}

/* A small model draws tables; what a scheme reads from the states or from given positions beside them
 * it does not make. NULL: nothing. */
static const char *missing_tensor(const locus_scheme_info *scheme)
{
    static const char *const others[] = {"pos_query", "gate", "q_positions", "log_decay"};
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++)
        for (size_t k = 0; k < sizeof others / sizeof *others; k++)
            if (t->required && strcmp(t->name, others[k]) == 0) return t->name;
    return NULL;
}

locus_status train_shape_check(const train_shape *shape, locus_error *error)
{
    const locus_scheme_info *scheme = locus_scheme_find(shape->scheme);
    if (scheme == NULL || is(shape, "table"))
        return locus_fail(error, LOCUS_ERR_SCHEME, "scheme: found \"%s\", expected one to train",
                          shape->scheme);
    if (missing_tensor(scheme) != NULL)
        return locus_fail(error, LOCUS_ERR_SCHEME,
                          "scheme: found \"%s\", expected one to train: its %s is no table",
                          shape->scheme, missing_tensor(scheme));
    if (shape->heads < 1 || shape->width < 1 || shape->width % shape->heads != 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "width: found %lld, expected a multiple of the %lld heads",
                          (long long)shape->width, (long long)shape->heads);
    const int64_t head_width = shape->width / shape->heads;
    if ((scheme->terms & LOCUS_TERM_ROTATION) != 0 && head_width % 2 != 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "scheme %s: found a head width of %lld, expected an even one (it turns "
                          "pairs of columns)",
                          shape->scheme, (long long)head_width);
    if ((is(shape, "sinusoidal") || is(shape, "transformer_xl")) && shape->width % 2 != 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "scheme %s: found width %lld, expected an even one", shape->scheme,
                          (long long)shape->width);
    if ((scheme->traits & LOCUS_TRAIT_CAUSAL) != 0 && !shape->causal)
        return locus_fail(error, LOCUS_ERR_SCHEME,
                          "scheme %s looks back only: it has no place in an encoder",
                          shape->scheme);
    if (shape->layers < 1 || shape->layers > TRAIN_MOST_LAYERS)
        return locus_fail(error, LOCUS_ERR_OPTION, "layers: found %lld, expected 1 to %d",
                          (long long)shape->layers, TRAIN_MOST_LAYERS);
    return LOCUS_OK;
}

/* ---- the list ---- */

typedef struct builder {
    train_parameters *list;
    const train_shape *shape;
    int failed; /* a size does not fit */
} builder;

static int append(builder *b, const char *prefix, const char *name, int64_t rows, int64_t columns)
{
    train_parameters *list = b->list;
    train_parameter *item = &list->items[list->count];
    uint64_t count = 0;
    snprintf(item->name, sizeof item->name, "%s%s", prefix, name);
    item->rank = columns > 0 ? 2 : 1;
    item->shape[0] = rows;
    item->shape[1] = columns;
    item->extent = DEVIATION;
    item->least = -HUGE_VAL;
    const uint64_t extents[] = {(uint64_t)rows, columns > 0 ? (uint64_t)columns : 1};
    if (!locus_product_u64(&count, extents, 2) || count > UINT32_MAX) b->failed = 1;
    item->at = list->floats;
    item->count = (size_t)count;
    list->floats += (item->count + GAP - 1) / GAP * GAP;
    return (int)list->count++;
}

static int append_weight(builder *b, const char *prefix, const char *name, int64_t rows,
                         int64_t columns, double deviation)
{
    const int index = append(b, prefix, name, rows, columns);
    b->list->items[index].extent = deviation;
    b->list->items[index].decays = 1;
    return index;
}

static void append_norm(builder *b, const char *prefix, int *weight, int *bias)
{
    *weight = append(b, prefix, "weight", b->shape->width, 0);
    *bias = append(b, prefix, "bias", b->shape->width, 0);
    b->list->items[*weight].start = START_ONE;
    b->list->items[*bias].start = START_ZERO;
}

static int append_scheme(builder *b, const char *prefix, const scheme_tensor *tensor)
{
    const int index =
        append(b, prefix, tensor->tensor, extent_of(b->shape, tensor->axes[0]),
               tensor->axes[1] == AXIS_NONE ? 0 : extent_of(b->shape, tensor->axes[1]));
    train_parameter *item = &b->list->items[index];
    item->start = tensor->start;
    item->extent = tensor->extent;
    item->least = tensor->least;
    item->decays = strncmp(tensor->tensor, "w_", 2) == 0;
    item->positional = 1;
    return index;
}

/* Tensors of the scheme: `shared` ones before the blocks, the others in each of them. */
static void append_scheme_tensors(builder *b, const char *prefix, int shared, int *numbers)
{
    train_parameters *list = b->list;
    size_t slot = 0;
    for (size_t i = 0; i < SCHEME_TENSORS; i++) {
        const scheme_tensor *tensor = &scheme_tensors[i];
        if (!is(b->shape, tensor->scheme) || is_bare(b->shape)) continue;
        if (tensor->input) {
            if (shared) list->input_positions = append_scheme(b, prefix, tensor);
            continue;
        }
        if (tensor->shared == shared) numbers[slot] = append_scheme(b, prefix, tensor);
        list->tensor[slot] = tensor->tensor;
        list->shared[slot++] = tensor->shared;
    }
    list->scheme_tensors = slot;
}

static void append_block(builder *b, int64_t number, const int *shared)
{
    const train_shape *s = b->shape;
    const double out = DEVIATION / sqrt(2.0 * (double)s->layers);
    train_block *block = &b->list->blocks[number];
    char prefix[TRAIN_NAME / 2];
    memcpy(block->scheme, shared, sizeof block->scheme);
    snprintf(prefix, sizeof prefix, "blocks.%d.norm1.", (int)number);
    append_norm(b, prefix, &block->norm1_weight, &block->norm1_bias);
    snprintf(prefix, sizeof prefix, "blocks.%d.attn.", (int)number);
    block->w_q = append_weight(b, prefix, "w_q", s->width, s->width, DEVIATION);
    block->w_k = append_weight(b, prefix, "w_k", s->width, s->width, DEVIATION);
    block->w_v = append_weight(b, prefix, "w_v", s->width, s->width, DEVIATION);
    block->w_o = append_weight(b, prefix, "w_o", s->width, s->width, out);
    append_scheme_tensors(b, prefix, 0, block->scheme);
    snprintf(prefix, sizeof prefix, "blocks.%d.norm2.", (int)number);
    append_norm(b, prefix, &block->norm2_weight, &block->norm2_bias);
    snprintf(prefix, sizeof prefix, "blocks.%d.ff.", (int)number);
    block->w_1 = append_weight(b, prefix, "w_1", 4 * s->width, s->width, DEVIATION);
    block->w_2 = append_weight(b, prefix, "w_2", s->width, 4 * s->width, out);
}

locus_status train_parameters_new(train_parameters *list, const train_shape *shape,
                                  locus_error *error)
{
    enum { PER_BLOCK = 10 + TRAIN_SCHEME_TENSORS, BESIDE = 3 + TRAIN_SCHEME_TENSORS };
    builder b = {.list = list, .shape = shape};
    int shared[TRAIN_SCHEME_TENSORS];
    *list = (train_parameters){.input_positions = -1};
    LOCUS_TRY(train_shape_check(shape, error));
    list->items =
        locus_allocate(NULL, (size_t)shape->layers * PER_BLOCK + BESIDE, sizeof *list->items);
    list->blocks = locus_allocate(NULL, (size_t)shape->layers, sizeof *list->blocks);
    if (list->items == NULL || list->blocks == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the list of parameters");
    list->embed = append(&b, "embed.", "weight", shape->vocabulary, shape->width);
    append_scheme_tensors(&b, "shared.", 1, shared);
    for (int64_t i = 0; i < shape->layers; i++) append_block(&b, i, shared);
    append_norm(&b, "norm.", &list->norm_weight, &list->norm_bias);
    return b.failed ? locus_fail(error, LOCUS_ERR_MEMORY, "a model of this shape does not fit")
                    : LOCUS_OK;
}

void train_parameters_free(train_parameters *list)
{
    locus_release(NULL, list->items);
    locus_release(NULL, list->blocks);
    *list = (train_parameters){.items = NULL};
}

/* ---- initial values ---- */

static double draw(const train_parameter *item, train_stream *stream)
{
    switch (item->start) {
    case START_ONE: return 1.0;
    case START_ZERO: return 0.0;
    case START_UNIFORM: return fmax(item->least, item->extent * train_uniform(stream));
    case START_NORMAL: break;
    }
    return item->extent * train_normal(stream);
}

void train_parameters_start(const train_parameters *list, uint64_t seed, float *values)
{
    for (size_t i = 0; i < list->count; i++) {
        const train_parameter *item = &list->items[i];
        train_stream stream = train_stream_of(seed, item->name, 0, 0);
        for (size_t k = 0; k < item->count; k++) values[item->at + k] = (float)draw(item, &stream);
    }
}

void train_parameters_count(const train_parameters *list, int64_t *all, int64_t *positional)
{
    *all = *positional = 0;
    for (size_t i = 0; i < list->count; i++) {
        *all += (int64_t)list->items[i].count;
        if (list->items[i].positional) *positional += (int64_t)list->items[i].count;
    }
}
