/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_NEAR_H
#define LOCUS_ATTENTION_NEAR_H

/* Where entries are consecutive, plan->near_from <= z < plan->near_to, a tile needs no fold: the
 * entry of pair (i, j) is that of z = z_00 + j - i, so
 *     T by row and entry is T[i][z - z_00 + i]      rows one float more than `stride` apart
 * A few rows, or a few entries, share the range that any of them meets; beside the tile's columns
 * lie zeros, as many as that may read. */

#include "attention/relative.h"

/* Zeros beside the columns of T, which has room for LOCUS_LANES floats before its first row. */
void locus_near_begin(const locus_head *head, const locus_tile *tile, float *T);

/* to[i] += sum_j T[i][j] entry(i, j), rows of `to` `width` apart; bad entries are the business of
 * locus_patch. */
void locus_near_to_rows(const locus_head *head, const locus_tile *tile, const float *T,
                        const locus_block *entries, float *to, int64_t width);

/* to[entry(i, j)] += sum T[i][j] from_i */
void locus_near_to_entries(const locus_head *head, const locus_tile *tile, const float *T,
                           const locus_block *from, locus_sums to, int64_t width);

#endif
