/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "nn/activation.h"
#include "nn/cross_entropy.h"
#include "nn/embedding.h"
#include "nn/norm.h"
#include "train/model.h"

/* ---- input ---- */

static void place_positions(train_model *m, const train_batch *batch)
{
    const int64_t rows = batch->rows, tokens = batch->tokens;
    for (int64_t b = 0; b < rows; b++)
        for (int64_t t = 0; t < tokens; t++)
            m->position[b * tokens + t] =
                batch->position != NULL ? batch->position[b * tokens + t] : (int32_t)t;
}

/* h = embed[token] sqrt(E) + positions */
static void embed(train_model *m, const train_batch *batch)
{
    const int64_t E = m->shape.width;
    const train_parameters *list = &m->list;
    const locus_rows h = train_rows(m->saved[0].input, batch->rows * batch->tokens, E);
    locus_embedding terms[2] = {{.table = m->weights + list->items[list->embed].at,
                                 .stride = E,
                                 .id = batch->token,
                                 .factor = sqrtf((float)E)},
                                {.stride = E, .id = m->position, .factor = 1.0f}};
    if (list->input_positions >= 0)
        terms[1].table = m->weights + list->items[list->input_positions].at;
    else
        terms[1].table = m->sinusoid; /* NULL for every other scheme */
    if (terms[1].table != NULL) place_positions(m, batch);
    locus_embedding_forward(&m->workers, &h, terms, terms[1].table != NULL ? 2 : 1, E);
}

/* The rows that count, in their order. */
static void choose_rows(train_model *m, const train_batch *batch)
{
    m->kept = 0;
    for (int64_t i = 0; i < batch->rows * batch->tokens; i++) {
        if (batch->weight[i] == 0.0f) continue;
        m->target[m->kept] = batch->target[i];
        m->place[m->kept++] = i;
    }
}

/* ---- blocks ---- */

static locus_status attend(train_model *m, const train_batch *batch, const train_memory *memory,
                           int64_t number, locus_error *error)
{
    const int64_t B = batch->rows, T = batch->tokens, E = m->shape.width;
    const train_block *block = &m->list.blocks[number];
    const train_saved *saved = &m->saved[number];
    const locus_norm_rule rule = train_norm(m, block->norm1_weight, block->norm1_bias);
    const locus_rows h = train_rows(saved->input, B * T, E),
                     x = train_rows(saved->normed, B * T, E);
    locus_norm_forward(&m->workers, &rule, &x, &h);
    locus_tensors in = train_block_tensors(m, number, m->weights);
    in.x = locus_view(saved->normed, LOCUS_F32, 3, (const int64_t[]){B, T, E});
    if (memory != NULL && memory->rows > 0) {
        const locus_rows from = train_rows(memory->data[number], B * memory->rows, E);
        const locus_rows to = train_rows(saved->memory, B * memory->rows, E);
        locus_norm_forward(&m->workers, &rule, &to, &from);
        in.memory = locus_view(saved->memory, LOCUS_F32, 3, (const int64_t[]){B, memory->rows, E});
    }
    const locus_results results = {
        .size = sizeof results,
        .out = locus_view(m->out, LOCUS_F32, 3, (const int64_t[]){B, T, E}),
        .lse = locus_view(m->lse, LOCUS_F32, 3, (const int64_t[]){B, m->shape.heads, T})};
    return locus_layer_forward(m->layer, &in, &results, saved->layer, m->saved_bytes, m->workspace,
                               m->workspace_bytes, error);
}

/* middle = input + attention; of the last block, the rows that count go on. */
static int64_t add_attention(train_model *m, const train_batch *batch, int64_t number)
{
    const int64_t E = m->shape.width, all = batch->rows * batch->tokens;
    const train_saved *saved = &m->saved[number];
    const locus_kernels *kernels = m->workers.kernels;
    const size_t row = (size_t)E * sizeof(float);
    const int last = number + 1 == m->shape.layers;
    const int64_t count = last ? m->kept : all;
    for (int64_t i = 0; i < count; i++) {
        const int64_t from = last ? m->place[i] : i;
        memcpy(saved->kept + i * E, saved->input + from * E, row);
        kernels->add(saved->kept + i * E, m->out + from * E, E);
    }
    return count;
}

