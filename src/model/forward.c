/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "model/pass.h"
#include "nn/embedding.h"
#include "nn/pooling.h"

/* One pass over all tokens of a batch, operator by operator. */
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

/* Rows of the position table. Padding, where the model knows it, is not counted. */
static void set_positions(const run *r)
{
    const locus_ragged *t = &r->pass->ragged;
    for (int64_t s = 0; s < t->sequences; s++) {
        int64_t next = r->d->first_position;
        for (int64_t i = t->offsets[s]; i < t->offsets[s + 1]; i++) {
            const int padding = r->d->padding >= 0 && r->batch->ids[i] == r->d->padding;
            r->w.position[i] = (int32_t)(padding ? r->d->padding : next++);
        }
    }
}

static void norm(const run *r, const model_norm *norm, float *y, const float *x, int64_t width)
{
    const locus_norm_rule rule = model_norm_rule(r->d, norm, width);
    const locus_rows to = {y, r->pass->tokens, width};
    const locus_rows from = {(float *)(uintptr_t)x, r->pass->tokens, width};
    locus_norm_forward(&r->m->workers, &rule, &to, &from);
}

static void embed(const run *r)
{
    const locus_model *m = r->m;
    const int64_t width = r->d->embedding_width;
    float *x = r->w.narrow != NULL ? r->w.narrow : r->w.h;
    const locus_rows y = {x, r->pass->tokens, width};
    const float factor = r->d->embedding_factor > 0.0 ? (float)r->d->embedding_factor : 1.0f;
    locus_embedding terms[3] = {{m->word, width, r->batch->ids, 0, factor}};
    int64_t count = 1;
    if (m->type != NULL)
        terms[count++] = (locus_embedding){m->type, width, r->batch->types, 0, 1.0f};
    if (m->position != NULL) {
        set_positions(r);
        terms[count++] = (locus_embedding){m->position, width, r->w.position, 0, 1.0f};
    }
    locus_embedding_forward(&m->workers, &y, terms, count, width);
    if (r->d->embedding_norm) norm(r, &m->embedding_norm, x, x, width);
    if (r->w.narrow != NULL)
        model_map_apply(m, r->w.linear, &m->embedding_map, r->w.h, x, r->pass->tokens, NULL);
}

/* ---- attention ---- */

static locus_status attend_sequence(const run *r, const model_layer *layer, int64_t s)
{
    const model_description *d = r->d;
    const int64_t first = r->pass->offsets[s], length = r->pass->offsets[s + 1] - first;
    const int64_t A = d->heads * d->head_dim;
    float *qkv = r->w.qkv + first * 3 * A;
    locus_tensors in = layer->tables;
    in.q = locus_view_bthd(qkv, 1, length, d->heads, d->head_dim);
    in.q.stride[0] = length * 3 * A;
    in.q.stride[2] = 3 * A;
    in.k = in.v = in.q;
    in.k.data = qkv + A;
    in.v.data = qkv + 2 * A;
    const locus_results results = {
        .size = sizeof results,
        .out = locus_view_bthd(r->w.heads + first * A, 1, length, d->heads, d->head_dim),
        .lse = locus_view(r->w.lse, LOCUS_F32, 3, (const int64_t[]){1, d->heads, length})};
    const int pairs = model_has_segments(r->pass, r->batch, s);
    if (d->distances) in.rel_k = model_distance_table(r->pass, r->w.distances);
    if (pairs) in.bias_dense = model_segment_scores(r->pass, r->batch, layer, &r->w, s);
    const locus_plan *plan = r->pass->plans[r->pass->plan_of[s] + (size_t)pairs].plan;
    return locus_forward(plan, &in, &results, r->w.attention, r->w.attention_bytes, r->error);
}

