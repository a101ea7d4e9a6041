/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_QUANTIZED_TABLE_H
#define LOCUS_NN_QUANTIZED_TABLE_H

/* Rows of integers with a scale for each group of a row, which embeddings gather: 16 bits in groups
 * of 128 (LOCUS_QUANT_I16), or 8 bits in groups of 64 (LOCUS_QUANT_W8). A row as floats is
 * integer * scale, one multiplication, the same everywhere. */

#include <locus/tensor.h>

#include "kernels/quant.h"

typedef struct locus_quantized_table {
    locus_quant_kind kind;
    int64_t width, groups; /* of a row */
    const void *integers;  /* [rows][width], int16 or int8 */
    const float *scales;   /* [rows][groups] */
} locus_quantized_table;

/* Bytes of memory for it. Returns 0 when the size does not fit, else 1. */
int locus_quantized_table_bytes(uint64_t *bytes, locus_quant_kind kind, int64_t rows,
                                int64_t width);

/* Round `table` [rows, width], of which locus_quantizes is true. `memory` has
 * locus_quantized_table_bytes and stays in use. */
locus_quantized_table locus_quantize_table(locus_quant_kind kind, const locus_tensor *table,
                                           void *memory, uint32_t threads);

/* A handle to such a table in such memory, whose integers and scales the caller writes. */
locus_quantized_table locus_quantized_table_in(locus_quant_kind kind, int64_t rows, int64_t width,
                                               void *memory, void **integers, float **scales);

/* y[c] = (resume ? y[c] : 0) + factor row[c], c < width. */
void locus_quantized_row(const locus_quantized_table *t, int64_t row, float factor, int resume,
                         float *y);

#endif
