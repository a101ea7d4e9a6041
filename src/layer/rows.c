/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that maps read and write. */
#include "core/tensor.h"
#include "layer/layer.h"

layer_matrix locus_layer_tensor_rows(const locus_tensor *t)
{
    const int has_batches = t->rank == 3;
    return (layer_matrix){
        .data = t->data,
        .type = t->dtype,
        .batches = has_batches ? t->shape[0] : 1,
        .rows = t->shape[has_batches],
        .width = t->shape[has_batches + 1],
        .batch_stride = has_batches ? t->stride[0] : 0,
        .row_stride = t->stride[has_batches],
    };
}

layer_matrix locus_layer_buffer_rows(float *data, int64_t batches, int64_t rows, int64_t width,
                                     int64_t first, int64_t count)
{
    return (layer_matrix){
        .data = data + first * width,
        .type = LOCUS_F32,
        .batches = batches,
        .rows = count,
        .width = width,
        .batch_stride = rows * width,
        .row_stride = width,
    };
}

layer_matrix locus_layer_input(const locus_layer *layer, const locus_tensors *in,
                               const layer_saved *saved)
{
    const locus_call *call = &layer->call;
    if (saved->input == NULL) return locus_layer_tensor_rows(&in->x);
    return locus_layer_buffer_rows(saved->input, call->B, call->T, call->E, 0, call->T);
}

layer_matrix locus_layer_source(const locus_layer *layer, const locus_tensors *in,
                                const layer_table *table)
{
    const int64_t E = layer->call.E;
    if (table->source == LOCUS_SINUSOID)
        return locus_layer_buffer_rows(layer->sinusoid, 1, table->rows, E, 0, table->rows);
    layer_matrix rows = locus_layer_tensor_rows(locus_tensor_slot(in, table->source));
    rows.rows = table->rows;
    return rows;
}
