/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_FORWARD_CALL_H
#define LOCUS_ATTENTION_FORWARD_CALL_H

/* One forward call, as its threads see it. */

#include "attention/lower.h"
#include "attention/shown.h"
#include "attention/tables.h"

typedef struct locus_forward_call {
    const locus_plan *plan;
    const locus_tensors *in;
    const locus_results *results;
    const locus_tables *tables; /* NULL: the call packs its own       */
    locus_biases bias;          /* none: the rows path fills its own  */
    int64_t sequence;           /* of a ragged batch: added to the batch entry; else 0 */
    int64_t task_step;          /* from a task to the next that its thread is likely to run */
    char *scratch;              /* [threads][scratch_bytes]           */
    size_t scratch_bytes;
    locus_shown *shown; /* NULL: no mask, or the rows path */
    float *partial;     /* of the rows path */
    double *gate_sums;
    double *shared;         /* numbers of a bias by pair; NULL: none */
    locus_tensors gathered; /* entries instead of the rows of tables, see gathered.h; sums instead
                               of gates, see gates.h */
} locus_forward_call;

static inline locus_arena locus_forward_scratch(const locus_forward_call *call, uint32_t thread)
{
    return (locus_arena){call->scratch + thread * call->scratch_bytes, 0};
}

/* Where the weights go; NULL: nowhere. */
static inline const locus_tensor *locus_kept_weights(const locus_forward_call *call)
{
    return locus_present(&call->results->weights) ? &call->results->weights : NULL;
}

#endif
