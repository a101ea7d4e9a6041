/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "nn/activation.h"
#include "nn/cross_entropy.h"
#include "nn/embedding.h"
#include "nn/norm.h"
#include "train/model.h"

static float *gradient(const train_model *m, int index)
{
    return m->gradients + m->list.items[index].at;
}

/* dx (+)= the gradient through a norm of `count` rows x; its own parameters too. */
static void norm_backward(train_model *m, int weight, int bias, float *dx, float *dy, float *x,
                          int64_t count, int add_x, int add_parameters)
{
    const int64_t E = m->shape.width;
    const locus_norm_rule rule = train_norm(m, weight, bias);
    const locus_rows to = train_rows(dx, count, E), from = train_rows(dy, count, E);
    const locus_rows input = train_rows(x, count, E);
    const locus_norm_grad grad = {.x = dx != NULL ? &to : NULL,
                                  .gain = gradient(m, weight),
                                  .shift = gradient(m, bias),
                                  .add_x = add_x,
                                  .add_parameters = add_parameters};
    locus_norm_backward(&m->workers, &rule, &grad, &from, &input, m->workspace);
}

/* dx = dz W, dW = dz^T x for the weights of parameter `index`. */
static void linear_backward(train_model *m, int index, float *dx, float *dz, float *x,
                            int64_t count)
{
    const locus_tensor weight = train_matrix(m, m->weights, index);
    const locus_tensor dweight = train_matrix(m, m->gradients, index);
    const locus_linear linear = train_linear(m, &weight);
    const locus_row_batch to = train_row_batch(dx, count, weight.shape[1]);
    const locus_row_batch from = train_row_batch(dz, count, weight.shape[0]);
    const locus_row_batch input = train_row_batch(x, count, weight.shape[1]);
    locus_linear_backward(&linear, &from, &input,
                          &(const locus_linear_grad){.x = &to, .weight = &dweight});
}

/* From the loss to dh after the last block. */
static void output_backward(train_model *m, int64_t targets, float *dh)
{
    const int64_t V = m->shape.vocabulary;
    const locus_cross_entropy entropy = {.target = m->target, .width = V};
    const locus_rows x = train_rows(m->logits, m->kept, V);
    locus_cross_entropy_backward(&m->workers, &entropy, &x, &x, 1.0f / (float)targets);
    linear_backward(m, m->list.embed, m->dnormed, m->logits, m->normed, m->kept);
    norm_backward(m, m->list.norm_weight, m->list.norm_bias, dh, m->dnormed, m->last, m->kept, 0,
                  0);
}

/* dh of `count` rows, from after the feed-forward part to before it. */
static void feed_backward(train_model *m, int64_t number, float *dh, int64_t count)
{
    const int64_t E = m->shape.width;
    const train_block *block = &m->list.blocks[number];
    const train_saved *saved = &m->saved[number];
    linear_backward(m, block->w_2, m->dwide, dh, saved->active, count);
    const locus_rows dwide = train_rows(m->dwide, count, 4 * E);
    const locus_rows wide = train_rows(saved->wide, count, 4 * E);
    locus_activation_backward(&m->workers, LOCUS_GELU, &dwide, NULL, &dwide, &wide, NULL, 4 * E);
    linear_backward(m, block->w_1, m->dnormed, m->dwide, saved->kept_normed, count);
    norm_backward(m, block->norm2_weight, block->norm2_bias, dh, m->dnormed, saved->kept, count, 1,
                  0);
}

/* Gradients of tensors that all blocks share are made apart, then added: the layer writes. */
static void lend_shared(const train_model *m, int64_t number, locus_tensors *grad)
{
    enum { LINE_FLOATS = 16 };
    const train_parameters *list = &m->list;
    float *at = m->shared_gradient;
    for (size_t i = 0; i < list->scheme_tensors; i++) {
        if (!list->shared[i]) continue;
        const size_t count = list->items[list->blocks[number].scheme[i]].count;
        locus_tensor_named(grad, list->tensor[i])->data = at;
        at += (count + LINE_FLOATS - 1) / LINE_FLOATS * LINE_FLOATS;
    }
}

