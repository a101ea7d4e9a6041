/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_OPERAND_H
#define LOCUS_ATTENTION_OPERAND_H

/* Rows as operands of products and sums.
 *
 * NaN and infinity: a product row depends on its own operands only, so operands are read
 * as they are there. A sum over rows (P V, dS K, ...) multiplies by the weight 0 of pairs
 * that are not seen, so its right operand is read `clean`: rows with a non-finite element
 * are zeroed, and locus_patch adds them afterwards for the pairs that do see them. */

#include "attention/head.h"

/* Rows that a sum reads. bad[r] is 1 where row r holds a NaN or an infinity. */
typedef struct locus_operand {
    const float *raw, *clean; /* NULL: none is bad, and they are read where they are stored */
    locus_rows stored;
    int64_t raw_stride, clean_stride; /* from one row to the next */
    const uint8_t *bad;
    int any_bad;
    int of_weights; /* multiplied with the weights: those of dropped pairs do not count */
} locus_operand;

/* `room` takes the clean rows if some are bad. */
locus_operand locus_operand_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                               const uint8_t *bad, float *room);

/* Find the bad rows, or, where no sum can multiply them by 0, call none bad. */
void locus_find_bad(const head_context *head, int needed, uint8_t *bad, const float *rows,
                    int64_t row_stride, int64_t count, int64_t width);
void locus_find_bad_stored(const head_context *head, int needed, uint8_t *bad, locus_rows rows,
                           int64_t count, int64_t width);

/* Sums that several rows of a tile are added to. */
typedef struct locus_sums {
    float *data;
    int64_t row_stride;
} locus_sums;

/* Turn rows by the cos and sin of their positions. direction = -1 turns back: the transpose,
 * which carries gradients. `to` may be `rows`. */
void locus_turn_rows(const locus_plan *plan, locus_sums to, const float *rows, int64_t row_stride,
                     const float *turn, float direction, int64_t count);

/* 1 where rows lie so far apart, heads inside tokens, that they fall into few sets of the caches:
 * what reads them again and again copies them first. */
static inline int locus_rows_share_sets(int64_t row_stride, int64_t width)
{
    return row_stride > 2 * width;
}

/* Copy rows of any type side by side, as floats; and floats, side by side, to rows of any type. */
void locus_load_rows(const locus_plan *plan, float *to, locus_rows rows, int64_t count,
                     int64_t width);
void locus_store_rows(const locus_plan *plan, locus_rows to, const float *rows, int64_t count,
                      int64_t width);

/* to = (resume ? to : 0) + sums, rounded once; the sums, rows side by side, are lost. */
void locus_store_sums(const locus_plan *plan, locus_rows to, float *sums, int64_t count,
                      int64_t width, int resume);

#endif
