/* SPDX-License-Identifier: Apache-2.0 */
#include "train/model.h"

#include <math.h>
#include <string.h>

#include <locus/runtime.h>

#include "core/cpu.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "nn/norm.h"

enum { LINE_FLOATS = 16, NORM_BLOCK = 4096 };

/* ---- views ---- */

locus_rows train_rows(float *data, int64_t count, int64_t width)
{
    return (locus_rows){.data = data, .count = count, .stride = width};
}

locus_row_batch train_row_batch(float *data, int64_t count, int64_t width)
{
    return (locus_row_batch){.data = data,
                             .batches = 1,
                             .rows = count,
                             .batch_stride = count * width,
                             .row_stride = width};
}

locus_tensor train_matrix(const train_model *model, float *values, int index)
{
    const train_parameter *item = &model->list.items[index];
    return locus_view(values + item->at, LOCUS_F32, item->rank, item->shape);
}

locus_linear train_linear(const train_model *model, const locus_tensor *weight)
{
    locus_linear linear = model->linear;
    linear.weight = weight;
    return linear;
}

locus_norm_rule train_norm(const train_model *model, int weight, int bias)
{
    return (locus_norm_rule){.centred = 1,
                             .epsilon = 1e-5f,
                             .gain = model->weights + model->list.items[weight].at,
                             .shift = model->weights + model->list.items[bias].at,
                             .width = model->shape.width};
}

locus_tensors train_block_tensors(const train_model *model, int64_t number, float *values)
{
    const train_parameters *list = &model->list;
    const train_block *block = &list->blocks[number];
    locus_tensors t = {.size = sizeof t};
    t.w_q = train_matrix(model, values, block->w_q);
    t.w_k = train_matrix(model, values, block->w_k);
    t.w_v = train_matrix(model, values, block->w_v);
    t.w_o = train_matrix(model, values, block->w_o);
    for (size_t i = 0; i < list->scheme_tensors; i++)
        *locus_tensor_named(&t, list->tensor[i]) = train_matrix(model, values, block->scheme[i]);
    return t;
}

/* ---- memory of a step ---- */

/* Hands out pieces of one block, or measures it (base NULL). */
typedef struct carver {
    char *base;
    uint64_t used;
    int failed;
} carver;

static void *take(carver *c, uint64_t bytes)
{
    const uint64_t at = c->used;
    if (!locus_pad_u64(&bytes, bytes, LOCUS_ALIGNMENT) || !locus_add_u64(&c->used, at, bytes))
        c->failed = 1;
    return c->base == NULL ? NULL : c->base + at;
}

static float *take_floats(carver *c, int64_t rows, int64_t width)
{
    uint64_t bytes = 0;
    const uint64_t extents[] = {(uint64_t)rows, (uint64_t)width, sizeof(float)};
    if (!locus_product_u64(&bytes, extents, 3)) c->failed = 1;
    return take(c, bytes);
}

