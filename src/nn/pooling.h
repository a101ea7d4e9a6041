/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_POOLING_H
#define LOCUS_NN_POOLING_H

/* One row per sequence from the rows of its tokens, and rows of unit length:
 *     first   y_s = x of the first token; last: of the last one
 *     mean    y_s = sum of x / tokens
 *     root    y_s = sum of x / sqrt(tokens)
 *     rising  y_s = sum of (i + 1) x_i / sum of (i + 1), i = 0 for the first token
 *     max     y_s[c] = the greatest x[c]; the gradient goes to the first token that has it
 *     unit    y = x / max(|x|, 1e-12)         dx = (dy - y (y . dy)) / max(|x|, 1e-12)
 * A sequence without tokens gives 0. A NaN reaches its channel of its sequence (unit: the row). */

#include "nn/rows.h"

typedef enum locus_pooling {
    LOCUS_POOL_FIRST,
    LOCUS_POOL_MEAN,
    LOCUS_POOL_MAX,
    LOCUS_POOL_LAST,
    LOCUS_POOL_ROOT,
    LOCUS_POOL_RISING,
} locus_pooling;

/* y: one row per sequence. y overlaps nothing. */
void locus_pooling_forward(const locus_workers *workers, locus_pooling pooling, const locus_rows *y,
                           const locus_rows *x, const locus_ragged *tokens, int64_t width);

/* dx of every token is written; x is read by max alone. */
void locus_pooling_backward(const locus_workers *workers, locus_pooling pooling,
                            const locus_rows *dx, const locus_rows *dy, const locus_rows *x,
                            const locus_ragged *tokens, int64_t width);

/* y may be x, dx may be dy. |x| is summed in double. */
void locus_unit_forward(const locus_workers *workers, const locus_rows *y, const locus_rows *x,
                        int64_t width);
void locus_unit_backward(const locus_workers *workers, const locus_rows *dx, const locus_rows *dy,
                         const locus_rows *x, int64_t width);

#endif
