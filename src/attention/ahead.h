/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_AHEAD_H
#define LOCUS_ATTENTION_AHEAD_H

/* What a worker will read or write next: the rows of its next query tile and, little by
 * little, the keys and values of its next head. The products of the running tile bring them
 * near, so that the next tile does not wait for memory. Only speed depends on it. */

#include <locus/tensor.h>

#include "kernels/kernels.h"

typedef struct locus_lookahead {
    locus_ahead stream[64];
    int first, end;
    int64_t each; /* rows of a share */
    /* fetched rows per row of work, and what is due of them, times `work` */
    int64_t rows, work, due;
} locus_lookahead;

static inline void locus_ahead_begin(locus_lookahead *look)
{
    look->first = look->end = 0;
    look->due = 0;
}

/* Add rows [from, to) of [b][h] of a [B,H,T,D] tensor, or of [h] of a [H,T,D] tensor. */
void locus_ahead_add(locus_lookahead *look, const locus_tensor *t, int64_t b, int64_t h,
                     int64_t from, int64_t to);

/* The same for any rows. A full list takes no more. */
void locus_ahead_push(locus_lookahead *look, locus_ahead rows);

/* What is added from now on goes with `work` rows of work. */
void locus_ahead_pace(locus_lookahead *look, int64_t work);

/* The next rows, as many as go with `count` rows of work or fewer; or bring them near now. */
locus_ahead locus_ahead_due(locus_lookahead *look, int64_t count);
void locus_ahead_bring(locus_lookahead *look, int64_t count);

/* Spread what was added over so many shares. */
void locus_ahead_spread(locus_lookahead *look, int64_t shares);

/* The next two shares, which go with one product; empty ones at the end. */
void locus_ahead_take(locus_lookahead *look, locus_ahead shares[2]);

#endif
