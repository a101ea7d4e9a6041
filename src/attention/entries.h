/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_ENTRIES_H
#define LOCUS_ATTENTION_ENTRIES_H

/* Sums over the entries of a relative table. */

#include "attention/strip.h"

/* The entries as an operand; bad[row_count] by entry. */
locus_operand locus_entries(const head_context *head, const locus_tensor *table,
                            const uint8_t *bad);

/* The weight of entry first + c in row r: data[r * row_stride + c * column_stride]. */
typedef struct locus_weights {
    const float *data;
    int64_t row_stride, column_stride;
    int64_t first;
} locus_weights;
static inline locus_weights locus_strip_weights(const locus_strip *strip)
{
    return (locus_weights){strip->data, strip->row_stride, 1, strip->first};
}

/* to[r] += sum_c weight[r][c] entry_(first + c) for r < rows, c < count, over the entries that are
 * finite; locus_patch adds the bad ones. */
void locus_add_entries(const head_context *head, const locus_operand *entries,
                       const locus_weights *weights, int64_t rows, int64_t count, locus_sums to,
                       int64_t width);

#endif
