/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "model/tape.h"
#include "nn/embedding.h"
#include "nn/pooling.h"

/* One pass over all tokens of a batch, operator by operator: all of their sequences, or what
 * continues those of a cache. */
typedef struct run {
    const locus_model_pass *pass;
    const locus_model *m;
    const model_description *d;
    const locus_model_batch *batch;
    const locus_model_results *results;
    pass_work w;
    locus_error *error;
} run;

/* ---- checks ---- */

static locus_status check_ids(const char *what, const int32_t *ids, int64_t count, int64_t rows,
                              locus_error *error)
{
    for (int64_t i = 0; i < count; i++)
        if (ids[i] < 0 || ids[i] >= rows)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "token %" PRId64 ": found %s %" PRId32 ", expected 0 to %" PRId64, i,
                              what, ids[i], rows - 1);
    return LOCUS_OK;
}

static locus_status check_batch(const run *r)
{
    const int64_t N = r->pass->tokens;
    if (r->d->features == 0)
        LOCUS_TRY(check_ids("id", r->batch->ids, N, r->d->vocabulary, r->error));
    if (r->batch->rows != NULL) {
        if (r->batch->row_count < 0 || r->batch->row_count > N)
            return locus_fail(r->error, LOCUS_ERR_ARGUMENT,
                              "row_count: found %" PRId64 ", expected 0 to %" PRId64,
                              r->batch->row_count, N);
        for (int64_t i = 0; i < r->batch->row_count; i++)
            if (r->batch->rows[i] < 0 || r->batch->rows[i] >= N)
                return locus_fail(r->error, LOCUS_ERR_RANGE,
                                  "rows[%" PRId64 "]: found %" PRId32 ", expected 0 to %" PRId64, i,
                                  r->batch->rows[i], N - 1);
    }
    if (r->batch->types == NULL) return LOCUS_OK;
    const int64_t types = r->d->segments ? INT32_MAX : r->d->types > 0 ? r->d->types : 1;
    return check_ids("type", r->batch->types, N, types, r->error);
}

/* ---- embeddings ---- */

/* Tokens of a sequence that went before. */
static int64_t past_of(const run *r, int64_t s)
{
    return r->pass->cache != NULL ? r->pass->cache->past[s] : 0;
}

/* Rows of the position table. Padding, where the model knows it, is not counted. */
static void set_positions(const run *r)
{
    const locus_ragged *t = &r->pass->ragged;
    for (int64_t s = 0; s < t->sequences; s++) {
        int64_t next = r->d->first_position + past_of(r, s);
        for (int64_t i = t->offsets[s]; i < t->offsets[s + 1]; i++) {
            const int padding = r->d->padding >= 0 && r->batch->ids[i] == r->d->padding;
            r->w.position[i] = (int32_t)(padding ? r->d->padding : next++);
        }
    }
}

static void norm(const run *r, const model_norm *norm, float *y, const float *x, int64_t width)
{
    const locus_norm_rule rule = model_norm_rule(r->d, norm, width);
    model_norm_apply(r->m, &rule, y, x, r->pass->tokens);
}

/* Rows of numbers in place of tokens. */
static void take_features(const run *r)
{
    const int64_t N = r->pass->tokens, width = r->d->features;
    locus_norm_rule rule = model_norm_rule(r->d, &r->m->embedding_norm, width);
    rule.epsilon = (float)model_outer_epsilon(r->d);
    model_norm_apply(r->m, &rule, r->w.narrow, r->batch->features, N);
    model_map_apply(r->m, r->w.linear, &r->m->embedding_map, r->w.h, r->w.narrow, N, NULL);
}

