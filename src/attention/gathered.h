/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_GATHERED_H
#define LOCUS_ATTENTION_GATHERED_H

/* Tables and parameters as the passes want them, where the caller's are otherwise (plan->gathers).
 * Entries of relative tables that ascend with z in steps of 0 or 1: where the map of a scheme jumps,
 * a call gathers the rows in the order in which the distances use them (plan->entry_row). And floats:
 * halves are converted once per call, for every head and batch entry reads them. The gradients of
 * both are summed in floats, and then added to the caller's, rounded once. What each row of a call
 * brings (q, k, v, bias_dense, pos_query, gate, log_gate, log_decay) is not among them: that is read and written in
 * place, a tile at a time. */

#include "attention/arena.h"
#include "attention/plan.h"

typedef enum locus_pass { LOCUS_FORWARD, LOCUS_BACKWARD } locus_pass;

/* 1 where a call with these shapes gathers anything. */
int locus_gathers(const locus_plan *plan, const locus_tensors *shapes);

/* What shapes become: those that a ragged batch gives to its sequences, whose maps are their own. */
void locus_gathered_shapes(const locus_plan *plan, locus_tensors *shapes);

/* Room for what `from` (the plan's shapes, a call's tensors, or gradients) has to have gathered:
 * *gathered is `from` with views of that room in the places of those; untouched where plan->gathers
 * is 0. */
void locus_gather_carve(const locus_plan *plan, locus_pass pass, locus_arena *arena,
                        const locus_tensors *from, locus_tensors *gathered);

/* *gathered = `in` with what was gathered before, in `kept`. */
void locus_gather_keep(const locus_plan *plan, locus_pass pass, const locus_tensors *in,
                       const locus_tensors *kept, locus_tensors *gathered);

/* Fill it; set it to 0; add it to gradients, which start from 0 unless they accumulate. */
void locus_gather(const locus_plan *plan, locus_pass pass, const locus_tensors *in,
                  const locus_tensors *gathered);
void locus_gather_zero(const locus_plan *plan, const locus_tensors *grad,
                       const locus_tensors *gathered);
void locus_scatter(const locus_plan *plan, const locus_tensors *gathered, const locus_tensors *grad,
                   int accumulate);

#endif
