/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/near.h"

#include <string.h>

enum { TOGETHER = 6 }; /* rows of a register tile; at most LOCUS_LANES */

static int64_t first_z(const locus_head *head, const locus_tile *tile)
{
    return head->plan->call.most - tile->delta_00;
}

void locus_near_begin(const locus_head *head, const locus_tile *tile, float *T)
{
    const int64_t stride = head->geometry->stride;
    const size_t bytes = LOCUS_LANES * sizeof *T;
    if (head->plan->near_from == head->plan->near_to) return;
    memset(T - LOCUS_LANES, 0, bytes);
    for (int64_t i = 0; i < tile->rows; i++) {
        float *row = T + i * stride;
        memset(row + stride - LOCUS_LANES, 0, bytes);
        if (tile->columns < stride - LOCUS_LANES) memset(row + tile->columns, 0, bytes);
    }
}

void locus_near_to_rows(const locus_head *head, const locus_tile *tile, const float *T,
                        const locus_block *entries, float *to, int64_t width)
{
    const locus_plan *plan = head->plan;
    const int64_t stride = head->geometry->stride, z_00 = first_z(head, tile);
    for (int64_t i = 0; i < tile->rows; i += TOGETHER) {
        const int64_t rows = locus_least(TOGETHER, tile->rows - i);
        const int64_t low = locus_most(plan->near_from, z_00 - (i + rows - 1));
        const int64_t high = locus_least(plan->near_to, z_00 + tile->columns - i);
        if (low >= high) continue;
        const locus_weights weights = {T + i * stride + (low - z_00 + i), stride + 1, 1,
                                       plan->index[low]};
        locus_add_entries(head, entries, &weights, rows, high - low, to + i * width, width, width);
    }
}

void locus_near_to_entries(const locus_head *head, const locus_tile *tile, const float *T,
                           const locus_block *from, locus_sums to, int64_t width)
{
    const locus_plan *plan = head->plan;
    const int64_t stride = head->geometry->stride, z_00 = first_z(head, tile);
    const int64_t low = locus_most(plan->near_from, z_00 - (tile->rows - 1));
    const int64_t high = locus_least(plan->near_to, z_00 + tile->columns);
    for (int64_t z = low; z < high; z += TOGETHER) {
        const int64_t count = locus_least(TOGETHER, high - z);
        const int64_t begin = locus_most(0, z_00 - (z + count - 1));
        const int64_t end = locus_least(tile->rows, z_00 + tile->columns - z);
        plan->kernels->gemm(to.data + plan->index[z] * to.row, to.row,
                            T + begin * stride + (z - z_00 + begin), 1, stride + 1,
                            from->clean + begin * from->clean_row, from->clean_row, count,
                            end - begin, width, 1);
    }
}