static size_t largest_shared(const train_parameters *list)
{
    size_t most = 0;
    for (size_t i = 0; i < list->scheme_tensors; i++) {
        const size_t count = list->items[list->blocks[0].scheme[i]].count;
        if (list->shared[i]) most += (count + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    }
    return most;
}

static void carve_block(train_model *m, carver *c, train_saved *saved)
{
    const int64_t rows = m->capacity, E = m->shape.width;
    saved->input = take_floats(c, rows, E);
    saved->normed = take_floats(c, rows, E);
    saved->layer = take(c, m->saved_bytes);
    saved->kept = take_floats(c, rows, E);
    saved->kept_normed = take_floats(c, rows, E);
    saved->wide = take_floats(c, rows, 4 * E);
    saved->active = take_floats(c, rows, 4 * E);
    saved->memory = take_floats(c, m->memory_capacity, E);
}

static void carve_model(train_model *m, carver *c)
{
    const int64_t rows = m->capacity, E = m->shape.width;
    for (int64_t i = 0; i < m->shape.layers; i++) carve_block(m, c, &m->saved[i]);
    m->workspace = take(c, m->workspace_bytes);
    m->out = take_floats(c, rows, E);
    m->lse = take_floats(c, rows, m->shape.heads);
    m->last = take_floats(c, rows, E);
    m->normed = take_floats(c, rows, E);
    m->logits = take_floats(c, rows, m->shape.vocabulary);
    m->losses = take_floats(c, rows, 1);
    m->dh = take_floats(c, rows, E);
    m->dnormed = take_floats(c, rows, E);
    m->dkept = take_floats(c, rows, E);
    m->dwide = take_floats(c, rows, 4 * E);
    m->dmemory = take_floats(c, m->memory_capacity, E);
    m->shared_gradient = take_floats(c, (int64_t)largest_shared(&m->list), 1);
    m->target = take(c, (uint64_t)rows * sizeof *m->target);
    m->position = take(c, (uint64_t)rows * sizeof *m->position);
    m->place = take(c, (uint64_t)rows * sizeof *m->place);
}

static locus_status grow(train_model *m, locus_error *error)
{
    carver c = {.base = NULL};
    size_t bytes = 0;
    locus_release(NULL, m->arena);
    m->arena = NULL;
    carve_model(m, &c);
    if (c.failed || !locus_to_size(&bytes, c.used) ||
        (m->arena = locus_allocate(NULL, bytes, 1)) == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a batch of %lld tokens",
                          (long long)m->capacity);
    c = (carver){.base = m->arena};
    carve_model(m, &c);
    m->step_peak = bytes + m->list.floats * 3 * sizeof(float);
    return LOCUS_OK;
}

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

/* Rows of the sinusoid for every position up to `rows`. */
static locus_status grow_sinusoid(train_model *m, int64_t rows, locus_error *error)
{
    const size_t E = (size_t)m->shape.width;
    if (strcmp(m->shape.scheme, "sinusoidal") != 0 || rows <= m->sinusoid_rows) return LOCUS_OK;
    double *row = locus_allocate(NULL, E, sizeof *row);
    float *table = locus_allocate(NULL, (size_t)rows, E * sizeof *table);
    if (row == NULL || table == NULL) {
        locus_release(NULL, row);
        locus_release(NULL, table);
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %lld positions", (long long)rows);
    }
    for (int64_t i = 0; i < rows; i++) {
        locus_sinusoid(LOCUS_TABLE_PAPER, (int64_t)E, i, row);
        for (size_t e = 0; e < E; e++) table[(size_t)i * E + e] = (float)row[e];
    }
    locus_release(NULL, row);
    locus_release(NULL, m->sinusoid);
    m->sinusoid = table;
    m->sinusoid_rows = rows;
    return LOCUS_OK;
}

/* ---- layers by length ---- */

static const train_layer *find_layer(const train_model *m, int64_t rows, int64_t tokens,
                                     int64_t memory)
{
    for (size_t i = 0; i < m->layer_count; i++)
        if (m->layers[i].rows == rows && m->layers[i].tokens == tokens &&
            m->layers[i].memory == memory)
            return &m->layers[i];
    return NULL;
}

static locus_status room_for_layer(train_model *m, locus_error *error)
{
    if (m->layer_count < m->layer_room) return LOCUS_OK;
    const size_t room = m->layer_room == 0 ? 32 : 2 * m->layer_room;
    train_layer *layers = locus_allocate(NULL, room, sizeof *layers);
    if (layers == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a layer");
    if (m->layer_count > 0) memcpy(layers, m->layers, m->layer_count * sizeof *layers);
    locus_release(NULL, m->layers);
    m->layers = layers;
    m->layer_room = room;
    return LOCUS_OK;
}

static locus_status add_layer(train_model *m, int64_t rows, int64_t tokens, int64_t memory,
                              locus_error *error)
{
    locus_config config;
    const int64_t E = m->shape.width;
    LOCUS_TRY(room_for_layer(m, error));
    LOCUS_TRY(train_config(&m->shape, m->threads, &config, error));
    locus_tensors shapes = train_block_tensors(m, 0, m->weights);
    shapes.x = locus_view(NULL, LOCUS_F32, 3, (const int64_t[]){rows, tokens, E});
    if (memory > 0)
        shapes.memory = locus_view(NULL, LOCUS_F32, 3, (const int64_t[]){rows, memory, E});
    train_layer *added = &m->layers[m->layer_count];
    *added = (train_layer){.rows = rows, .tokens = tokens, .memory = memory};
    LOCUS_TRY(locus_layer_new(&added->layer, &config, &shapes, error));
    m->layer_count++;
    return LOCUS_OK;
}

locus_status train_prepare(train_model *m, int64_t rows, int64_t tokens, int64_t memory,
                           locus_error *error)
{
    const train_layer *found = find_layer(m, rows, tokens, memory);
    if (found == NULL) {
        LOCUS_TRY(add_layer(m, rows, tokens, memory, error));
        LOCUS_TRY(grow_sinusoid(
            m, tokens > m->shape.position_rows ? tokens : m->shape.position_rows, error));
        const locus_layer *layer = m->layers[m->layer_count - 1].layer;
        const size_t saved = larger(m->saved_bytes, locus_layer_saved_bytes(layer));
        size_t work = larger(m->workspace_bytes, locus_layer_forward_workspace(layer));
        work = larger(work, locus_layer_backward_workspace(layer));
        work = larger(work, (size_t)locus_linear_workspace(&m->linear));
        work = larger(work, (size_t)locus_norm_workspace(rows * (tokens + memory)));
        const int64_t capacity = rows * tokens > m->capacity ? rows * tokens : m->capacity;
        const int64_t remembered =
            rows * memory > m->memory_capacity ? rows * memory : m->memory_capacity;
        if (capacity > m->capacity || remembered > m->memory_capacity || saved > m->saved_bytes ||
            work > m->workspace_bytes) {
            m->capacity = capacity;
            m->memory_capacity = remembered;
            m->saved_bytes = saved;
            m->workspace_bytes = work;
            LOCUS_TRY(grow(m, error));
            m->linear.workspace = m->workspace;
        }
        found = find_layer(m, rows, tokens, memory);
    }
    m->layer = found->layer;
    return LOCUS_OK;
}

/* ---- the model ---- */

static locus_status build(train_model *m, uint64_t seed, locus_error *error)
{
    LOCUS_TRY(train_parameters_new(&m->list, &m->shape, error));
    const size_t floats = m->list.floats;
    m->weights = locus_allocate(NULL, 3 * floats, sizeof(float));
    m->partial = locus_allocate(NULL, floats / NORM_BLOCK + 1, sizeof *m->partial);
    if (m->weights == NULL || m->partial == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %zu parameters", floats);
    m->m = m->weights + floats;
    m->v = m->m + floats;
    train_parameters_start(&m->list, seed, m->weights);
    m->workers =
        (locus_workers){.kernels = locus_kernels_pick(locus_isa_pick(NULL)), .threads = m->threads};
    if (m->workers.kernels == NULL)
        return locus_fail(error, LOCUS_ERR_ISA, "LOCUS_ISA names no table of kernels");
    m->linear = (locus_linear){.kernels = m->workers.kernels,
                               .threads = m->threads,
                               .second_cache = locus_cpu_caches().second};
    return LOCUS_OK;
}

locus_status train_model_new(train_model **model, const train_shape *shape, uint64_t seed,
                             uint32_t threads, locus_error *error)
{
    train_model *m = locus_allocate(NULL, 1, sizeof *m);
    *model = NULL;
    if (m == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a model");
    m->shape = *shape;
    m->threads = threads > 0 ? threads : locus_default_threads();
    const locus_status status = build(m, seed, error);
    if (status != LOCUS_OK) {
        train_model_free(m);
        return status;
    }
    *model = m;
    return LOCUS_OK;
}

void train_model_free(train_model *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < m->layer_count; i++) locus_layer_free(m->layers[i].layer);
    locus_release(NULL, m->layers);
    locus_release(NULL, m->arena);
    locus_release(NULL, m->sinusoid);
    locus_release(NULL, m->partial);
    locus_release(NULL, m->weights);
    train_parameters_free(&m->list);
    locus_release(NULL, m);
}
