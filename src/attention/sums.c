/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/sums.h"

#include <string.h>

void locus_zero_rows(locus_sums rows, int64_t from, int64_t to, int64_t width)
{
    for (int64_t n = from; n < to; n++)
        memset(rows.data + n * rows.row_stride, 0, (size_t)width * sizeof *rows.data);
}

void locus_add_to_keys(const head_context *head, const locus_tile *tile, const float *T,
                       locus_sums to, const locus_operand *from, int64_t width, int fresh)
{
    const locus_sums keys = {to.data + tile->key * to.row_stride, to.row_stride};
    const int64_t stride = head->geometry->stride;
    const int whole =
        tile->block_count == 1 && tile->blocks[0].from == 0 && tile->blocks[0].to == tile->columns;
    if (fresh && !whole) locus_zero_rows(keys, 0, tile->columns, width);
    for (int64_t b = 0; b < tile->block_count; b++) {
        const locus_block *block = &tile->blocks[b];
        head->plan->kernels->gemm(keys.data + block->from * keys.row_stride, keys.row_stride,
                                  T + block->first * stride + block->from, 1, stride,
                                  from->clean + block->first * from->clean_stride,
                                  from->clean_stride, block->to - block->from, block->rows, width,
                                  !(fresh && whole));
    }
    locus_patch(head, tile, T, keys, locus_by_column(), from, locus_by_row(), width);
}

void locus_add_to_rows(const head_context *head, const locus_tile *tile, const float *T, float *to,
                       const locus_operand *from, int64_t width, int fresh)
{
    const int64_t stride = head->geometry->stride;
    for (int64_t b = 0; b < tile->block_count; b++) {
        const locus_block *block = &tile->blocks[b];
        head->plan->kernels->gemm(to + block->first * width, width,
                                  T + block->first * stride + block->from, stride, 1,
                                  from->clean + block->from * from->clean_stride,
                                  from->clean_stride, block->rows, block->to - block->from, width,
                                  !fresh);
    }
    locus_patch(head, tile, T, (locus_sums){to, width}, locus_by_row(), from, locus_by_column(),
                width);
}
