/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_PLACED_H
#define LOCUS_ATTENTION_PLACED_H

/* Tiles of calls that bring positions (places.h). A strip then holds the products of a band's rows
 * with all entries, by z, for as long as the query tile lasts: keys may need any of them next. */

#include "attention/places.h"
#include "attention/strip.h"

/* Of a strip: from products by entry to products by z, and from sums by z to sums by entry; both
 * in place, because no entry has a larger number than the z that it serves. */
void locus_placed_expand(const locus_plan *plan, const locus_strip *strip, int64_t rows);
void locus_placed_gather(const locus_plan *plan, const locus_strip *strip, int64_t rows);

/* to[j] += x[z] of row i of the tile on one axis; x by z. */
void locus_placed_add(const head_context *head, const locus_tile *tile, int axis, int64_t i,
                      const float *x, float *to);

/* Row i of the tile: to[j] += the products of its strip, on every axis. */
void locus_placed_add_strip(const head_context *head, const locus_tile *tile, int64_t i,
                            const locus_strip *strips, float *to);

/* The transpose: strip += T, a row of the tile. */
void locus_placed_fold(const head_context *head, const locus_tile *tile, int64_t i, const float *T,
                       const locus_strip *strips);

/* sums[z] += T */
void locus_placed_sum(const head_context *head, const locus_tile *tile, int64_t i, const float *T,
                      double *sums);

/* The entries of the pairs of row i. */
void locus_placed_entries(const head_context *head, const locus_tile *tile, int64_t i,
                          int32_t *entries);

/* Of a bias by pair: how many keys from column j on stand each one behind the one before; *m and
 * *n become the positions of the first pair. */
int64_t locus_placed_run(const head_context *head, const locus_tile *tile, int64_t i, int64_t j,
                         int64_t *m, int64_t *n);

#endif