/* out = kept + W_2 gelu(W_1 LN2(kept)) */
static void feed(train_model *m, int64_t number, int64_t count, float *out)
{
    const int64_t E = m->shape.width;
    const train_block *block = &m->list.blocks[number];
    const train_saved *saved = &m->saved[number];
    const locus_norm_rule rule = train_norm(m, block->norm2_weight, block->norm2_bias);
    const locus_rows h = train_rows(saved->kept, count, E);
    const locus_rows x = train_rows(saved->kept_normed, count, E);
    locus_norm_forward(&m->workers, &rule, &x, &h);
    const locus_tensor w_1 = train_matrix(m, m->weights, block->w_1);
    const locus_tensor w_2 = train_matrix(m, m->weights, block->w_2);
    const locus_linear up = train_linear(m, &w_1), down = train_linear(m, &w_2);
    const locus_row_batch narrow = train_row_batch(saved->kept_normed, count, E);
    const locus_row_batch wide = train_row_batch(saved->wide, count, 4 * E);
    const locus_row_batch active = train_row_batch(saved->active, count, 4 * E);
    const locus_row_batch residual = train_row_batch(saved->kept, count, E);
    const locus_row_batch to = train_row_batch(out, count, E);
    locus_linear_forward(&up, &wide, &narrow, NULL);
    const locus_rows z = train_rows(saved->wide, count, 4 * E);
    const locus_rows y = train_rows(saved->active, count, 4 * E);
    locus_activation_forward(&m->workers, LOCUS_GELU, &y, &z, NULL, 4 * E);
    const locus_linear_end end = {.activation = LOCUS_IDENTITY, .residual = &residual};
    locus_linear_forward(&down, &to, &active, &end);
}

locus_status train_forward(train_model *m, const train_batch *batch, const train_memory *memory,
                           locus_error *error)
{
    const int64_t E = m->shape.width, L = m->shape.layers;
    choose_rows(m, batch);
    embed(m, batch);
    for (int64_t i = 0; i < L; i++) {
        LOCUS_TRY(attend(m, batch, memory, i, error));
        const int64_t count = add_attention(m, batch, i);
        feed(m, i, count, i + 1 < L ? m->saved[i + 1].input : m->last);
    }
    const locus_norm_rule rule = train_norm(m, m->list.norm_weight, m->list.norm_bias);
    const locus_rows h = train_rows(m->last, m->kept, E), x = train_rows(m->normed, m->kept, E);
    locus_norm_forward(&m->workers, &rule, &x, &h);
    const locus_tensor table = train_matrix(m, m->weights, m->list.embed);
    const locus_linear linear = train_linear(m, &table);
    const locus_row_batch from = train_row_batch(m->normed, m->kept, E);
    const locus_row_batch to = train_row_batch(m->logits, m->kept, m->shape.vocabulary);
    locus_linear_forward(&linear, &to, &from, NULL);
    return LOCUS_OK;
}

double train_loss(train_model *m)
{
    double total = 0.0, weight = 0.0;
    const locus_cross_entropy entropy = {.target = m->target, .width = m->shape.vocabulary};
    const locus_rows x = train_rows(m->logits, m->kept, m->shape.vocabulary);
    locus_cross_entropy_forward(&m->workers, &entropy, &x, m->losses, &total, &weight);
    return total;
}

void train_remember(const train_model *m, const train_batch *batch, train_memory *memory)
{
    const int64_t E = m->shape.width, T = batch->tokens;
    const int64_t rows = memory->most < T ? memory->most : T;
    for (int64_t i = 0; i < m->shape.layers; i++)
        for (int64_t b = 0; b < batch->rows; b++)
            memcpy(memory->data[i] + b * rows * E, m->saved[i].input + (b * T + T - rows) * E,
                   (size_t)(rows * E) * sizeof(float));
    memory->rows = rows;
}
