/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_IN_PLACE_H
#define LOCUS_ATTENTION_IN_PLACE_H

/* Few query rows: each right row is read once, in place, and all the time goes into waiting for
 * memory, which must never wait for us:
 *
 *     use      tile t      E P K V      table entries, pos_k, keys, values
 *     fetch    tile t + 1  E P K V      a few rows with every few rows of any product
 *
 * What heads share by position (rotations, shared tables) was read for the head before and is in
 * the cache. Only speed depends on it. */

#include "attention/scores.h"

extern const locus_path locus_in_place;

/* Rooms that the heads of a group share, and those that each has for itself. */
void locus_in_place_carve(const locus_plan *plan, locus_arena *arena, locus_scores *scores);
void locus_in_place_carve_own(const locus_plan *plan, locus_arena *arena, locus_scores *scores);

/* While a tile is computed, fetch what key tile `t` of the heads will read for the query rows at
 * `position`. */
void locus_in_place_fetch(const head_context *heads, int64_t count, int64_t position, int64_t t,
                          locus_prefetch *prefetch);

#endif