static void embed(const run *r)
{
    if (r->d->features > 0) {
        take_features(r);
        return;
    }
    const locus_model *m = r->m;
    const int64_t width = r->d->embedding_width;
    float *x = r->w.narrow != NULL ? r->w.narrow : r->w.h;
    const locus_rows y = {x, r->pass->tokens, width};
    const int late = r->d->late_positions && r->w.narrow != NULL;
    const float factor = r->d->embedding_factor > 0.0 ? (float)r->d->embedding_factor : 1.0f;
    locus_embedding terms[3] = {{model_words(r->pass, &r->w), width, r->batch->ids, 0, factor}};
    int64_t count = 1;
    if (m->type != NULL)
        terms[count++] = (locus_embedding){m->type, width, r->batch->types, 0, 1.0f};
    if (m->position != NULL) set_positions(r);
    const locus_embedding positions = {m->position, late ? r->d->width : width, r->w.position, 0,
                                       1.0f};
    if (m->position != NULL && !late) terms[count++] = positions;
    model_embed_apply(m, &y, terms, count, width, 1);
    if (r->d->embedding_norm) norm(r, &m->embedding_norm, x, x, width);
    if (r->w.narrow == NULL) return;
    const locus_rows wide = {r->w.other, r->pass->tokens, r->d->width};
    if (late) model_embed_apply(m, &wide, &positions, 1, r->d->width, 0);
    model_map_apply(m, r->w.linear, &m->embedding_map, r->w.h, x, r->pass->tokens,
                    &(model_end){.residual = late ? r->w.other : NULL});
}

/* ---- attention ---- */

/* Where the rows of q, k or v lie: `heads` heads one behind the other in rows `width` apart. */
static locus_tensor rows_of(const run *r, const float *data, int64_t rows, int64_t heads,
                            int64_t width)
{
    locus_tensor view = locus_view_bthd((float *)(uintptr_t)data, 1, rows, heads, r->d->head_dim);
    view.stride[0] = rows * width;
    view.stride[2] = width;
    return view;
}

static locus_status attend(const run *r, const model_layer *layer, const locus_tensors *in,
                           size_t plan, int64_t first, int64_t length)
{
    const model_description *d = r->d;
    const int64_t A = d->heads * d->head_dim;
    const locus_results results = {
        .size = sizeof results,
        .out = locus_view_bthd(r->w.heads + first * A, 1, length, d->heads, d->head_dim),
        .lse = locus_view(r->w.lse, LOCUS_F32, 3, (const int64_t[]){1, d->heads, length})};
    if (r->m->tape != NULL)
        return model_tape_attend(r->m, r->pass->plans[plan].plan, in, &results, layer,
                                 in->bias_dense.rank != 0 ? r->batch->types + first : NULL,
                                 r->w.attention, r->w.attention_bytes, r->error);
    return locus_forward(r->pass->plans[plan].plan, in, &results, r->w.attention,
                         r->w.attention_bytes, r->error);
}

/* Cosines and sines of all tokens, by their positions. */
static void set_turns(const run *r)
{
    const int64_t pairs = r->d->head_dim / 2;
    float frequency[MODEL_MOST_PAIRS];
    for (int64_t s = 0; s < r->pass->ragged.sequences; s++) {
        const int64_t first = r->pass->offsets[s], end = r->pass->offsets[s + 1];
        if (end == first) continue; /* it has no plan, which would have bounded the pairs */
        model_rope_frequencies(r->d, past_of(r, s) + end - first, frequency);
        for (int64_t i = first; i < end; i++)
            for (int64_t t = 0; t < pairs; t++) {
                const double angle = (double)(past_of(r, s) + i - first) * (double)frequency[t];
                r->w.turns[2 * i * pairs + t] = (float)cos(angle);
                r->w.turns[(2 * i + 1) * pairs + t] = (float)sin(angle);
            }
    }
}

/* Put k and v of a sequence's tokens behind those of the cache, turned if need be. Returns the
 * first of them all. */
static const float *remember(const run *r, int64_t layer, int64_t s)
{
    const model_description *d = r->d;
    const model_cache *c = r->pass->cache;
    const int64_t first = r->pass->offsets[s], length = r->pass->offsets[s + 1] - first;
    const int64_t D = d->head_dim, width = model_qkv_width(d), kv = model_kv_width(d);
    const int interleaved = d->options.pairing == LOCUS_PAIRING_INTERLEAVED;
    float *qkv = r->w.qkv + first * width;
    for (int64_t h = 0; r->w.turns != NULL && h < d->heads + d->kv_heads; h++)
        r->m->workers.kernels->turn(qkv + h * D, width, qkv + h * D, width, r->w.turns + first * D,
                                    D / 2, interleaved, 1.0f, length, D,
                                    (locus_prefetch_rows){.rows = NULL});
    float *row = c->kv + (layer * c->rows + c->slot[s]) * c->capacity * kv;
    for (int64_t i = 0; i < length; i++)
        memcpy(row + (c->past[s] + i) * kv, qkv + i * width + d->heads * D,
               (size_t)kv * sizeof(float));
    return row;
}