static void add_shared(const train_model *m, int64_t number, const locus_tensors *grad)
{
    const train_parameters *list = &m->list;
    locus_tensors parts = *grad;
    for (size_t i = 0; i < list->scheme_tensors; i++) {
        if (!list->shared[i]) continue;
        const train_parameter *item = &list->items[list->blocks[number].scheme[i]];
        const float *part = locus_tensor_named(&parts, list->tensor[i])->data;
        float *sum = m->gradients + item->at;
        if (number + 1 == m->shape.layers)
            memcpy(sum, part, item->count * sizeof *sum);
        else
            m->workers.kernels->add(sum, part, (int64_t)item->count);
    }
}

static locus_status attend_backward(train_model *m, const train_batch *batch,
                                    const train_memory *memory, int64_t number, locus_error *error)
{
    const int64_t B = batch->rows, T = batch->tokens, E = m->shape.width;
    const int64_t M = memory != NULL ? memory->rows : 0;
    const train_block *block = &m->list.blocks[number];
    const train_saved *saved = &m->saved[number];
    const int64_t shape[] = {B, T, E}, memory_shape[] = {B, M, E};
    locus_tensors in = train_block_tensors(m, number, m->weights);
    locus_tensors grad = train_block_tensors(m, number, m->gradients);
    in.x = locus_view(saved->normed, LOCUS_F32, 3, shape);
    grad.x = locus_view(m->dnormed, LOCUS_F32, 3, shape);
    if (M > 0) {
        in.memory = locus_view(saved->memory, LOCUS_F32, 3, memory_shape);
        grad.memory = locus_view(m->dmemory, LOCUS_F32, 3, memory_shape);
    }
    lend_shared(m, number, &grad);
    const locus_results dresults = {.size = sizeof dresults,
                                    .out = locus_view(m->dh, LOCUS_F32, 3, shape)};
    LOCUS_TRY(locus_layer_backward(m->layer, &in, &dresults, &grad, 0, saved->layer, m->saved_bytes,
                                   m->workspace, m->workspace_bytes, error));
    add_shared(m, number, &grad);
    norm_backward(m, block->norm1_weight, block->norm1_bias, m->dh, m->dnormed, saved->input, B * T,
                  1, 0);
    if (M > 0) /* the memory itself has no gradient, the norm that reads it has */
        norm_backward(m, block->norm1_weight, block->norm1_bias, NULL, m->dmemory,
                      memory->data[number], B * M, 0, 1);
    return LOCUS_OK;
}

static void embed_backward(train_model *m, const train_batch *batch)
{
    const int64_t E = m->shape.width;
    const train_parameters *list = &m->list;
    const locus_rows dh = train_rows(m->dh, batch->rows * batch->tokens, E);
    const locus_embedding tokens = {.stride = E, .id = batch->token, .factor = sqrtf((float)E)};
    locus_embedding_backward(&m->workers, gradient(m, list->embed), &tokens, &dh, E);
    if (list->input_positions < 0) return;
    const locus_embedding positions = {.stride = E, .id = m->position, .factor = 1.0f};
    float *table = gradient(m, list->input_positions);
    memset(table, 0, list->items[list->input_positions].count * sizeof *table);
    locus_embedding_backward(&m->workers, table, &positions, &dh, E);
}

locus_status train_backward(train_model *m, const train_batch *batch, const train_memory *memory,
                            int64_t targets, locus_error *error)
{
    const int64_t E = m->shape.width, all = batch->rows * batch->tokens, L = m->shape.layers;
    if (m->kept == 0) { /* nothing to learn from these rows */
        memset(m->gradients, 0, m->list.floats * sizeof(float));
        return LOCUS_OK;
    }
    output_backward(m, targets, m->dkept);
    feed_backward(m, L - 1, m->dkept, m->kept);
    memset(m->dh, 0, (size_t)(all * E) * sizeof(float));
    for (int64_t i = 0; i < m->kept; i++)
        memcpy(m->dh + m->place[i] * E, m->dkept + i * E, (size_t)E * sizeof(float));
    for (int64_t i = L - 1; i >= 0; i--) {
        if (i + 1 < L) feed_backward(m, i, m->dh, all);
        LOCUS_TRY(attend_backward(m, batch, memory, i, error));
    }
    embed_backward(m, batch);
    return LOCUS_OK;
}
