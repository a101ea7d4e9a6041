/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_FEW_H
#define LOCUS_ATTENTION_FEW_H

/* Products for few query rows. Each right row is read once, as it lies, and all the time goes
 * into waiting for memory, which must never wait for us:
 *
 *     use      tile t      E P K V      table entries, places, keys, values
 *     fetch    tile t + 1  E P K V      a few rows with every few rows of any product
 *
 * What heads share by position (turns, shared tables) was read for the head before and is near.
 * Only speed depends on it. */

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

/* C = A . k_j + plus for the keys from `key` on, turned where they are to be; rows of C are those
 * of a tile. */
void locus_few_content(const locus_head *head, float *C, const float *A, int64_t key, int64_t rows,
                       int64_t columns, const float *plus, int64_t plus_row);

/* While `worker` is busy with a tile, fetch what key tile `t` of the heads will read. */
void locus_few_ahead(const locus_head *heads, int64_t count, const locus_rows *rows, int64_t t,
                     const locus_head *worker);

#endif
