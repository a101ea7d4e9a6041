/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "model/loader.h"
#include "model/trainable.h"

/* ---- room ---- */

/* Read where the checkpoint has them. */
static int is_optional(model_slot slot)
{
    return slot == SLOT_EMBEDDING_MAP_BIAS || slot == SLOT_NARROW_BIAS ||
           slot == SLOT_DEPTH_OUT_BIAS;
}

static int64_t cluster_floats(const model_description *d)
{
    int64_t sum = 0;
    for (int64_t i = 0, first = 0; i < d->clusters; first = d->cluster_end[i++])
        sum += (d->cluster_end[i] - first + d->width) * d->cluster_width[i];
    return sum;
}

locus_status model_place_all(loader *r)
{
    const model_description *d = r->d;
    const int64_t layers = d->shared_layers ? 1 : d->layers;
    int64_t room = cluster_floats(d);
    for (int i = 0; i < SLOT_COUNT; i++) {
        const model_slot slot = (model_slot)i;
        if (!model_slot_wanted(d, slot) && !is_optional(slot)) continue;
        for (int64_t l = 0; l < (model_slot_each_layer(slot) ? layers : 1); l++)
            if (model_checkpoint_has(r->c, slot, l)) room += model_slot_elements(d, slot);
    }
    return model_trainable_new(&r->m->trainable, room, r->m->allocator, r->error);
}

static locus_status place(loader *r, model_slot slot, int64_t layer, float **to)
{
    return model_trainable_place(r->m->trainable, r->c, slot, layer, to, r->error);
}

locus_status model_place_array(loader *r, model_slot slot, int64_t layer, const float **to)
{
    float *found = NULL;
    LOCUS_TRY(place(r, slot, layer, &found));
    *to = found;
    return LOCUS_OK;
}

/* ---- copies ---- */

static locus_status new_block(loader *r, int64_t count, float **block)
{
    *block = model_keep_floats(r->m, count);
    if (*block == NULL) return model_no_memory(r->error);
    return model_trainable_block(r->m->trainable, *block, count, r->error);
}

/* Extents and strides of three axes. The loader's factor is a power of two. */
static locus_status add_move(loader *r, const float *from, float *to, const int64_t extent[3],
                             const int64_t from_stride[3], const int64_t to_stride[3])
{
    trainable_move m = {.from = from,
                        .to = to,
                        .divisor = r->factor > 0.0f ? 1.0f / r->factor : 1.0f};
    memcpy(m.extent, extent, sizeof m.extent);
    memcpy(m.from_stride, from_stride, sizeof m.from_stride);
    memcpy(m.to_stride, to_stride, sizeof m.to_stride);
    return model_trainable_move(r->m->trainable, &m, r->error);
}

static locus_status add_copy(loader *r, const float *from, float *to, int64_t count)
{
    const int64_t stride[3] = {count, count, 1};
    return add_move(r, from, to, (const int64_t[]){1, 1, count}, stride, stride);
}

/* A tensor that the executor reads transposed, or as it is. */
static locus_status add_matrix(loader *r, model_slot slot, const float *from, float *to)
{
    int64_t rows, columns;
    if (!model_slot_transposed(r->d, slot, &rows, &columns))
        return add_copy(r, from, to, model_slot_elements(r->d, slot));
    return add_move(r, from, to, (const int64_t[]){1, rows, columns},
                    (const int64_t[]){0, columns, 1}, (const int64_t[]){0, 1, rows});
}

/* ---- maps ---- */

void model_set_plain(model_map *map, const float *weight, int64_t outputs, int64_t inputs)
{
    map->packed = (locus_packed){.inputs = inputs, .outputs = outputs};
    map->weight =
        locus_view((float *)(uintptr_t)weight, LOCUS_F32, 2, (const int64_t[]){outputs, inputs});
}

enum { PARTS = 3 };

/* Tensors that the executor reads as one: in place where they lie so, else a copy. */
static locus_status place_parts(loader *r, const model_slot *slots, size_t count, int64_t layer,
                                float **together, int64_t *all)
{
    float *found[PARTS];
    int64_t rows, columns;
    int moved = r->factor > 0.0f;
    *all = 0;
    for (size_t i = 0; i < count; i++) {
        LOCUS_TRY(place(r, slots[i], layer, &found[i]));
        moved |= model_slot_transposed(r->d, slots[i], &rows, &columns);
        moved |= found[i] != found[0] + *all;
        *all += model_slot_elements(r->d, slots[i]);
    }
    *together = found[0];
    if (!moved) return LOCUS_OK;
    LOCUS_TRY(new_block(r, *all, together));
    float *to = *together;
    for (size_t i = 0; i < count; i++) {
        LOCUS_TRY(add_matrix(r, slots[i], found[i], to));
        to += model_slot_elements(r->d, slots[i]);
    }
    return LOCUS_OK;
}

