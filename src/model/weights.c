/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "model/loader.h"
#include "model/trainable.h"
#include "nn/norm.h"

/* ---- memory ---- */

enum { BLOCKS_WHOLE = 40, BLOCKS_LAYER = 56 };

static int64_t weight_layers(const model_description *d)
{
    return d->shared_layers ? 1 : d->layers;
}

void model_unload(locus_model *m)
{
    for (size_t i = 0; i < m->block_count; i++) locus_release(m->allocator, m->blocks[i]);
    locus_release(m->allocator, m->blocks);
    locus_release(m->allocator, m->layers);
    locus_release(m->allocator, m->convolution);
    model_trainable_free(m->trainable);
    m->trainable = NULL;
    m->blocks = NULL;
    m->layers = NULL;
    m->convolution = NULL;
    m->block_count = 0;
}

/* Everything is there and has its shape: before any of it is read. */
static locus_status check_all(const model_checkpoint *c, const model_description *d,
                              locus_error *error)
{
    for (int slot = 0; slot < SLOT_COUNT; slot++)
        for (int64_t l = 0; l < (model_slot_each_layer((model_slot)slot) ? weight_layers(d) : 1);
             l++)
            if (model_slot_wanted(d, (model_slot)slot))
                LOCUS_TRY(model_checkpoint_check(c, (model_slot)slot, l, error));
    return LOCUS_OK;
}

/* ---- the parts ---- */

/* One of two maps that see the tokens beside each one. */
static locus_status read_taps(loader *r, model_slot slot, int64_t layer, int64_t inputs,
                              int64_t outputs, model_taps *to, locus_tensor *bias)
{
    const int64_t taps = r->d->forward_taps, count = outputs * inputs * taps;
    const float *shift;
    uint64_t bytes = 0;
    LOCUS_TRY(model_read_array(r, (model_slot)(slot + 1), layer, &shift));
    *bias = locus_view((float *)(uintptr_t)shift, LOCUS_F32, 1, &outputs);
    if (r->m->trainable != NULL)
        return model_place_taps(r, slot, layer, outputs, inputs, taps, &to->plain);
    LOCUS_TRY(model_checkpoint_read(r->c, slot, layer, r->scratch, r->error));
    float *weight = locus_allocate(r->m->allocator, (size_t)count, sizeof(float));
    if (weight == NULL) return model_no_memory(r->error);
    locus_convolution_arrange(weight, r->scratch, outputs, inputs, taps);
    const locus_convolution f = {.workers = r->m->workers,
                                 .inputs = inputs,
                                 .outputs = outputs,
                                 .groups = 1,
                                 .taps = taps,
                                 .weight = weight};
    void *memory = locus_convolution_packed_bytes(&bytes, &f) ? model_keep(r->m, bytes) : NULL;
    if (memory != NULL) to->packed = locus_convolution_pack(&f, 0, memory);
    locus_release(r->m->allocator, weight);
    return memory != NULL ? LOCUS_OK : model_no_memory(r->error);
}

static locus_status read_forward(loader *r, int64_t layer, model_layer *to)
{
    const int64_t E = r->d->width, F = r->d->feed_forward;
    if (r->d->forward_taps > 1) {
        LOCUS_TRY(read_taps(r, SLOT_IN, layer, E, F, &to->in_taps, &to->in.bias));
        return read_taps(r, SLOT_OUT, layer, F, E, &to->out_taps, &to->out.bias);
    }
    LOCUS_TRY(model_read_map(r, SLOT_IN, layer, F, E, &to->in));
    LOCUS_TRY(model_read_gate(r, layer, &to->gate));
    r->factor = r->d->conformer ? 0.5f : 0.0f;
    const locus_status status = model_read_map(r, SLOT_OUT, layer, E, F, &to->out);
    r->factor = 0.0f;
    return status;
}

/* The taps of every channel, [taps, E], with a batch norm in them where there is one:
 *     g (w x - mean) / sqrt(variance + epsilon) + b */
