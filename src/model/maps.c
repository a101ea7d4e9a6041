/* SPDX-License-Identifier: Apache-2.0 */
#include "model/model.h"

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
    f.packed = &map->packed;
    f.bias = map->bias.rank != 0 ? &map->bias : NULL;
    f.workspace = workspace;
    locus_linear_forward(&f, &to, &from, &finish);
}