locus_status model_place_maps(loader *r, const model_slot *slots, size_t count, int64_t layer,
                              int64_t inputs, int biases, model_map *map)
{
    model_slot shifts[PARTS];
    float *weight, *bias;
    int64_t all, outputs;
    for (size_t i = 0; i < count; i++) shifts[i] = (model_slot)(slots[i] + 1);
    LOCUS_TRY(place_parts(r, slots, count, layer, &weight, &all));
    model_set_plain(map, weight, all / inputs, inputs);
    if (!biases) return LOCUS_OK;
    LOCUS_TRY(place_parts(r, shifts, count, layer, &bias, &outputs));
    map->bias = locus_view(bias, LOCUS_F32, 1, &outputs);
    return LOCUS_OK;
}

/* [H][3][D * width] of the checkpoint to [3][H][D * width]. */
static locus_status place_heads(loader *r, model_slot slot, int64_t layer, int64_t width,
                                float **to)
{
    const int64_t H = r->d->heads, block = r->d->head_dim * width;
    float *from;
    LOCUS_TRY(place(r, slot, layer, &from));
    LOCUS_TRY(new_block(r, 3 * H * block, to));
    return add_move(r, from, *to, (const int64_t[]){H, 3, block},
                    (const int64_t[]){3 * block, block, 1}, (const int64_t[]){block, H * block, 1});
}

static locus_status place_fused_part(loader *r, model_slot slot, int64_t layer, int64_t width,
                                     float **to)
{
    int64_t all;
    return r->d->fused_parts ? place_parts(r, &slot, 1, layer, to, &all)
                             : place_heads(r, slot, layer, width, to);
}

/* Biases of q and v; k has none. */
static locus_status place_two_biases(loader *r, int64_t layer, int64_t A, float **bias)
{
    float *q, *v;
    LOCUS_TRY(place(r, SLOT_Q_BIAS, layer, &q));
    LOCUS_TRY(place(r, SLOT_V_BIAS, layer, &v));
    LOCUS_TRY(new_block(r, 3 * A, bias));
    LOCUS_TRY(add_copy(r, q, *bias, A));
    return add_copy(r, v, *bias + 2 * A, A);
}

locus_status model_place_fused(loader *r, int64_t layer, model_map *map)
{
    const model_description *d = r->d;
    const int64_t A = d->heads * d->head_dim, all = 3 * A;
    float *weight, *bias;
    LOCUS_TRY(place_fused_part(r, SLOT_FUSED_QKV, layer, d->width, &weight));
    model_set_plain(map, weight, all, d->width);
    if (!d->biases || d->attention_unbiased) return LOCUS_OK;
    LOCUS_TRY(d->fused_biases ? place_fused_part(r, SLOT_FUSED_QKV_BIAS, layer, 1, &bias)
                              : place_two_biases(r, layer, A, &bias));
    map->bias = locus_view(bias, LOCUS_F32, 1, &all);
    return LOCUS_OK;
}

/* A part of the map of q, k and v. */
static model_map part_of(const model_map *qkv, int64_t first, int64_t outputs)
{
    const int64_t inputs = qkv->packed.inputs;
    model_map map = {.bias = {.rank = 0}};
    model_set_plain(&map, (const float *)qkv->weight.data + first * inputs, outputs, inputs);
    if (qkv->bias.rank != 0)
        map.bias = locus_view((float *)qkv->bias.data + first, LOCUS_F32, 1, &outputs);
    return map;
}

locus_status model_place_projection(loader *r, model_slot own, model_slot shared, int64_t layer,
                                    model_layer *to, model_map *map)
{
    const int64_t A = r->d->heads * r->d->head_dim;
    if (r->d->relative_shared) {
        *map = part_of(&to->qkv, shared == SLOT_K ? A : 0, A);
        return LOCUS_OK;
    }
    const int biases = model_checkpoint_has(r->c, (model_slot)(own + 1), layer);
    return model_place_maps(r, &own, 1, layer, r->d->width, biases, map);
}