static locus_status read_depth(loader *r, int64_t layer, model_layer *to)
{
    const model_description *d = r->d;
    const int64_t E = d->width, taps = d->depth_taps;
    if (r->m->trainable != NULL) return model_place_depth(r, layer, to);
    float *weight = model_keep_floats(r->m, taps * E), *shift = model_keep_floats(r->m, E);
    if (weight == NULL || shift == NULL) return model_no_memory(r->error);
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_DEPTH, layer, r->scratch, r->error));
    locus_convolution_arrange(weight, r->scratch, 1, E, taps);
    to->depth = weight;
    LOCUS_TRY(model_read_norm(r, SLOT_DEPTH_NORM_GAIN, layer, &to->depth_norm));
    if (!d->depth_batch_norm) return LOCUS_OK;
    float *mean = r->scratch, *variance = r->scratch + E;
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_DEPTH_MEAN, layer, mean, r->error));
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_DEPTH_VARIANCE, layer, variance, r->error));
    for (int64_t c = 0; c < E; c++) {
        const double factor =
            (double)to->depth_norm.gain[c] / sqrt((double)variance[c] + d->norm_epsilon);
        for (int64_t k = 0; k < taps; k++)
            weight[k * E + c] = (float)((double)weight[k * E + c] * factor);
        shift[c] = (float)((double)to->depth_norm.shift[c] - (double)mean[c] * factor);
    }
    to->depth_shift = shift;
    return LOCUS_OK;
}

/* Two maps in one tensor. */
static locus_status read_glu(loader *r, int64_t layer, model_layer *to)
{
    const int64_t E = r->d->width;
    const float *both;
    if (r->m->trainable != NULL) {
        LOCUS_TRY(model_place_array(r, SLOT_GLU, layer, &both));
        model_set_plain(&to->value, both, E, E);
        model_set_plain(&to->gated, both + E * E, E, E);
        return LOCUS_OK;
    }
    LOCUS_TRY(model_checkpoint_read(r->c, SLOT_GLU, layer, r->scratch, r->error));
    LOCUS_TRY(model_pack_map(r, &to->value, E, E));
    memmove(r->scratch, r->scratch + E * E, (size_t)(E * E) * sizeof(float));
    return model_pack_map(r, &to->gated, E, E);
}

/* What a conformer block has beside attention and the second feed-forward. */
static locus_status read_conformer(loader *r, int64_t layer, model_layer *to)
{
    const int64_t E = r->d->width, F = r->d->feed_forward;
    LOCUS_TRY(model_read_norm(r, SLOT_FIRST_NORM_GAIN, layer, &to->first_norm));
    LOCUS_TRY(model_read_map(r, SLOT_FIRST_IN, layer, F, E, &to->first_in));
    r->factor = 0.5f;
    LOCUS_TRY(model_read_map(r, SLOT_FIRST_OUT, layer, E, F, &to->first_out));
    r->factor = 0.0f;
    LOCUS_TRY(model_read_norm(r, SLOT_GLU_NORM_GAIN, layer, &to->glu_norm));
    LOCUS_TRY(read_glu(r, layer, to));
    LOCUS_TRY(read_depth(r, layer, to));
    LOCUS_TRY(model_read_map(r, SLOT_DEPTH_OUT, layer, E, E, &to->depth_out));
    return model_read_norm(r, SLOT_LAST_NORM_GAIN, layer, &to->last_norm);
}

/* Attention to the states of an encoder. */
static locus_status read_cross(loader *r, int64_t layer, model_layer *to)
{
    static const model_slot kv[2] = {SLOT_CROSS_K, SLOT_CROSS_V};
    const model_description *d = r->d;
    const int64_t A = d->heads * d->head_dim;
    LOCUS_TRY(model_read_map(r, SLOT_CROSS_Q, layer, A, d->width, &to->cross_q));
    LOCUS_TRY(model_read_maps(r, kv, 2, layer, 2 * A, d->width, &to->cross_kv));
    LOCUS_TRY(model_read_map(r, SLOT_CROSS_O, layer, d->width, A, &to->cross_o));
    return model_read_norm(r, SLOT_CROSS_NORM_GAIN, layer, &to->cross_norm);
}