/* to = residual + map_o(attend(map_qkv(x))) */
static locus_status attention(const run *r, const model_layer *layer, float *to, const float *x,
                              const float *residual)
{
    const int64_t N = r->pass->tokens;
    model_map_apply(r->m, r->w.linear, &layer->qkv, r->w.qkv, x, N, NULL);
    model_distances_project(r->pass, layer, &r->w);
    for (int64_t s = 0; s < r->pass->ragged.sequences; s++)
        if (r->pass->offsets[s + 1] > r->pass->offsets[s]) LOCUS_TRY(attend_sequence(r, layer, s));
    model_map_apply(r->m, r->w.linear, &layer->o, to, r->w.heads, N,
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
static locus_status layer_norm_after(const run *r, const model_layer *layer)
{
    const int64_t E = r->d->width;
    LOCUS_TRY(attention(r, layer, r->w.other, r->w.h, r->w.h));
    norm(r, &layer->attention_norm, r->w.h, r->w.other, E);
    feed_forward(r, layer, r->w.other, r->w.h, r->w.h);
    norm(r, &layer->forward_norm, r->w.h, r->w.other, E);
    return LOCUS_OK;
}

/* h = h + sub(norm(h)) */
static locus_status layer_norm_before(const run *r, const model_layer *layer)
{
    const int64_t E = r->d->width;
    norm(r, &layer->attention_norm, r->w.other, r->w.h, E);
    LOCUS_TRY(attention(r, layer, r->w.sum, r->w.other, r->w.h));
    norm(r, &layer->forward_norm, r->w.other, r->w.sum, E);
    feed_forward(r, layer, r->w.h, r->w.other, r->w.sum);
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
    locus_convolution_forward(&f, &y, &x, &h, &r->pass->ragged);
    norm(r, &r->m->convolution_norm, r->w.h, r->w.other, E);
}

static void give_hidden(const run *r, int64_t which)
{
    float *const *hidden = r->results->hidden;
    if (hidden != NULL && hidden[which] != NULL)
        memcpy(hidden[which], r->w.h, (size_t)(r->pass->tokens * r->d->width) * sizeof(float));
}

static void give_embedding(const run *r)
{
    static const locus_pooling poolings[] = {[LOCUS_MODEL_POOL_CLS] = LOCUS_POOL_FIRST,
                                             [LOCUS_MODEL_POOL_MEAN] = LOCUS_POOL_MEAN,
                                             [LOCUS_MODEL_POOL_MAX] = LOCUS_POOL_MAX};
    if (r->results->embedding == NULL) return;
    const int64_t E = r->d->width;
    const locus_rows y = {r->results->embedding, r->pass->ragged.sequences, E};
    const locus_rows x = {r->w.h, r->pass->tokens, E};
    locus_pooling_forward(&r->m->workers, poolings[r->m->pooling], &y, &x, &r->pass->ragged, E);
    if (r->m->unit_length) locus_unit_forward(&r->m->workers, &y, &y, E);
}

/* Labels of tokens from their states; of a sequence from that of its first token through a map. */
static void give_logits(const run *r)
{
    const locus_model *m = r->m;
    const int64_t E = r->d->width, count = r->pass->ragged.sequences;
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
    locus_pooling_forward(&m->workers, LOCUS_POOL_FIRST, &y, &x, &r->pass->ragged, E);
    model_map_apply(m, r->w.linear, &m->head_map, r->w.pooled, r->w.firsts, count,
                    &(model_end){.activation = r->d->head_activation});
    model_map_apply(m, r->w.linear, &m->head_out, r->results->logits, r->w.pooled, count, NULL);
}

/* What attention was given in a layer that is through. */
static void give_qkv(const run *r, int64_t layer)
{
    if (r->results->qkv == NULL || r->results->qkv[layer] == NULL) return;
    const int64_t width = model_layer_at(r->m, layer)->qkv.packed.outputs;
    memcpy(r->results->qkv[layer], r->w.qkv, (size_t)(r->pass->tokens * width) * sizeof(float));
}

static locus_status run_layers(const run *r)
{
    embed(r);
    give_hidden(r, 0);
    if (r->w.first != NULL)
        memcpy(r->w.first, r->w.h, (size_t)(r->pass->tokens * r->d->width) * sizeof(float));
    for (int64_t l = 0; l < r->d->layers; l++) {
        const model_layer *layer = model_layer_at(r->m, l);
        LOCUS_TRY(r->d->norm_first ? layer_norm_before(r, layer) : layer_norm_after(r, layer));
        give_qkv(r, l);
        if (l == 0 && r->w.first != NULL) convolve(r);
        if (r->d->final_norm && l == r->d->layers - 1)
            norm(r, &r->m->final_norm, r->w.h, r->w.h, r->d->width);
        give_hidden(r, l + 1);
    }
    give_embedding(r);
    give_logits(r);
    return LOCUS_OK;
}

locus_status locus_model_forward(const locus_model_pass *pass, const locus_model_batch *batch,
                                 const locus_model_results *results, void *workspace,
                                 size_t workspace_bytes, locus_error *error)
{
    locus_model_batch own_batch = {.size = sizeof own_batch};
    locus_model_results own_results = {.size = sizeof own_results};
    if (pass == NULL || batch == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    LOCUS_ADOPT(batch, own_batch, "model batch", error);
    LOCUS_ADOPT(results, own_results, "model results", error);
    if ((batch->ids == NULL && pass->tokens > 0) || (workspace == NULL && pass->bytes > 0))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "model: NULL argument");
    if (workspace_bytes < pass->bytes || (uintptr_t)workspace % 8 != 0)
        return locus_fail(error, LOCUS_ERR_WORKSPACE,
                          "workspace: found %zu bytes at %s multiple of 8, expected %zu at a "
                          "multiple of 8",
                          workspace_bytes, (uintptr_t)workspace % 8 == 0 ? "a" : "no", pass->bytes);
    if (results->logits != NULL && pass->model->description.head == LOCUS_MODEL_NO_HEAD)
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