/* k and v of a sequence behind those of its memory. Returns the first of them all. */
static const float *put_before(const run *r, int64_t layer, int64_t s)
{
    const int64_t A = r->d->heads * r->d->head_dim, M = r->d->memory, E = r->d->width;
    const int64_t first = r->pass->offsets[s], length = r->pass->offsets[s + 1] - first;
    if (r->batch->memory == NULL) /* maps without biases make nothing of nothing */
        memset(r->w.kv, 0, (size_t)(M * 2 * A) * sizeof(float));
    else {
        model_map_apply(r->m, r->w.linear, &model_layer_at(r->m, layer)->qkv, r->w.before,
                        r->batch->memory[layer] + s * M * E, M, NULL);
        model_copy_apply(r->m, r->w.kv, 2 * A, r->w.before + A, 3 * A, M, 2 * A);
    }
    model_copy_apply(r->m, r->w.kv + M * 2 * A, 2 * A, r->w.qkv + first * 3 * A + A, 3 * A, length,
                     2 * A);
    model_tape_hold(r->m, r->w.kv, (M + length) * 2 * A);
    return r->w.kv;
}

/* Rows of q from `first` on, and of k and v with what belongs to a layer. */
static locus_tensors inputs_of(const run *r, int64_t layer, int64_t first, int64_t queries,
                               const float *k, int64_t keys, int64_t stride)
{
    const model_description *d = r->d;
    const int64_t width = model_qkv_width(d);
    locus_tensors in = model_layer_at(r->m, layer)->tables;
    in.q = rows_of(r, r->w.qkv + first * width, queries, d->heads, width);
    in.k = rows_of(r, k, keys, d->kv_heads, stride);
    in.v = rows_of(r, k + d->kv_heads * d->head_dim, keys, d->kv_heads, stride);
    if (d->distances) in.rel_k = model_distance_table(r->pass, r->w.distances);
    if (r->w.relative_k != NULL) in.rel_k.data = r->w.relative_k;
    if (r->w.relative_q != NULL) in.rel_q.data = r->w.relative_q;
    return in;
}

/* All sequences in one call: each has the bits of a call of its own. */
static locus_status attend_together(const run *r, int64_t layer)
{
    const int64_t N = r->pass->tokens;
    const float *k = r->w.qkv + r->d->heads * r->d->head_dim;
    locus_tensors in = inputs_of(r, layer, 0, N, k, N, model_qkv_width(r->d));
    in.q_offsets = in.k_offsets = model_pass_offsets(r->pass);
    return attend(r, model_layer_at(r->m, layer), &in, r->pass->plan_of[0], 0, N);
}

static locus_status attend_sequence(const run *r, int64_t layer, int64_t s)
{
    const model_description *d = r->d;
    const int64_t first = r->pass->offsets[s], length = r->pass->offsets[s + 1] - first;
    const int64_t width = model_qkv_width(d);
    const float *k = r->w.qkv + first * width + d->heads * d->head_dim;
    int64_t keys = length, stride = width;
    if (r->pass->cache != NULL && r->pass->cache->kv != NULL) {
        k = remember(r, layer, s);
        keys += past_of(r, s);
        stride = model_kv_width(d);
    }
    if (d->memory > 0) {
        k = put_before(r, layer, s);
        keys += d->memory;
        stride = model_kv_width(d);
    }
    locus_tensors in = inputs_of(r, layer, first, length, k, keys, stride);
    const int pairs = model_has_segments(r->pass, r->batch, s);
    if (r->pass->cache != NULL) in.frequencies = (locus_tensor){.rank = 0};
    if (pairs)
        in.bias_dense =
            model_segment_scores(r->pass, r->batch, model_layer_at(r->m, layer), &r->w, s);
    return attend(r, model_layer_at(r->m, layer), &in, r->pass->plan_of[s] + (size_t)pairs, first,
                  length);
}

