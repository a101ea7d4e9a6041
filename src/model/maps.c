/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/tape.h"

static locus_row_batch rows_of(const float *data, int64_t rows, int64_t width)
{
    return (locus_row_batch){.data = (float *)(uintptr_t)data,
                             .batches = 1,
                             .rows = rows,
                             .batch_stride = rows * width,
                             .row_stride = width};
}

void model_map_apply(const locus_model *m, void *workspace, const model_map *map, float *y,
                     const float *x, int64_t rows, const model_end *end)
{
    static const model_end plain = {.activation = LOCUS_IDENTITY};
    if (m->tape != NULL) {
        model_tape_map(m, workspace, map, y, x, rows, end);
        return;
    }
    const int64_t outputs = map->packed.outputs;
    const locus_row_batch to = rows_of(y, rows, outputs);
    const locus_row_batch from = rows_of(x, rows, map->packed.inputs);
    if (end == NULL) end = &plain;
    const locus_row_batch gate = rows_of(end->gate, rows, outputs);
    const locus_row_batch residual = rows_of(end->residual, rows, outputs);
    const locus_linear_end finish = {.activation = end->activation,
                                     .gate = end->gate != NULL ? &gate : NULL,
                                     .residual = end->residual != NULL ? &residual : NULL};
    locus_linear f = m->linear;
    f.packed = map->weight.rank == 0 ? &map->packed : NULL;
    f.weight = &map->weight;
    f.bias = map->bias.rank != 0 ? &map->bias : NULL;
    f.workspace = workspace;
    locus_linear_forward(&f, &to, &from, &finish);
}

void model_norm_apply(const locus_model *m, const locus_norm_rule *rule, float *y, const float *x,
                      int64_t rows)
{
    const locus_rows to = {y, rows, rule->width};
    const locus_rows from = {(float *)(uintptr_t)x, rows, rule->width};
    if (m->tape != NULL)
        model_tape_norm(m, rule, y, x, rows);
    else
        locus_norm_forward(&m->workers, rule, &to, &from);
}

void model_embed_apply(const locus_model *m, const locus_rows *y, const locus_embedding *terms,
                       int64_t count, int64_t width, int input)
{
    if (m->tape != NULL)
        model_tape_embed(m, y, terms, count, width, input);
    else
        locus_embedding_forward(&m->workers, y, terms, count, width);
}

void model_pool_apply(const locus_model *m, locus_pooling pooling, const locus_rows *y,
                      const locus_rows *x, const locus_ragged *tokens, int64_t width)
{
    if (m->tape != NULL)
        model_tape_pool(m, pooling, y, x, tokens, width);
    else
        locus_pooling_forward(&m->workers, pooling, y, x, tokens, width);
}

void model_unit_apply(const locus_model *m, const locus_rows *y, int64_t width)
{
    if (m->tape != NULL)
        model_tape_unit(m, y, width);
    else
        locus_unit_forward(&m->workers, y, y, width);
}

void model_copy_apply(const locus_model *m, float *y, int64_t y_stride, const float *x,
                      int64_t x_stride, int64_t rows, int64_t width)
{
    if (m->tape != NULL) {
        model_tape_copy(m, y, y_stride, x, x_stride, rows, width);
        return;
    }
    for (int64_t i = 0; i < rows; i++)
        memcpy(y + i * y_stride, x + i * x_stride, (size_t)width * sizeof(float));
}

void model_convolution_apply(const locus_model *m, const locus_convolution *f, const locus_rows *y,
                             const locus_rows *x, const locus_rows *residual,
                             const locus_ragged *tokens)
{
    if (m->tape != NULL)
        model_tape_convolve(m, f, y, x, residual, tokens);
    else
        locus_convolution_forward(f, y, x, residual, tokens);
}
