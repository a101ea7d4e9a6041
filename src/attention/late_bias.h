/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_LATE_BIAS_H
#define LOCUS_ATTENTION_LATE_BIAS_H

/* Biases that no product adds: those by pair, of which the scheme fills a run of keys per query
 * row; and those by distance next to relative tables, which take the product's place for them.
 * plan->late_bias says that there is one; such tiles are not plain. */

#include "attention/scores.h"
#include "attention/tile.h"

/* score[i][j] += b(m, n) for the pairs that causal and window let through. `by_z` as
 * locus_tile_bias gives it; not read where the bias is by pair. */
void locus_add_late_bias(const locus_scores *scores, const locus_tile *tile, const float *by_z);

/* The bias of the pairs that row i of the tile has in reach, before its gate multiplies it. */
const float *locus_gated_bias(const locus_scores *scores, const locus_tile *tile, const float *by_z,
                              int64_t i);

#endif