/* q, k and v as `qkv` has them: q and k of turned input, v of x. */
static void make_turned(const run *r, const model_layer *layer, const float *x)
{
    const int64_t N = r->pass->tokens, A = r->d->heads * r->d->head_dim;
    model_map_apply(r->m, r->w.linear, &layer->qkv, r->w.qkv, x, N, NULL);
    /* its v stay; heads is free until attention */
    model_copy_apply(r->m, r->w.heads, A, r->w.qkv + 2 * A, 3 * A, N, A);
    model_map_apply(r->m, r->w.linear, &layer->qkv, r->w.qkv, r->w.turned, N, NULL);
    model_copy_apply(r->m, r->w.qkv + 2 * A, 3 * A, r->w.heads, A, N, A);
}

/* What attention is given, where somebody wants to see it: `count` floats of a layer. */
static void show(float *const *arrays, int64_t layer, const float *from, int64_t count)
{
    if (arrays != NULL && arrays[layer] != NULL)
        memcpy(arrays[layer], from, (size_t)count * sizeof(float));
}

/* to = residual + map_o(attend(map_qkv(x))) */
static locus_status attention(const run *r, int64_t l, float *to, const float *x,
                              const float *residual)
{
    const model_layer *layer = model_layer_at(r->m, l);
    const int64_t N = r->pass->tokens;
    if (r->w.turned != NULL) {
        model_turns_apply(r->pass, &r->w, x);
        make_turned(r, layer, x);
    } else
        model_map_apply(r->m, r->w.linear, &layer->qkv, r->w.qkv, x, N, NULL);
    model_distances_project(r->pass, layer, &r->w);
    model_relative_project(r->pass, layer, &r->w);
    model_tape_hold(r->m, r->w.qkv, N * model_qkv_width(r->d));
    show(r->results->qkv, l, r->w.qkv, N * model_qkv_width(r->d));
    if (r->pass->together) LOCUS_TRY(attend_together(r, l));
    for (int64_t s = 0; s < r->pass->ragged.sequences && !r->pass->together; s++)
        if (r->pass->offsets[s + 1] > r->pass->offsets[s]) LOCUS_TRY(attend_sequence(r, l, s));
    model_tape_attended(r->m, r->w.heads, N * r->d->heads * r->d->head_dim);
    model_map_apply(r->m, r->w.linear, &layer->o, to, r->w.heads, N,
                    &(model_end){.residual = residual});
    return LOCUS_OK;
}

/* k and v of the encoder's states, unless a session has those of all layers. */
static void project_source(const run *r, const model_layer *layer, int64_t l)
{
    const model_cache *c = r->pass->cache;
    if (c->states == NULL) return;
    model_map_apply(r->m, r->w.linear, &layer->cross_kv, c->projected, c->states, c->source_tokens,
                    NULL);
    model_tape_hold(r->m, c->projected, c->source_tokens * 2 * r->d->heads * r->d->head_dim);
    show(r->results->cross_kv, l, c->projected,
         c->source_tokens * 2 * r->d->heads * r->d->head_dim);
}

static locus_status attend_source(const run *r, int64_t layer, int64_t s)
{
    const model_description *d = r->d;
    const model_cache *c = r->pass->cache;
    const int64_t first = r->pass->offsets[s], length = r->pass->offsets[s + 1] - first;
    const int64_t A = d->heads * d->head_dim, *text = c->source_offsets + c->text[s];
    const int64_t block = c->states != NULL ? 0 : layer * c->source_tokens;
    const float *k = c->source + (block + text[0]) * 2 * A;
    locus_tensors in = {.size = sizeof in};
    in.q = rows_of(r, r->w.qkv + first * A, length, d->heads, A);
    in.k = rows_of(r, k, text[1] - text[0], d->heads, 2 * A);
    in.v = rows_of(r, k + A, text[1] - text[0], d->heads, 2 * A);
    return attend(r, model_layer_at(r->m, layer), &in, r->pass->cross_plan_of[s], first, length);
}