static locus_status read_layer(loader *r, int64_t layer, const float *relative, const float *bias)
{
    static const model_slot qkv[3] = {SLOT_Q, SLOT_K, SLOT_V};
    const model_description *d = r->d;
    const int64_t A = d->heads * d->head_dim;
    model_layer *to = &r->m->layers[layer];
    to->tables.size = sizeof to->tables;
    LOCUS_TRY(d->fused_heads || d->fused_parts
                  ? model_read_fused(r, layer, &to->qkv)
                  : model_read_maps(r, qkv, 3, layer, model_qkv_width(d), d->width, &to->qkv));
    LOCUS_TRY(model_read_map(r, SLOT_O, layer, d->width, A, &to->o));
    if (d->cross) LOCUS_TRY(read_cross(r, layer, to));
    LOCUS_TRY(read_forward(r, layer, to));
    if (d->conformer) LOCUS_TRY(read_conformer(r, layer, to));
    if (d->distances)
        LOCUS_TRY(model_read_map(r, SLOT_RELATIVE_K, layer, A, d->width, &to->relative));
    LOCUS_TRY(model_read_array(r, SLOT_SEGMENT_BIAS, layer, &to->segment_bias));
    LOCUS_TRY(model_read_array(r, SLOT_SEGMENT, layer, &to->segment));
    LOCUS_TRY(model_read_norm(r, SLOT_ATTENTION_NORM_GAIN, layer, &to->attention_norm));
    LOCUS_TRY(model_read_norm(r, SLOT_FORWARD_NORM_GAIN, layer, &to->forward_norm));
    return model_read_tables(r, layer, relative, bias, to);
}

static locus_status read_convolution(loader *r)
{
    const model_description *d = r->d;
    const int64_t count = model_slot_elements(d, SLOT_CONVOLUTION);
    if (d->taps == 0) return LOCUS_OK;
    LOCUS_TRY(model_read_array(r, SLOT_CONVOLUTION_BIAS, 0, &r->m->convolution_bias));
    LOCUS_TRY(model_read_norm(r, SLOT_CONVOLUTION_NORM_GAIN, 0, &r->m->convolution_norm));
    if (r->m->trainable != NULL)
        return model_place_taps(r, SLOT_CONVOLUTION, 0, d->width, d->width / d->groups, d->taps,
                                &r->m->convolution_weight);
    float *weight = locus_allocate(r->m->allocator, (size_t)count, 2 * sizeof(float));
    r->m->convolution = locus_allocate(r->m->allocator, (size_t)d->groups, sizeof(locus_packed));
    locus_status status =
        weight != NULL && r->m->convolution != NULL ? LOCUS_OK : model_no_memory(r->error);
    if (status == LOCUS_OK)
        status = model_checkpoint_read(r->c, SLOT_CONVOLUTION, 0, weight + count, r->error);
    if (status == LOCUS_OK)
        locus_convolution_arrange(weight, weight + count, d->width, d->width / d->groups, d->taps);
    const locus_convolution f = {.workers = r->m->workers,
                                 .inputs = d->width,
                                 .outputs = d->width,
                                 .groups = d->groups,
                                 .taps = d->taps,
                                 .weight = weight};
    for (int64_t g = 0; status == LOCUS_OK && g < d->groups; g++) {
        uint64_t bytes = 0;
        void *memory = locus_convolution_packed_bytes(&bytes, &f) ? model_keep(r->m, bytes) : NULL;
        if (memory == NULL)
            status = model_no_memory(r->error);
        else
            r->m->convolution[g] = locus_convolution_pack(&f, g, memory);
    }
    locus_release(r->m->allocator, weight);
    return status;
}

