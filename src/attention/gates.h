/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_GATES_H
#define LOCUS_ATTENTION_GATES_H

/* log_gate: pair (m, n) has F_m - F_n, F_p = log_gate[0] + .. + log_gate[p] of its sequence. Tasks
 * meet the sums F, in double, in the place of the gates, and so do their gradients: with
 *     dF_m += sum_n ds_mn,  dF_n -= sum_m ds_mn     (m, n positions of one sequence)
 * the gradient of a gate is that of all sums from its position on,
 *     dlog_gate_t = sum of dF_p over p >= t  =  - sum of dF_p over p < t,
 * for every pair gives to one sum what it takes from another. log_decay is the same for every
 * channel of a head; see decays.h.
 *
 * A tile splits F_m - F_ref and F_ref - F_n into two floats each, F_ref that of its first key. The
 * greater parts of two sums close to one another cancel without an error, however large they are. */

#include "attention/arena.h"
#include "attention/scores.h"

/* Room for the sums of all gates and decays of a call, in double; 0 numbers where there are none. */
double *locus_gates_carve(const locus_plan *plan, locus_arena *arena);

/* *summed, a copy of the call's tensors, gets the sums of `in` in `room` for its gates. */
void locus_gates_sum(const locus_plan *plan, const locus_tensors *in, double *room,
                     locus_tensors *summed);

/* *summed, a copy of the call's gradients, gets those of the sums, which start from 0, for those
 * of the gates that are wanted; and these from them. */
void locus_gates_begin(const locus_plan *plan, double *room, locus_tensors *summed);
void locus_gates_pull_back(const locus_plan *plan, const locus_tensors *summed,
                           const locus_tensors *grad, int accumulate);

/* Of such a tensor [B,H,N(,D)] of sums: that of position 0 of the head. */
double *locus_gate_sums_of(const head_context *head, const locus_tensor *sums);

/* score[i][j] += F_m - F_n for the pairs that causal and window let through. */
void locus_add_gates(const locus_scores *scores, const locus_tile *tile);

/* Of dS of a tile, rows `stride` apart: to_rows[i] += what each row has in all, to_keys[j] += what
 * each column has; `room`: [columns]. */
void locus_spread_gates(const head_context *head, const locus_tile *tile, const float *ds,
                        float *room, double *to_rows, double *to_keys);

#endif