/* to = residual + map_o(attend(map_q(x), k and v of the encoder's states)) */
static locus_status cross_attention(const run *r, int64_t l, float *to, const float *x,
                                    const float *residual)
{
    const model_layer *layer = model_layer_at(r->m, l);
    const int64_t N = r->pass->tokens;
    project_source(r, layer, l);
    model_map_apply(r->m, r->w.linear, &layer->cross_q, r->w.qkv, x, N, NULL);
    model_tape_hold(r->m, r->w.qkv, N * r->d->heads * r->d->head_dim);
    show(r->results->cross_q, l, r->w.qkv, N * r->d->heads * r->d->head_dim);
    for (int64_t s = 0; s < r->pass->ragged.sequences; s++)
        if (r->pass->offsets[s + 1] > r->pass->offsets[s]) LOCUS_TRY(attend_source(r, l, s));
    model_tape_attended(r->m, r->w.heads, N * r->d->heads * r->d->head_dim);
    model_map_apply(r->m, r->w.linear, &layer->cross_o, to, r->w.heads, N,
                    &(model_end){.residual = residual});
    return LOCUS_OK;
}

/* ---- feed-forward ---- */

/* to = residual + map_out(activation(map_in(x)) [* map_gate(x)]) */
static void feed_forward(const run *r, const model_layer *layer, float *to, const float *x,
                         const float *residual)
{
    const int64_t N = r->pass->tokens;
    model_end end = {.activation = r->d->activation};
    if (r->d->forward_taps > 1) {
        model_taps_forward(r->pass, layer, &r->w, to, x, residual);
        return;
    }
    if (r->d->gated) {
        model_map_apply(r->m, r->w.linear, &layer->gate, r->w.gate, x, N, NULL);
        end.gate = r->w.gate;
    }
    model_map_apply(r->m, r->w.linear, &layer->in, r->w.inner, x, N, &end);
    model_map_apply(r->m, r->w.linear, &layer->out, to, r->w.inner, N,
                    &(model_end){.residual = residual});
}

/* ---- layers ---- */

/* h = norm(other); other = h + sub(h): what is in the stream lies in h before and after. */
static locus_status layer_norm_after(const run *r, int64_t l)
{
    const model_layer *layer = model_layer_at(r->m, l);
    const int64_t E = r->d->width;
    LOCUS_TRY(attention(r, l, r->w.other, r->w.h, r->w.h));
    norm(r, &layer->attention_norm, r->w.h, r->w.other, E);
    if (r->d->cross) {
        LOCUS_TRY(cross_attention(r, l, r->w.other, r->w.h, r->w.h));
        norm(r, &layer->cross_norm, r->w.h, r->w.other, E);
    }
    feed_forward(r, layer, r->w.other, r->w.h, r->w.h);
    norm(r, &layer->forward_norm, r->w.h, r->w.other, E);
    return LOCUS_OK;
}

/* h = h + sub(norm(h)) */
static locus_status layer_norm_before(const run *r, int64_t l)
{
    const model_layer *layer = model_layer_at(r->m, l);
    const int64_t E = r->d->width;
    const float *stream = r->w.sum;
    norm(r, &layer->attention_norm, r->w.other, r->w.h, E);
    LOCUS_TRY(attention(r, l, r->w.sum, r->w.other, r->w.h));
    if (r->d->cross) {
        norm(r, &layer->cross_norm, r->w.other, stream, E);
        LOCUS_TRY(cross_attention(r, l, r->w.between, r->w.other, stream));
        stream = r->w.between;
    }
    norm(r, &layer->forward_norm, r->w.other, stream, E);
    feed_forward(r, layer, r->w.h, r->w.other, stream);
    return LOCUS_OK;
}

/* to = residual + half of map_out(activation(map_in(x))): the half is in its last map. */
static void half_forward(const run *r, const model_map *in, const model_map *out, float *to,
                         const float *residual)
{
    const int64_t N = r->pass->tokens;
    model_map_apply(r->m, r->w.linear, in, r->w.inner, r->w.other, N,
                    &(model_end){.activation = r->d->activation});
    model_map_apply(r->m, r->w.linear, out, to, r->w.inner, N, &(model_end){.residual = residual});
}

