/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_PREFETCH_H
#define LOCUS_ATTENTION_PREFETCH_H

/* What a thread will read or write next: the rows of its next query tile and, little by little,
 * the keys and values of its next head. The products of the running tile fetch them into the second
 * cache, a few rows with every register tile, so that the next tile does not wait for memory. Only
 * speed depends on it. */

#include "attention/plan.h"

typedef struct locus_prefetch {
    locus_prefetch_rows queue[64];
    int first, end;
    int64_t share; /* rows that go with half a product */
    /* fetched rows per row of work, and what is due of them, times `work` */
    int64_t rows, work, due;
} locus_prefetch;

static inline void locus_prefetch_begin(locus_prefetch *prefetch)
{
    prefetch->first = prefetch->end = 0;
    prefetch->due = 0;
}

/* 0 where a head is so small that listing what comes next takes longer than waiting for it. Not so
 * backward with a table on the key side, whose gradients are much to write. */
static inline int locus_tile_fetches(const locus_plan *plan)
{
    return plan->call.Tq > UNFETCHED || plan->call.Tk > UNFETCHED;
}

/* Add rows [from, to) of [b][h] of a [B,H,T,D] tensor, or of [h] of a [H,T,D] tensor, if it is
 * present. A full queue takes no more. */
void locus_prefetch_add(locus_prefetch *prefetch, const locus_tensor *t, int64_t b, int64_t h,
                        int64_t from, int64_t to);

/* The part [from, to) of `all` of a table's entries, if each head has its own. */
void locus_prefetch_table(locus_prefetch *prefetch, const locus_plan *plan,
                          const locus_tensor *table, int64_t h, int64_t from, int64_t to,
                          int64_t all);

/* Rows of any type. */
void locus_prefetch_rows_of(locus_prefetch *prefetch, locus_rows rows, int64_t count,
                            int64_t width);

/* Any rows. */
void locus_prefetch_push(locus_prefetch *prefetch, locus_prefetch_rows rows);

/* Spread what was added over so many products; and take what goes with one, empty at the end. */
void locus_prefetch_spread(locus_prefetch *prefetch, int64_t products);
void locus_prefetch_take(locus_prefetch *prefetch, locus_prefetch_rows shares[2]);
/* Half as much, and `rows`, which the running tile will read itself. */
void locus_prefetch_take_with(locus_prefetch *prefetch, locus_prefetch_rows rows,
                              locus_prefetch_rows shares[2]);

/* Or spread it over `work` rows of work; and take what goes with `count` of them, or fewer, or
 * fetch it now. */
void locus_prefetch_pace(locus_prefetch *prefetch, int64_t work);
locus_prefetch_rows locus_prefetch_due(locus_prefetch *prefetch, int64_t count);
void locus_prefetch_now(locus_prefetch *prefetch, int64_t count);

#endif
