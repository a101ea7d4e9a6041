/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_SUMS_H
#define LOCUS_ATTENTION_SUMS_H

/* Backward, dS of a tile times rows: sums over its rows, for keys, and over its keys, for rows. */

#include "attention/tile.h"

void locus_zero_rows(locus_sums rows, int64_t from, int64_t to, int64_t width);

/* to[j] += sum_i T[i][j] from_i for the tile's rows of `to`; fresh: to[j] = the sum */
void locus_add_to_keys(const head_context *head, const locus_tile *tile, const float *T,
                       locus_sums to, const locus_operand *from, int64_t width, int fresh);
/* to[i] += sum_j T[i][j] from_j, rows of `to` `width` apart; fresh: to[i] = the sum */
void locus_add_to_rows(const head_context *head, const locus_tile *tile, const float *T, float *to,
                       const locus_operand *from, int64_t width, int fresh);

#endif