static locus_status layer_conformer(const run *r, int64_t l)
{
    const int64_t E = r->d->width;
    const model_layer *layer = model_layer_at(r->m, l);
    norm(r, &layer->first_norm, r->w.other, r->w.h, E);
    half_forward(r, &layer->first_in, &layer->first_out, r->w.sum, r->w.h);
    norm(r, &layer->attention_norm, r->w.other, r->w.sum, E);
    LOCUS_TRY(attention(r, l, r->w.h, r->w.other, r->w.sum));
    model_depth_forward(r->pass, layer, &r->w, r->w.sum, r->w.h, r->w.other);
    norm(r, &layer->forward_norm, r->w.other, r->w.sum, E);
    half_forward(r, &layer->in, &layer->out, r->w.h, r->w.sum);
    norm(r, &layer->last_norm, r->w.h, r->w.h, E);
    return LOCUS_OK;
}

/* h = norm(h + activation(convolution of the embeddings)), as DeBERTa v2 has it. */
static void convolve(const run *r)
{
    const int64_t E = r->d->width;
    const locus_rows y = {r->w.other, r->pass->tokens, E}, x = {r->w.first, r->pass->tokens, E};
    const locus_rows h = {r->w.h, r->pass->tokens, E};
    locus_convolution f = model_convolution(r->m);
    f.workspace = r->w.convolution;
    model_convolution_apply(r->m, &f, &y, &x, &h, &r->pass->ragged);
    norm(r, &r->m->convolution_norm, r->w.h, r->w.other, E);
}

/* The last states as the model gives them away. */
static const float *narrow(const run *r, const float *states, int64_t rows)
{
    if (r->w.narrowed == NULL) return states;
    model_map_apply(r->m, r->w.linear, &r->m->narrow, r->w.narrowed, states, rows, NULL);
    return r->w.narrowed;
}

static void give_hidden(const run *r, int64_t which)
{
    float *const *hidden = r->results->hidden;
    const int last = which == r->d->layers;
    float *to = hidden != NULL ? hidden[which] : NULL;
    if (to == NULL && r->m->tape == NULL) return;
    const int64_t width = last ? model_last_width(r->m) : r->d->width;
    const float *states = last ? narrow(r, r->w.h, r->pass->tokens) : r->w.h;
    if (r->m->tape != NULL) model_tape_give(r->m, states, r->pass->tokens, width, which);
    if (to != NULL) memcpy(to, states, (size_t)(r->pass->tokens * width) * sizeof(float));
}

static void give_embedding(const run *r)
{
    static const locus_pooling poolings[] = {[LOCUS_MODEL_POOL_CLS] = LOCUS_POOL_FIRST,
                                             [LOCUS_MODEL_POOL_MEAN] = LOCUS_POOL_MEAN,
                                             [LOCUS_MODEL_POOL_MAX] = LOCUS_POOL_MAX};
    if (r->results->embedding == NULL) return;
    const int64_t width = model_last_width(r->m);
    const float *states = narrow(r, r->w.h, r->pass->tokens);
    const locus_rows y = {r->results->embedding, r->pass->ragged.sequences, width};
    const locus_rows x = {(float *)(uintptr_t)states, r->pass->tokens, width};
    model_pool_apply(r->m, poolings[r->m->pooling], &y, &x, &r->pass->ragged, width);
    if (r->m->unit_length) model_unit_apply(r->m, &y, width);
}

/* Logits of the token behind each of `rows` states. */
static void give_continuation(const run *r, float *logits, const float *states, int64_t rows)
{
    if (r->d->fill_next)
        model_fill_rows(r->m, &r->w, logits, states, rows);
    else
        model_map_apply(r->m, r->w.linear, &r->m->logits, logits, narrow(r, states, rows), rows,
                        NULL);
}

/* Behind every token, and behind the last one of each sequence that has any. */
static void give_next(const run *r)
{
    const int64_t E = r->d->width, *offsets = r->pass->offsets;
    int64_t count = 0;
    if (r->results->logits != NULL)
        give_continuation(r, r->results->logits, r->w.h, r->pass->tokens);
    if (r->results->next == NULL) return;
    for (int64_t s = 0; s < r->pass->ragged.sequences; s++)
        if (offsets[s + 1] > offsets[s])
            memcpy(r->w.firsts + count++ * E, r->w.h + (offsets[s + 1] - 1) * E,
                   (size_t)E * sizeof(float));
    give_continuation(r, r->results->next, r->w.firsts, count);
}