/* The head that fills masks; the word table is read again where its last map is that. */
static locus_status read_fill(loader *r)
{
    locus_model *m = r->m;
    const model_description *d = r->d;
    if (!d->fill_plain)
        LOCUS_TRY(model_read_map(r, SLOT_FILL_MAP, 0, d->embedding_width, d->width, &m->fill_map));
    LOCUS_TRY(model_read_norm(r, SLOT_FILL_NORM_GAIN, 0, &m->fill_norm));
    if (!d->fill_tied)
        return model_read_map(r, SLOT_FILL_OUT, 0, d->vocabulary, d->embedding_width, &m->fill_out);
    const float *bias;
    if (m->trainable != NULL) {
        LOCUS_TRY(model_place_tied(r, 1.0f, &m->fill_out));
    } else {
        memcpy(r->scratch, m->word, (size_t)model_slot_elements(d, SLOT_WORD) * sizeof(float));
        LOCUS_TRY(model_pack_map(r, &m->fill_out, d->vocabulary, d->embedding_width));
    }
    LOCUS_TRY(model_read_array(r, SLOT_FILL_OUT_BIAS, 0, &bias));
    if (bias != NULL)
        m->fill_out.bias = locus_view((float *)(uintptr_t)bias, LOCUS_F32, 1, &d->vocabulary);
    return LOCUS_OK;
}

static locus_status read_positions(loader *r)
{
    const model_description *d = r->d;
    if (!d->sinusoidal) return model_read_array(r, SLOT_POSITION, 0, &r->m->position);
    const int64_t W = d->embedding_width;
    float *table = model_keep_floats(r->m, d->positions * W);
    if (table == NULL) return model_no_memory(r->error);
    r->m->position = table;
    if (model_checkpoint_has(r->c, SLOT_POSITION, 0))
        return model_checkpoint_read(r->c, SLOT_POSITION, 0, table, r->error);
    double *row = locus_allocate(r->m->allocator, (size_t)W, sizeof *row);
    for (int64_t p = 0; row != NULL && p < d->positions; p++) {
        locus_sinusoid(d->sinusoid_paired ? LOCUS_TABLE_PAPER : LOCUS_TABLE_HALF, W, p, row);
        for (int64_t i = 0; i < W; i++) table[p * W + i] = (float)row[i];
    }
    locus_release(r->m->allocator, row);
    return row != NULL ? LOCUS_OK : model_no_memory(r->error);
}

/* The map to logits: its own, or the word table. */
static locus_status read_last_map(loader *r)
{
    static const model_slot own = SLOT_LOGITS;
    locus_model *m = r->m;
    const model_description *d = r->d;
    const int64_t V = d->vocabulary, W = d->embedding_width;
    const float divisor = d->logits_scaled ? sqrtf((float)d->width) : 1.0f;
    if (m->trainable != NULL)
        return d->tied ? model_place_tied(r, divisor, &m->logits)
                       : model_place_maps(r, &own, 1, 0, W, 0, &m->logits);
    if (!d->tied)
        LOCUS_TRY(model_checkpoint_read(r->c, SLOT_LOGITS, 0, r->scratch, r->error));
    else
        for (int64_t i = 0; i < V * W; i++) r->scratch[i] = m->word[i] / divisor;
    return model_pack_map(r, &m->logits, V, W);
}

/* What continues a text: states to logits. */
static locus_status read_logits(loader *r)
{
    locus_model *m = r->m;
    const model_description *d = r->d;
    const int64_t V = d->vocabulary, W = d->embedding_width;
    if (d->head != LOCUS_MODEL_GENERATE || d->fill_next) return LOCUS_OK;
    if (model_slot_wanted(d, SLOT_NARROW))
        LOCUS_TRY(model_read_map(r, SLOT_NARROW, 0, W, d->width, &m->narrow));
    LOCUS_TRY(read_last_map(r));
    if (!d->logits_biased || !model_checkpoint_has(r->c, SLOT_LOGITS_BIAS, 0)) return LOCUS_OK;
    float *bias = model_keep_floats(m, V);
    if (bias == NULL) return model_no_memory(r->error);
    m->logits.bias = locus_view(bias, LOCUS_F32, 1, &V);
    return model_checkpoint_read(r->c, SLOT_LOGITS_BIAS, 0, bias, r->error);
}