locus_status model_place_tied(loader *r, float divisor, model_map *map)
{
    const int64_t V = r->d->vocabulary, W = r->d->embedding_width, count = V * W;
    float *scaled;
    model_set_plain(map, r->m->word, V, W);
    if (divisor == 1.0f) return LOCUS_OK;
    LOCUS_TRY(new_block(r, count, &scaled));
    model_set_plain(map, scaled, V, W);
    const trainable_move m = {.from = r->m->word,
                              .to = scaled,
                              .extent = {1, 1, count},
                              .from_stride = {0, 0, 1},
                              .to_stride = {0, 0, 1},
                              .divisor = divisor};
    return model_trainable_move(r->m->trainable, &m, r->error);
}

/* ---- tables and convolutions ---- */

locus_status model_place_window(loader *r, model_slot slot, int64_t layer, float *data)
{
    const int64_t rows = 2 * r->d->window + 1, D = r->d->head_dim;
    float *from;
    LOCUS_TRY(place(r, slot, layer, &from));
    LOCUS_TRY(model_trainable_block(r->m->trainable, data, (rows + 1) * D, r->error));
    return add_copy(r, from, data, rows * D);
}

locus_status model_place_taps(loader *r, model_slot slot, int64_t layer, int64_t outputs,
                              int64_t inputs, int64_t taps, const float **weight)
{
    float *from, *to;
    LOCUS_TRY(place(r, slot, layer, &from));
    LOCUS_TRY(new_block(r, outputs * inputs * taps, &to));
    *weight = to;
    return add_move(r, from, to, (const int64_t[]){outputs, inputs, taps},
                    (const int64_t[]){inputs * taps, taps, 1},
                    (const int64_t[]){inputs * taps, 1, inputs});
}

/* The batch norm's statistics are no parameters: they stay what the checkpoint says. */
static locus_status place_batch_norm(loader *r, int64_t layer, trainable_fold *f)
{
    const int64_t E = r->d->width;
    float *mean = model_keep_floats(r->m, 2 * E);
    if (mean == NULL) return model_no_memory(r->error);
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_DEPTH_MEAN, layer, mean, r->error));
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_DEPTH_VARIANCE, layer, mean + E, r->error));
    f->mean = mean;
    f->variance = mean + E;
    f->epsilon = r->d->norm_epsilon;
    return LOCUS_OK;
}

locus_status model_place_depth(loader *r, int64_t layer, model_layer *to)
{
    const int64_t E = r->d->width, taps = r->d->depth_taps;
    if (!r->d->depth_batch_norm) {
        LOCUS_TRY(model_place_array(r, SLOT_DEPTH_NORM_GAIN, layer, &to->depth_norm.gain));
        LOCUS_TRY(model_place_array(r, SLOT_DEPTH_NORM_SHIFT, layer, &to->depth_norm.shift));
        return model_place_taps(r, SLOT_DEPTH, layer, 1, E, taps, &to->depth);
    }
    trainable_fold f = {.taps = taps, .width = E};
    LOCUS_TRY(model_place_array(r, SLOT_DEPTH, layer, &f.weight));
    LOCUS_TRY(model_place_array(r, SLOT_DEPTH_NORM_GAIN, layer, &f.gain));
    LOCUS_TRY(model_place_array(r, SLOT_DEPTH_NORM_SHIFT, layer, &f.shift));
    LOCUS_TRY(new_block(r, taps * E, &f.to));
    LOCUS_TRY(new_block(r, E, &f.to_shift));
    LOCUS_TRY(place_batch_norm(r, layer, &f));
    to->depth = f.to;
    to->depth_shift = f.to_shift;
    return model_trainable_fold(r->m->trainable, &f, r->error);
}

/* ---- a word table in parts ---- */

static locus_status place_cluster(loader *r, int64_t index, int64_t first)
{
    model_description part = *r->d;
    const model_description *whole = r->c->description;
    float *rows = NULL, *map = NULL;
    part.vocabulary = r->d->cluster_end[index] - first;
    part.embedding_width = r->d->cluster_width[index];
    r->c->description = &part;
    const int mapped =
        part.embedding_width != part.width || model_checkpoint_has(r->c, SLOT_EMBEDDING_MAP, index);
    locus_status status = place(r, SLOT_WORD, index, &rows);
    if (status == LOCUS_OK && mapped) status = place(r, SLOT_EMBEDDING_MAP, index, &map);
    r->c->description = whole;
    r->m->cluster[index].rows = rows;
    if (status == LOCUS_OK && mapped)
        model_set_plain(&r->m->cluster[index].map, map, part.width, part.embedding_width);
    return status;
}

locus_status model_place_clusters(loader *r)
{
    for (int64_t i = 0, first = 0; i < r->d->clusters; first = r->d->cluster_end[i++])
        LOCUS_TRY(place_cluster(r, i, first));
    return LOCUS_OK;
}
