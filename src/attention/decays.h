/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_DECAYS_H
#define LOCUS_ATTENTION_DECAYS_H

/* log_decay: channel d of the content product of pair (m, n) is multiplied with e^(P_md - P_nd), P
 * the sums of gates.h. A product of tiles needs the factors of rows and of keys apart:
 *     e^(P_m - P_n) = e^(P_m - P_r) e^(P_r - P_n)
 * with one reference r, the last key of its tile. Rows behind r and keys before it have exponents
 * <= 0 where decays are, so nothing overflows however steep they are, and what underflows is 0.
 * Where rows of the tile lie before r, both factors must stay within e^DECAY_MILD; else the tile is
 * cut into panels of keys with a reference each, and pairs inside of a panel are multiplied one by
 * one. Growth beyond e^DECAY_MOST in one factor is met in the same way. */

#include "attention/scores.h"

/* Floats of scores->decay_room. */
int64_t locus_decay_room(const locus_plan *plan);

/* keys = k e^(P_r - P_n): rows first .. first + count - 1 of one key tile, side by side. */
void locus_decay_keys(const head_context *head, float *keys, int64_t first, int64_t count);

/* How far the exponents of the keys of the tile that begins with key `first` go. */
locus_decay_range locus_decay_range_of(const head_context *head, int64_t first);

/* The content rows for the keys of a tile; scores->steep becomes 1 where that takes panels. */
const float *locus_decayed_rows(locus_scores *scores, const locus_tile *tile);

/* The content product of a steep tile. */
void locus_steep_scores(const locus_scores *scores, const locus_tile *tile);

/* ---- what the backward pass shares ---- */

/* P at a position: D numbers. */
const double *locus_decay_sums_at(const head_context *head, int64_t position);

/* The last key of the key tile that has key n. */
int64_t locus_decay_reference(const head_context *head, int64_t n);

/* Rows before position 0 see nothing: they may have any factor. */
static inline int64_t locus_decay_row_position(const locus_queries *q, int64_t i)
{
    return max_i64(0, q->position + i);
}

/* Keys column .. column + count - 1 of a steep tile with the last of them as the reference. Rows
 * from `first` on are behind it; pairs of the rows before are met one by one. */
typedef struct locus_decay_panel {
    int64_t column, count, first, reference;
    float *stored; /* [count][D] the keys                  */
    float *keys;   /* the same let decay; room of one pair */
    float *packed;
} locus_decay_panel;

/* Rows behind it are in with_gain afterwards. */
locus_decay_panel locus_decay_panel_at(const locus_scores *scores, const locus_tile *tile,
                                       int64_t column, int pairs_only);

/* Columns of the panel that row i of the tile has in reach, from the returned one to *to. */
int64_t locus_decay_row_reach(const locus_tile *tile, const locus_decay_panel *panel, int64_t i,
                              int64_t *to);

#endif
