/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_BACKWARD_CALL_H
#define LOCUS_ATTENTION_BACKWARD_CALL_H

/* One backward call, as its threads see it. Task = (batch entry, head, chunk of its query tiles).
 *
 * A task owns its rows of dq. Everything that several tasks add to (dk, dv, table gradients, ...)
 * goes into the task's slot, a partial buffer (slot.h). Tasks run in rounds of as many as there are
 * slots; after each round the slots are added to the gradients in the order of the tasks
 * (reduce.h). So every sum has one fixed order, and no bit depends on the threads. */

#include "attention/lower.h"
#include "attention/ragged.h"
#include "attention/shown.h"
#include "attention/tables.h"

/* What the caller asked for. */
typedef struct locus_wanted {
    int q, k, v, u, w, pos_query, gate;
    int key_table, key_side_table, value_table;
    int bias, pair_bias, pos_q, pos_k, cls, sink;
    int log_gate, log_decay;
    int dense; /* bias_dense */
} locus_wanted;

typedef struct locus_backward_call {
    const locus_plan *plan;
    const locus_tensors *in;
    const locus_results *results;
    const locus_tensor *dout;
    const locus_tensor *dlse; /* NULL: none */
    const locus_tensors *grad;
    const locus_tables *tables; /* NULL: the call packs its own */
    locus_wanted wanted;
    locus_wanted owned;                    /* by the first task of each head; see backward_task */
    int accumulate;                        /* LOCUS_ACCUMULATE             */
    int dense_directly;                    /* bias_dense is not broadcast: tasks own its rows */
    float *bias_room;                      /* [H][locus_bias_room]         */
    locus_biases bias;                     /* in it                        */
    locus_shown *shown;                    /* NULL: no mask                */
    int64_t sequence;                      /* of a ragged batch: added to the batch entry; else 0 */
    double *bias_total;                    /* [H][span] by z               */
    double *cls_total;                     /* [H][CLS_ROWS]                */
    double *sink_total;                    /* [H]                          */
    double *exact;                         /* F64 gradients of the bias's parameters: twins */
    locus_tensors gathered, gathered_grad; /* entries instead of rows, see gathered.h; sums instead
                                              of gates, see gates.h */
    double *gate_sums, *gate_dsums;
    double *shared;               /* numbers of a bias by pair; NULL: none */
    locus_head_tables relative;   /* packed once where heads share all relative tables */
    float *key_sums, *value_sums; /* [Tk][D], [Tk][Dv] of the keys whose tasks are being
                                              reduced, where dk or dv is of half precision */
    char *scratch, *slots;        /* [threads][scratch_bytes], [slots][slot_bytes] */
    size_t scratch_bytes, slot_bytes;
    int64_t first_task, round_tasks; /* of the running round */
} locus_backward_call;

/* The task's place in the call. */
typedef struct backward_task {
    int64_t index;
    int64_t b, h, kv;
    int64_t tile_from, tile_to; /* its query tiles */
    /* It adds to the gradients themselves, not to its slot: to its head's rows of dk and dv; to
     * those of the tables and of pos_q and pos_k that are the head's own in all batch entries. */
    int owns_keys, owns_tables;
} backward_task;
backward_task locus_backward_task_at(const locus_plan *plan, int64_t index, int accumulate);
static inline int64_t locus_backward_tasks(const locus_plan *plan)
{
    if (plan->ragged != NULL) return plan->ragged->tasks;
    return plan->call.B * plan->call.H * plan->backward_chunks;
}

/* Nobody shares a head's dk and dv, so its first task owns them. Turned keys are turned back where
 * they were summed, so they must start from 0. Sums of halves are floats somewhere else. Of
 * keys that decay, the sums of a task are read again (reduce.c). */
int locus_heads_own_keys(const locus_plan *plan, int accumulate);

/* 1 where no head has a relative table of its own. */
int locus_heads_share_tables(const locus_plan *plan);

#endif
