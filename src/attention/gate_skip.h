/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_GATE_SKIP_H
#define LOCUS_ATTENTION_GATE_SKIP_H

/* Key tiles that gates have forgotten. No score of row m with a key n of a tile exceeds
 *     c |q_m| max |k_n| + F_m - min F_n,
 * and lse of the row is at least its score with the key at its own position, c q_m . k_m. Where the
 * first lies so far below the second, for every row, that the weights of Tk such keys together are
 * below 2^-25 of the sum, no bit of any row tells: the tile is passed over. Backward, lse is known. */

#include "attention/keys.h"
#include "attention/queries.h"

/* 1 where a call's scores are products and gates alone, and nothing but causal and window hides. */
int locus_gates_may_skip(const locus_plan *plan);

/* Of the key tile that begins with key `first`; its rows as products read them. */
locus_gate_reach locus_gate_reach_of(const head_context *head, const float *rows, int64_t stride,
                                     int64_t first, int64_t count);

/* What the rows of a query tile have: after they were loaded. lse NULL: from the keys. */
void locus_gates_lead(const head_context *head, locus_queries *queries, const float *lse);

/* 1: pass over the key tile. */
int locus_gates_skip(const head_context *head, const locus_queries *queries, const locus_keys *keys,
                     int64_t key_tile);

#endif
