/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_SHOWN_H
#define LOCUS_ATTENTION_SHOWN_H

/* What a mask shows of the tiles of a pass, found once for all heads and batch entries that share
 * the mask: [its batch entries][its heads][query tiles][key tiles][blocks of LOCUS_REGISTER_ROWS
 * rows]. */

#include "attention/arena.h"
#include "attention/queries.h"

/* Panels from .. to - 1 of a key tile: the first of which a pair is shown to the last; from = to:
 * none. */
struct locus_shown {
    uint8_t from, to;
    uint8_t all; /* every pair of these panels is shown */
};
enum { MAX_BLOCKS = MAX_TILE_ROWS / LOCUS_REGISTER_ROWS };

/* Room for the tiles of a pass; NULL where the call has no mask. */
locus_shown *locus_shown_carve(const locus_plan *plan, const locus_geometry *geometry,
                               locus_arena *arena);

/* Fill it, if there is one. */
void locus_shown_fill(const locus_plan *plan, const locus_geometry *geometry,
                      const locus_tensors *in, locus_shown *shown);

/* Let the query tile reach from the first key tile of which it is shown a pair to the last; without
 * head->shown, it stays as it is. */
void locus_shown_reach(const head_context *head, locus_queries *queries);

/* Of the blocks of the query tile of `rows` rows from `query` on, in key tile `key_tile`: those of
 * head->shown, or, if that is NULL, found in the mask and put into `room`. */
const locus_shown *locus_shown_at(const head_context *head, int64_t query, int64_t rows,
                                  int64_t key_tile, locus_shown room[MAX_BLOCKS]);

#endif
