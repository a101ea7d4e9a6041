/* SPDX-License-Identifier: Apache-2.0 */
/* Tensors of a checkpoint, one by one or a few as one map: copied, or packed for products. */
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/loader.h"
#include "model/trainable.h"

locus_status model_read_array(loader *r, model_slot slot, int64_t layer, const float **to)
{
    *to = NULL;
    if (!model_slot_wanted(r->d, slot)) return LOCUS_OK;
    if (r->m->trainable != NULL) return model_place_array(r, slot, layer, to);
    float *array = model_keep_floats(r->m, model_slot_elements(r->d, slot));
    if (array == NULL) return model_no_memory(r->error);
    *to = array;
    return model_checkpoint_read(r->c, slot, layer, array, r->error);
}

locus_status model_read_norm(loader *r, model_slot gain, int64_t layer, model_norm *norm)
{
    LOCUS_TRY(model_read_array(r, gain, layer, &norm->gain));
    return model_read_array(r, (model_slot)(gain + 1), layer, &norm->shift);
}

locus_status model_pack_map(loader *r, model_map *map, int64_t outputs, int64_t inputs)
{
    const locus_tensor weight =
        locus_view(r->scratch, LOCUS_F32, 2, (const int64_t[]){outputs, inputs});
    uint64_t bytes = 0;
    void *memory = NULL;
    if (locus_packed_bytes(&bytes, inputs, outputs)) memory = model_keep(r->m, bytes);
    if (memory == NULL) return model_no_memory(r->error);
    map->packed = locus_pack_weight(r->m->workers.kernels, &weight, memory, r->m->workers.threads);
    return LOCUS_OK;
}

static void multiply(const loader *r, float *x, int64_t count)
{
    for (int64_t i = 0; r->factor > 0.0f && i < count; i++) x[i] *= r->factor;
}

locus_status model_read_maps(loader *r, const model_slot *slots, size_t count, int64_t layer,
                             int64_t all, int64_t inputs, model_map *map)
{
    float *bias = NULL;
    int64_t at = 0;
    const int biases = model_slot_wanted(r->d, (model_slot)(slots[0] + 1)) ||
                       model_checkpoint_has(r->c, (model_slot)(slots[0] + 1), layer);
    if (r->m->trainable != NULL)
        return model_place_maps(r, slots, count, layer, inputs, biases, map);
    for (size_t i = 0; i < count; i++) {
        LOCUS_TRY(model_checkpoint_read(r->c, slots[i], layer, r->scratch + at, r->error));
        at += model_slot_elements(r->d, slots[i]);
    }
    multiply(r, r->scratch, all * inputs);
    LOCUS_TRY(model_pack_map(r, map, all, inputs));
    if (!biases) return LOCUS_OK;
    bias = model_keep_floats(r->m, all);
    if (bias == NULL) return model_no_memory(r->error);
    map->bias = locus_view(bias, LOCUS_F32, 1, &all);
    at = 0;
    for (size_t i = 0; i < count; i++) {
        const model_slot slot = (model_slot)(slots[i] + 1);
        LOCUS_TRY(model_checkpoint_read(r->c, slot, layer, bias + at, r->error));
        at += model_slot_elements(r->d, slot);
    }
    multiply(r, bias, all);
    return LOCUS_OK;
}

locus_status model_read_map(loader *r, model_slot slot, int64_t layer, int64_t outputs,
                            int64_t inputs, model_map *map)
{
    return model_read_maps(r, &slot, 1, layer, outputs, inputs, map);
}

/* Rows of [H][3][D] to [3][H][D]; `width` floats to each D. */
static void sort_heads(float *to, const float *from, const model_description *d, int64_t width)
{
    const int64_t H = d->heads, block = d->head_dim * width;
    for (int64_t h = 0; h < H; h++)
        for (int64_t part = 0; part < 3; part++)
            memcpy(to + (part * H + h) * block, from + (3 * h + part) * block,
                   (size_t)block * sizeof(float));
}

/* A fused tensor with its parts one behind the other. */
static locus_status read_parts(loader *r, model_slot slot, int64_t layer, int64_t width, float *to)
{
    if (r->d->fused_parts) return model_checkpoint_read(r->c, slot, layer, to, r->error);
    const size_t count = (size_t)model_slot_elements(r->d, slot);
    float *heads = locus_allocate(r->m->allocator, count, sizeof(float));
    if (heads == NULL) return model_no_memory(r->error);
    const locus_status status = model_checkpoint_read(r->c, slot, layer, heads, r->error);
    sort_heads(to, heads, r->d, width);
    locus_release(r->m->allocator, heads);
    return status;
}

locus_status model_read_fused(loader *r, int64_t layer, model_map *map)
{
    const model_description *d = r->d;
    const int64_t A = d->heads * d->head_dim, all = 3 * A;
    if (r->m->trainable != NULL) return model_place_fused(r, layer, map);
    if (d->biases && !d->attention_unbiased) {
        float *bias = model_keep_floats(r->m, all);
        if (bias == NULL) return model_no_memory(r->error);
        map->bias = locus_view(bias, LOCUS_F32, 1, &all);
        if (d->fused_biases) {
            LOCUS_TRY(read_parts(r, SLOT_FUSED_QKV_BIAS, layer, 1, bias));
        } else {
            LOCUS_TRY(model_checkpoint_read(r->c, SLOT_Q_BIAS, layer, bias, r->error));
            LOCUS_TRY(model_checkpoint_read(r->c, SLOT_V_BIAS, layer, bias + 2 * A, r->error));
        }
    }
    LOCUS_TRY(read_parts(r, SLOT_FUSED_QKV, layer, d->width, r->scratch));
    return model_pack_map(r, map, all, d->width);
}

/* The gate of a feed-forward layer has no bias slot. */
locus_status model_read_gate(loader *r, int64_t layer, model_map *map)
{
    static const model_slot gate = SLOT_GATE;
    if (!r->d->gated) return LOCUS_OK;
    if (r->m->trainable != NULL) return model_place_maps(r, &gate, 1, layer, r->d->width, 0, map);
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_GATE, layer, r->scratch, r->error));
    return model_pack_map(r, map, r->d->feed_forward, r->d->width);
}
