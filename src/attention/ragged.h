/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_RAGGED_H
#define LOCUS_ATTENTION_RAGGED_H

/* A ragged batch: sequences of any length, one after another in the rows of q, k and v.
 *
 * Each sequence is a call of its own, to the bit: it has the plan that a call of its shape would
 * have, and views of its rows. Sequences of one shape share a plan, and all plans share what one of
 * them asked the scheme for: rows by distance, rotations by position. A sequence's number is its
 * batch entry, which dropout counts by; its views do not move along that axis. */

#include "attention/plan.h"

typedef struct locus_ragged_sequence {
    locus_sequence rows;
    int64_t number;         /* in the order of the offsets         */
    const locus_plan *plan; /* of its shape                        */
    int64_t first_unit;     /* of the forward call                 */
    int64_t first_task;     /* of the backward call                */
    int64_t partial;        /* floats of the rows path before its  */
} locus_ragged_sequence;

struct locus_ragged {
    int64_t count;
    locus_ragged_sequence *sequences; /* those with most work first */
    locus_plan **shapes;              /* one plan for each          */
    int64_t shape_count;
    int64_t units, tasks, partial; /* of all sequences              */
};

/* Lower `plan`, which is that of the whole, and make the plans of its sequences. */
locus_status locus_ragged_new(locus_plan *plan, const char *path, locus_error *error);
void locus_ragged_free(locus_plan *plan);

/* The most bytes that a shape needs. */
size_t locus_ragged_most(const locus_plan *plan, size_t (*bytes)(const locus_plan *shape));

/* The sequence that forward unit `unit` belongs to, and its tasks [*from, *to): as many as give
 * threads about the same work. */
const locus_ragged_sequence *locus_ragged_unit(const locus_plan *plan, int64_t unit, int64_t *from,
                                               int64_t *to);

/* The sequence that backward task `task` belongs to. */
const locus_ragged_sequence *locus_ragged_task(const locus_plan *plan, int64_t task);

/* The rows of one sequence. */
void locus_ragged_tensors(const locus_ragged_sequence *sequence, const locus_tensors *all,
                          locus_tensors *own);
void locus_ragged_results(const locus_ragged_sequence *sequence, const locus_results *all,
                          locus_results *own);

#endif
