/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_EMBEDDING_H
#define LOCUS_NN_EMBEDDING_H

/* Rows of tables, gathered and summed:
 *     y_i = factor_1 T_1[id_1[i]] + factor_2 T_2[id_2[i]] + ..
 * one term per table, in their order: tokens, token types, positions. Backward, the rows of dy are
 * added to the rows of dT they came from, in the order of i. Ids are the caller's to check. */

#include "nn/quantized_table.h"
#include "nn/rows.h"

typedef struct locus_embedding {
    const float *table; /* row id at table + id * stride */
    int64_t stride;
    const int32_t *id; /* [rows]; NULL: `same` for every row */
    int32_t same;
    float factor;                       /* 1, or sqrt(width) where a model scales its embeddings */
    const locus_quantized_table *words; /* forward: in place of table; NULL: none */
} locus_embedding;

/* y overlaps no table. */
void locus_embedding_forward(const locus_workers *workers, const locus_rows *y,
                             const locus_embedding *terms, int64_t term_count, int64_t width);

/* table[id[i]] += factor dy_i. The table's old content stays: clear it before the first call. */
void locus_embedding_backward(const locus_workers *workers, float *table,
                              const locus_embedding *term, const locus_rows *dy, int64_t width);

#endif
