/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_KEY_SIDE_H
#define LOCUS_ATTENTION_KEY_SIDE_H

/* A table that is multiplied with the keys: DeBERTa's position to content, relative_key_query's
 * second term. In a tile, entry e serves every key at one distance or a few, a range of `rows` keys
 * or so, which moves upwards with e:
 *
 *        keys →        0 ................ columns - 1
 *     entry low        [ used ]
 *     entry low + 1    [ used ... ]
 *     ...                 [ used ............ ]       the products, folds and sums of the rest
 *     entry high                       [ used ]       are left out
 *
 * The products form a key strip, a row for each entry, so that the packed keys serve here, too; a
 * row of the tile reads a diagonal of it, see kernels/columns.inc.c. */

#include "attention/entries.h"
#include "attention/keys.h"

/* Floats of a key strip, and of the room in which a band reads it. */
int64_t locus_key_strip_floats(const locus_plan *plan, const locus_geometry *geometry);
int64_t locus_key_band_floats(const locus_geometry *geometry);

/* The products of the tile's keys with the entries that they use in it, in `room`:
 * strip.data[(entry - first) * row_stride + key]. */
locus_strip locus_key_strip_products(const head_context *head, const locus_tile *tile,
                                     const locus_keys *keys, float *room);

/* Let the product of a segment add scale k_j . entry(i, j) to what it adds already; `room`:
 * locus_key_band_floats. */
void locus_key_strip_add(const head_context *head, const locus_band *segment,
                         const locus_strip *strip, float *room, locus_product_tile *product);

/* The same of given positions, pair by pair: score[i][j] += scale k_j . entry(i, j). Distances of
 * neighbours have nothing in common, so there is no strip that they could share. */
void locus_placed_key_side_add(const head_context *head, const locus_tile *tile, locus_keys *keys,
                               float *score);

/* The gradients T of a tile's scores go through the table, times the scale:
 *     to_keys[j] += sum_i T[i][j] entry(i, j)      to_entries[entry(i, j)] += T[i][j] k_j
 * either may be NULL. The patches need no scale: a pair that sees a non-finite entry has a
 * non-finite T. */
typedef struct locus_key_side_gradients {
    const locus_operand *keys, *entries;
    float *key_strip; /* room */
    locus_sums to_keys, to_entries;
} locus_key_side_gradients;
void locus_key_side_spread(const head_context *head, const locus_tile *tile, const float *T,
                           const locus_key_side_gradients *g);

#endif
