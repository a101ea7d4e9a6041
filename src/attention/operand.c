/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/operand.h"

#include <string.h>

locus_operand locus_operand_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                               const uint8_t *bad, float *room)
{
    locus_operand operand = {.raw = rows,
                             .clean = rows,
                             .raw_stride = row_stride,
                             .clean_stride = row_stride,
                             .bad = bad};
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

void locus_find_bad_stored(const head_context *head, int needed, uint8_t *bad, locus_rows rows,
                           int64_t count, int64_t width)
{
    if (needed)
        head->plan->kernels->bad_rows(bad, rows.data, rows.stride, rows.type, count, width);
    else
        memset(bad, 0, (size_t)count);
}

void locus_find_bad(const head_context *head, int needed, uint8_t *bad, const float *rows,
                    int64_t row_stride, int64_t count, int64_t width)
{
    const locus_rows stored = {(float *)(uintptr_t)rows, row_stride, LOCUS_F32};
    locus_find_bad_stored(head, needed, bad, stored, count, width);
}

void locus_turn_rows(const locus_plan *plan, locus_sums to, const float *rows, int64_t row_stride,
                     const float *turn, float direction, int64_t count)
{
    const int interleaved = plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED;
    plan->kernels->turn(to.data, to.row_stride, rows, row_stride, turn, plan->call.pairs,
                        interleaved, direction, count, plan->call.D, (locus_prefetch_rows){0});
}

void locus_load_rows(const locus_plan *plan, float *to, locus_rows rows, int64_t count,
                     int64_t width)
{
    const float *from = rows.data;
    if (rows.type != LOCUS_F32) {
        plan->kernels->widen(to, width, rows.data, rows.stride, rows.type, count, width);
        return;
    }
    for (int64_t r = 0; r < count; r++)
        memcpy(to + r * width, from + r * rows.stride, (size_t)width * sizeof *to);
}

void locus_store_rows(const locus_plan *plan, locus_rows to, const float *rows, int64_t count,
                      int64_t width)
{
    float *data = to.data;
    if (to.type != LOCUS_F32) {
        plan->kernels->narrow(to.data, to.stride, to.type, rows, width, count, width);
        return;
    }
    for (int64_t r = 0; r < count; r++)
        memcpy(data + r * to.stride, rows + r * width, (size_t)width * sizeof *data);
}

/* sums += the row `to` */
static void add_stored(const locus_plan *plan, float *sums, locus_rows to, int64_t width)
{
    float old[LOCUS_PANEL];
    const int64_t bytes = to.type == LOCUS_F32 ? 4 : 2;
    for (int64_t c = 0; c < width; c += LOCUS_PANEL) {
        const int64_t some = min_i64(LOCUS_PANEL, width - c);
        const locus_rows part = {(char *)to.data + c * bytes, 0, to.type};
        locus_load_rows(plan, old, part, 1, some);
        plan->kernels->add(sums + c, old, some);
    }
}

void locus_store_sums(const locus_plan *plan, locus_rows to, float *sums, int64_t count,
                      int64_t width, int resume)
{
    const int64_t bytes = to.type == LOCUS_F32 ? 4 : 2;
    for (int64_t r = 0; resume && r < count; r++) {
        const locus_rows row = {(char *)to.data + r * to.stride * bytes, 0, to.type};
        add_stored(plan, sums + r * width, row, width);
    }
    locus_store_rows(plan, to, sums, count, width);
}