static locus_status read_rope(loader *r)
{
    if (r->d->rope.base <= 0.0) return LOCUS_OK;
    float *frequency = model_keep_floats(r->m, r->d->head_dim / 2);
    if (frequency == NULL) return model_no_memory(r->error);
    r->m->frequencies = frequency;
    model_rope_frequencies(r->d, 0, frequency);
    return LOCUS_OK;
}

/* One part of the word table, mapped to the width: to [its rows, E]. A description of that part alone
 * says what its tensors look like. */
static locus_status read_cluster(loader *r, int64_t index, int64_t first, float *to)
{
    model_description part = *r->d;
    model_map map = {.bias = {.rank = 0}};
    part.vocabulary = r->d->cluster_end[index] - first;
    part.embedding_width = r->d->cluster_width[index];
    const model_description *whole = r->c->description;
    const size_t count = (size_t)model_slot_elements(&part, SLOT_WORD);
    float *rows = locus_allocate(r->m->allocator, count, sizeof(float));
    if (rows == NULL) return model_no_memory(r->error);
    r->c->description = &part;
    locus_status status = model_checkpoint_read(r->c, SLOT_WORD, index, rows, r->error);
    const int mapped = model_checkpoint_has(r->c, SLOT_EMBEDDING_MAP, index);
    if (status == LOCUS_OK && (mapped || part.embedding_width != part.width)) {
        status = model_checkpoint_read(r->c, SLOT_EMBEDDING_MAP, index, r->scratch, r->error);
        const size_t before = r->m->block_count;
        if (status == LOCUS_OK) status = model_pack_map(r, &map, part.width, part.embedding_width);
        if (status == LOCUS_OK)
            model_map_apply(r->m, r->linear, &map, to, rows, part.vocabulary, NULL);
        while (r->m->block_count > before)
            locus_release(r->m->allocator, r->m->blocks[--r->m->block_count]);
    } else if (status == LOCUS_OK)
        memcpy(to, rows, count * sizeof(float));
    r->c->description = whole;
    locus_release(r->m->allocator, rows);
    return status;
}

static locus_status read_clusters(loader *r)
{
    const model_description *d = r->d;
    if (r->m->trainable != NULL) return model_place_clusters(r);
    float *table = model_keep_floats(r->m, d->vocabulary * d->width);
    if (table == NULL) return model_no_memory(r->error);
    r->m->word = table;
    for (int64_t i = 0, first = 0; i < d->clusters; first = d->cluster_end[i++])
        LOCUS_TRY(read_cluster(r, i, first, table + first * d->width));
    return LOCUS_OK;
}

