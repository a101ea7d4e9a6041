/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_GATHERED_H
#define LOCUS_ATTENTION_GATHERED_H

/* Relative tables of a map that jumps between rows. The passes want entries that ascend with z in
 * steps of 0 or 1: so a call gathers the rows in the order in which the distances use them
 * (plan->entry_row), works on those, and adds the gradients of its entries to the rows. Nothing is
 * done where plan->entry_row is NULL: then entries are rows. */

#include "attention/arena.h"
#include "attention/plan.h"

/* Room for the entries of all tables of `from` (the plan's shapes, or gradients): *gathered is
 * `from` with views of that room in place of tables; untouched where entries are rows. */
void locus_gather_carve(const locus_plan *plan, locus_arena *arena, const locus_tensors *from,
                        locus_tensors *gathered);

/* Entries from rows; entries = 0; rows += entries, in their order. */
void locus_gather(const locus_plan *plan, const locus_tensors *in, const locus_tensors *gathered);
void locus_gather_zero(const locus_plan *plan, const locus_tensors *gathered);
void locus_scatter(const locus_plan *plan, const locus_tensors *gathered,
                   const locus_tensors *grad);

#endif