/* Labels of tokens from their states; of a sequence from that of its first token through a map. */
static void give_logits(const run *r)
{
    const locus_model *m = r->m;
    const int64_t E = r->d->width, count = r->pass->ragged.sequences;
    if (r->d->head == LOCUS_MODEL_GENERATE) {
        give_next(r);
        return;
    }
    if (r->results->logits == NULL) return;
    if (r->d->head == LOCUS_MODEL_FILL) {
        model_fill(r->pass, r->batch, &r->w, r->results->logits);
        return;
    }
    if (r->d->head == LOCUS_MODEL_TAG || r->d->head == LOCUS_MODEL_PRIOR) {
        model_map_apply(m, r->w.linear, &m->head_out, r->results->logits, r->w.h, r->pass->tokens,
                        NULL);
        return;
    }
    const locus_rows y = {r->w.firsts, count, E}, x = {r->w.h, r->pass->tokens, E};
    model_pool_apply(m, LOCUS_POOL_FIRST, &y, &x, &r->pass->ragged, E);
    model_map_apply(m, r->w.linear, &m->head_map, r->w.pooled, r->w.firsts, count,
                    &(model_end){.activation = r->d->head_activation});
    model_map_apply(m, r->w.linear, &m->head_out, r->results->logits, r->w.pooled, count, NULL);
}

/* The norm behind the last layer. */
static void outer_norm(const run *r, const model_norm *norm)
{
    locus_norm_rule rule = model_norm_rule(r->d, norm, r->d->width);
    rule.epsilon = (float)model_outer_epsilon(r->d);
    model_norm_apply(r->m, &rule, r->w.h, r->w.h, r->pass->tokens);
}

static locus_status run_layers(const run *r)
{
    embed(r);
    if (r->w.turns != NULL) set_turns(r);
    give_hidden(r, 0);
    if (r->w.first != NULL)
        model_copy_apply(r->m, r->w.first, r->d->width, r->w.h, r->d->width, r->pass->tokens,
                         r->d->width);
    model_relative_norm(r->pass, &r->w);
    for (int64_t l = 0; l < r->d->layers; l++) {
        LOCUS_TRY(r->d->conformer    ? layer_conformer(r, l)
                  : r->d->norm_first ? layer_norm_before(r, l)
                                     : layer_norm_after(r, l));
        if (l == 0 && r->w.first != NULL) convolve(r);
        if (r->d->final_norm && l == r->d->layers - 1) outer_norm(r, &r->m->final_norm);
        give_hidden(r, l + 1);
    }
    give_embedding(r);
    give_logits(r);
    return LOCUS_OK;
}

locus_status model_forward_stack(const locus_model_pass *pass, const locus_model_batch *batch,
                                 const locus_model_results *results, void *workspace,
                                 size_t workspace_bytes, locus_error *error)
{
    const int features = pass->model->description.features > 0;
    if (pass->tokens > 0 && (features ? (const void *)batch->features : batch->ids) == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: no %s, which it takes",
                          features ? "features" : "ids");
    if (workspace == NULL && pass->bytes > 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (workspace_bytes < pass->bytes || (uintptr_t)workspace % 8 != 0)
        return locus_fail(error, LOCUS_ERR_WORKSPACE,
                          "workspace: found %zu bytes at %s multiple of 8, expected %zu at a "
                          "multiple of 8",
                          workspace_bytes, (uintptr_t)workspace % 8 == 0 ? "a" : "no", pass->bytes);
    if ((results->logits != NULL || results->next != NULL) &&
        pass->model->description.head == LOCUS_MODEL_NO_HEAD)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "logits: the model has no head that gives them");
    run r = {.pass = pass,
             .m = pass->model,
             .d = &pass->model->description,
             .batch = batch,
             .results = results,
             .error = error};
    LOCUS_TRY(check_batch(&r));
    const uintptr_t start = ((uintptr_t)workspace + LOCUS_ALIGNMENT - 1) & ~(LOCUS_ALIGNMENT - 1);
    if (!model_pass_carve(pass, (void *)start, &r.w))
        return locus_fail(error, LOCUS_ERR_WORKSPACE, "workspace: cannot be laid out");
    return run_layers(&r);
}