static locus_status read_whole(loader *r, const float **relative, const float **bias)
{
    locus_model *m = r->m;
    const model_description *d = r->d;
    LOCUS_TRY(model_read_array(r, SLOT_WORD, 0, &m->word));
    if (d->clusters > 0) LOCUS_TRY(read_clusters(r));
    if (d->shared_words) m->word = m->encoder->word;
    LOCUS_TRY(read_positions(r));
    LOCUS_TRY(read_rope(r));
    LOCUS_TRY(read_logits(r));
    LOCUS_TRY(model_read_array(r, SLOT_TYPE, 0, &m->type));
    LOCUS_TRY(model_read_norm(r, SLOT_EMBEDDING_NORM_GAIN, 0, &m->embedding_norm));
    LOCUS_TRY(model_read_norm(r, SLOT_FINAL_NORM_GAIN, 0, &m->final_norm));
    if (model_slot_wanted(d, SLOT_EMBEDDING_MAP))
        LOCUS_TRY(model_read_map(r, SLOT_EMBEDDING_MAP, 0, d->width, d->embedding_width,
                                 &m->embedding_map));
    if (model_slot_wanted(d, SLOT_HEAD_MAP))
        LOCUS_TRY(model_read_map(r, SLOT_HEAD_MAP, 0, d->width, d->width, &m->head_map));
    if (model_slot_wanted(d, SLOT_HEAD_OUT))
        LOCUS_TRY(model_read_map(r, SLOT_HEAD_OUT, 0, d->labels, d->width, &m->head_out));
    if (model_has_fill(d)) LOCUS_TRY(read_fill(r));
    LOCUS_TRY(read_convolution(r));
    LOCUS_TRY(model_make_window_rows(r));
    LOCUS_TRY(model_read_array(r, SLOT_BIAS, 0, bias));
    LOCUS_TRY(model_read_array(r, SLOT_RELATIVE, 0, relative));
    m->relative = *relative;
    if (!d->relative_norm) return LOCUS_OK;
    model_norm norm;
    LOCUS_TRY(model_read_norm(r, SLOT_RELATIVE_NORM_GAIN, 0, &norm));
    m->relative_norm = norm;
    if (m->trainable != NULL) return LOCUS_OK; /* in every pass */
    const locus_rows rows = {(float *)(uintptr_t)*relative, d->relative_rows, d->width};
    const locus_norm_rule rule = model_norm_rule(d, &norm, d->width);
    locus_norm_forward(&m->workers, &rule, &rows, &rows);
    return LOCUS_OK;
}

/* The largest of what is packed. */
static int64_t scratch_floats(const model_description *d)
{
    const int64_t counts[] = {d->conformer ? d->width * (d->depth_taps + 2) : 0,
                              d->width * d->cluster_width[0],
                              3 * model_slot_elements(d, SLOT_Q),
                              model_slot_elements(d, SLOT_IN),
                              model_slot_elements(d, SLOT_EMBEDDING_MAP),
                              model_slot_elements(d, SLOT_HEAD_MAP),
                              model_has_fill(d) ? model_slot_elements(d, SLOT_FILL_OUT) : 0,
                              d->head == LOCUS_MODEL_GENERATE ? model_slot_elements(d, SLOT_LOGITS)
                                                              : 0,
                              model_slot_elements(d, SLOT_HEAD_OUT)};
    int64_t most = 0;
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        if (counts[i] > most) most = counts[i];
    return most;
}

locus_status model_load(locus_model *m, model_checkpoint *c, locus_error *error)
{
    const model_description *d = &m->description;
    loader r = {.m = m, .c = c, .d = d, .error = error};
    const float *relative = NULL, *bias = NULL;
    LOCUS_TRY(check_all(c, d, error));
    const size_t layers = (size_t)weight_layers(d);
    m->layers = locus_allocate(m->allocator, layers, sizeof *m->layers);
    m->blocks =
        locus_allocate(m->allocator, BLOCKS_WHOLE + BLOCKS_LAYER * layers + (size_t)d->groups,
                       sizeof *m->blocks);
    r.scratch = locus_allocate(m->allocator, (size_t)scratch_floats(d), sizeof(float));
    r.linear = locus_allocate(m->allocator, (size_t)locus_linear_workspace(&m->linear), 1);
    locus_status status =
        m->layers != NULL && m->blocks != NULL && r.scratch != NULL && r.linear != NULL
            ? LOCUS_OK
            : model_no_memory(error);
    if (status == LOCUS_OK && m->can_train) status = model_place_all(&r);
    if (status == LOCUS_OK) status = read_whole(&r, &relative, &bias);
    for (int64_t l = 0; status == LOCUS_OK && l < (int64_t)layers; l++)
        status = read_layer(&r, l, relative, bias);
    locus_release(m->allocator, r.scratch);
    locus_release(m->allocator, r.linear);
    m->parameters = c->parameters;
    if (status == LOCUS_OK && m->trainable != NULL) model_arrange(m->trainable);
    return status;
}
