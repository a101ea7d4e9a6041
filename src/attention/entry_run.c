/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/entry_run.h"

#include <string.h>

_Static_assert(LOCUS_REGISTER_ROWS <= LOCUS_LANES,
               "zeros next to a row must cover a register tile");

void locus_entry_run_begin(const head_context *head, const locus_tile *tile, float *T)
{
    const int64_t stride = head->geometry->stride;
    const size_t bytes = LOCUS_LANES * sizeof *T;
    if (head->plan->run_from == head->plan->run_to) return;
    memset(T - LOCUS_LANES, 0, bytes);
    for (int64_t i = 0; i < tile->rows; i++) {
        float *row = T + i * stride;
        memset(row + stride - LOCUS_LANES, 0, bytes);
        if (tile->columns < stride - LOCUS_LANES) memset(row + tile->columns, 0, bytes);
    }
}

void locus_entry_run_to_rows(const head_context *head, const locus_tile *tile, const float *T,
                             const locus_operand *entries, locus_sums to, int64_t width)
{
    const locus_plan *plan = head->plan;
    const int64_t stride = head->geometry->stride, z_00 = locus_z_of(plan, tile->delta_00);
    for (int64_t i = 0; i < tile->rows; i += LOCUS_REGISTER_ROWS) {
        const int64_t rows = min_i64(LOCUS_REGISTER_ROWS, tile->rows - i);
        const int64_t low = max_i64(plan->run_from, z_00 - (i + rows - 1));
        const int64_t high = min_i64(plan->run_to, z_00 + tile->columns - i);
        if (low >= high) continue;
        const locus_weights weights = {T + i * stride + (low - z_00 + i), stride + 1, 1,
                                       plan->index[low]};
        locus_add_entries(head, entries, &weights, rows, high - low,
                          (locus_sums){to.data + i * to.row_stride, to.row_stride}, width);
    }
}

void locus_entry_run_to_entries(const head_context *head, const locus_tile *tile, const float *T,
                                const locus_operand *from, locus_sums to, int64_t width)
{
    const locus_plan *plan = head->plan;
    const int64_t stride = head->geometry->stride, z_00 = locus_z_of(plan, tile->delta_00);
    const int64_t low = max_i64(plan->run_from, z_00 - (tile->rows - 1));
    const int64_t high = min_i64(plan->run_to, z_00 + tile->columns);
    for (int64_t z = low; z < high; z += LOCUS_REGISTER_ROWS) {
        const int64_t count = min_i64(LOCUS_REGISTER_ROWS, high - z);
        const int64_t begin = max_i64(0, z_00 - (z + count - 1));
        const int64_t end = min_i64(tile->rows, z_00 + tile->columns - z);
        plan->kernels->gemm(to.data + plan->index[z] * to.row_stride, to.row_stride,
                            T + begin * stride + (z - z_00 + begin), 1, stride + 1,
                            from->clean + begin * from->clean_stride, from->clean_stride, count,
                            end - begin, width, 1);
    }
}
