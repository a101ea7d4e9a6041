/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/operand.h"

#include <string.h>

locus_operand locus_operand_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                               const uint8_t *bad, float *room)
{
    locus_operand operand = {rows, rows, row_stride, row_stride, bad, 0, 0};
    for (int64_t r = 0; r < count; r++) operand.any_bad |= bad[r];
    if (!operand.any_bad) return operand;
    for (int64_t r = 0; r < count; r++) {
        if (bad[r])
            memset(room + r * width, 0, (size_t)width * sizeof *room);
        else
            memcpy(room + r * width, rows + r * row_stride, (size_t)width * sizeof *room);
    }
    operand.clean = room;
    operand.clean_stride = width;
    return operand;
}

void locus_find_bad(const head_context *head, int needed, uint8_t *bad, const float *rows,
                    int64_t row_stride, int64_t count, int64_t width)
{
    if (needed)
        head->plan->kernels->bad_rows(bad, rows, row_stride, LOCUS_F32, count, width);
    else
        memset(bad, 0, (size_t)count);
}

void locus_turn_rows(const locus_plan *plan, locus_sums to, const float *rows, int64_t row_stride,
                     const float *turn, float direction, int64_t count)
{
    const int interleaved = plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED;
    plan->kernels->turn(to.data, to.row_stride, rows, row_stride, turn, plan->call.pairs,
                        interleaved, direction, count, plan->call.D, (locus_prefetch_rows){0});
}

void locus_copy_rows(float *to, const float *rows, int64_t row_stride, int64_t count, int64_t width)
{
    for (int64_t r = 0; r < count; r++)
        memcpy(to + r * width, rows + r * row_stride, (size_t)width * sizeof *to);
}
