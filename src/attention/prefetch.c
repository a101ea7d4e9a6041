/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/prefetch.h"

#include <string.h>

#include "core/compiler.h"
#include "core/tensor.h"

void locus_prefetch_push(locus_prefetch *prefetch, locus_prefetch_rows rows)
{
    const int room = (int)(sizeof prefetch->queue / sizeof *prefetch->queue);
    if (prefetch->end == room && prefetch->first > 0) {
        prefetch->end -= prefetch->first;
        memmove(prefetch->queue, prefetch->queue + prefetch->first,
                (size_t)prefetch->end * sizeof *prefetch->queue);
        prefetch->first = 0;
    }
    if (rows.count > 0 && prefetch->end < room) prefetch->queue[prefetch->end++] = rows;
}

/* Strides of floats are all that kernels know. */
void locus_prefetch_rows_of(locus_prefetch *prefetch, locus_rows rows, int64_t count, int64_t width)
{
    const int64_t in_float = rows.type == LOCUS_F32 ? 1 : 2;
    if (rows.stride % in_float != 0) return;
    locus_prefetch_push(prefetch, (locus_prefetch_rows){rows.data, rows.stride / in_float,
                                                        ceil_div(width, in_float), count});
}

void locus_prefetch_add(locus_prefetch *prefetch, const locus_tensor *t, int64_t b, int64_t h,
                        int64_t from, int64_t to)
{
    if (!locus_present(t) || from >= to) return;
    const locus_rows rows =
        t->rank == 4 ? locus_rows_at(t, b, h, from) : locus_rows_at(t, h, from, 0);
    locus_prefetch_rows_of(prefetch, rows, to - from, t->shape[t->rank - 1]);
}

void locus_prefetch_table(locus_prefetch *prefetch, const locus_plan *plan,
                          const locus_tensor *table, int64_t h, int64_t from, int64_t to,
                          int64_t all)
{
    if (table == NULL || table->rank != 3 || all == 0) return;
    const int64_t first = from * plan->row_count / all, end = to * plan->row_count / all;
    int64_t stride;
    const float *entries = locus_table_entries(plan, table, h, &stride);
    locus_prefetch_push(prefetch, (locus_prefetch_rows){entries + first * stride, stride,
                                                        table->shape[2], end - first});
}

/* A product takes two shares. Rows of one tensor end with a share of their own, which may be short:
 * it counts as a whole one. */
void locus_prefetch_spread(locus_prefetch *prefetch, int64_t products)
{
    int64_t rows = 0;
    for (int i = prefetch->first; i < prefetch->end; i++) rows += prefetch->queue[i].count;
    const int64_t whole = 2 * products - (prefetch->end - prefetch->first);
    prefetch->share = whole > 0 ? (rows + whole - 1) / whole : rows;
}

static locus_prefetch_rows take_rows(locus_prefetch *prefetch, int64_t count)
{
    if (prefetch->first == prefetch->end) return (locus_prefetch_rows){0};
    locus_prefetch_rows *next = &prefetch->queue[prefetch->first];
    locus_prefetch_rows some = *next;
    if (some.count <= count) {
        prefetch->first++;
        return some;
    }
    some.count = count;
    next->rows += count * next->row_stride;
    next->count -= count;
    return some;
}

void locus_prefetch_take(locus_prefetch *prefetch, locus_prefetch_rows shares[2])
{
    for (int i = 0; i < 2; i++) shares[i] = take_rows(prefetch, prefetch->share);
}

void locus_prefetch_take_with(locus_prefetch *prefetch, locus_prefetch_rows rows,
                              locus_prefetch_rows shares[2])
{
    shares[0] = take_rows(prefetch, prefetch->share);
    shares[1] = rows;
}

void locus_prefetch_pace(locus_prefetch *prefetch, int64_t work)
{
    prefetch->rows = 0;
    for (int i = prefetch->first; i < prefetch->end; i++)
        prefetch->rows += prefetch->queue[i].count;
    prefetch->work = work;
    prefetch->due = 0;
}

/* Rows of one tensor may end before all that is due is taken: the rest goes with the next work. */
locus_prefetch_rows locus_prefetch_due(locus_prefetch *prefetch, int64_t count)
{
    if (prefetch->first == prefetch->end) return (locus_prefetch_rows){0};
    prefetch->due += count * prefetch->rows;
    const locus_prefetch_rows some = take_rows(prefetch, prefetch->due / prefetch->work);
    prefetch->due -= some.count * prefetch->work;
    return some;
}

void locus_prefetch_now(locus_prefetch *prefetch, int64_t count)
{
    locus_prefetch_rows some = locus_prefetch_due(prefetch, count);
    for (; some.count > 0; some.count--, some.rows += some.row_stride)
        for (int64_t c = 0; c < some.width; c += LOCUS_LANES) LOCUS_PREFETCH_FAR(some.rows + c);
}
