/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_FEW_H
#define LOCUS_ATTENTION_FEW_H

/* Products for few query rows. Each right row is read once, as it lies, and all the time goes
 * into waiting for memory:
 *
 *     order of use:   E P K V | E P K V | ...      table entries, places, keys, values of a tile
 *                     ^use  ^near                  use and fetch advance at the same rate
 *
 * So a product takes a few rows at a time and brings as many near that stand further on in this
 * order (worker->progress->look). Only speed depends on it. */

#include "attention/tile.h"

/* kernels->dots. */
void locus_few_dots(const locus_head *head, float *C, int64_t c_row, const float *A, int64_t a_row,
                    const float *right, int64_t row_stride, int64_t rows, int64_t inner,
                    int64_t columns, const float *plus, int64_t plus_row);

/* T[i][j] += scale k_j . entry(i, j) of a table on the key side. */
void locus_few_by_keys(const locus_head *head, const locus_tile *tile, const locus_tensor *table,
                       float *T);

/* worker->out[i] += sum_j weights[i][j] values_j over the tile's clean values. */
void locus_few_values(const locus_head *head, const locus_tile *tile, const float *weights,
                      const locus_block *values);

/* The additive values that the tile reads, in worker->bias; a pointer to z = 0, as head->bias.
 * NULL: the scheme has none. */
const float *locus_few_bias(const locus_head *head, const locus_tile *tile);

/* Keys [first, first + count) turned, in worker->turned. */
void locus_few_turn(const locus_head *head, int64_t first, int64_t count);

/* Add what key tile `t` will read to what is fetched, or a part of it. Fetch runs one product
 * ahead of use: when a worker begins, keys come by themselves and values are fetched. */
typedef enum locus_part {
    LOCUS_UP_TO_KEYS = 1,
    LOCUS_FROM_VALUES = 2,
    LOCUS_WHOLE_TILE = 3
} locus_part;
void locus_few_ahead(locus_lookahead *look, const locus_head *heads, int64_t count,
                     const locus_rows *rows, int64_t t, locus_part part);

#endif
