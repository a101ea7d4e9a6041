/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_SLOT_H
#define LOCUS_ATTENTION_SLOT_H

/* Where the sums of a task go: into partial rows, its slot, or straight into rows of the gradients
 * that nobody else shares. */

#include "attention/arena.h"
#include "attention/backward_call.h"

/* Partial gradients of one task; data NULL where not wanted. Row strides are of any sign. */
typedef struct locus_slot {
    locus_sums k;                 /* [Tk][D], turned like the keys                       */
    locus_sums v;                 /* [Tk][Dv]                                            */
    size_t keys_bytes;            /* of k and v, which lie first   */
    locus_sums key_table;         /* [row_count][D] by entry       */
    locus_sums key_side_table;    /* [row_count][D]; may be the same memory as key_table */
    locus_sums value_table;       /* [row_count][Dv]               */
    float *u, *w;                 /* [D]                           */
    locus_sums pos_q;             /* [Tq][D]                       */
    locus_sums pos_k;             /* [Tk][D]                       */
    double *bias;                 /* [span] by z                   */
    double *cls;                  /* [CLS_ROWS]                    */
    double *pair_bias;            /* twins of the parameters of a bias by pair           */
    double *sink;                 /* [1]                           */
    double *gate_sums;            /* [Tk] of sums of gates, what keys take from them */
    int pos_q_fresh, pos_k_fresh; /* hold nothing yet, like k and v */
} locus_slot;

/* Lay out one slot; returns its bytes. base NULL: measure. */
size_t locus_slot_carve(const locus_plan *plan, const locus_wanted *wanted, char *base,
                        locus_slot *slot);

/* What a task that owns tables adds to directly: each head has rows of its own. Of pos_q and
 * pos_k, if no row of the call lies outside. And what is then left of `wanted`. */
locus_wanted locus_owned_tables(const locus_plan *plan);
void locus_leave_out(const locus_wanted *owned, locus_wanted *wanted);

/* 1: the first task of each head owns its rows of this gradient. */
int locus_owned_by_heads(const locus_backward_call *call, const locus_tensor *gradient);

/* What a task leaves in its slot. */
locus_wanted locus_task_wanted(const locus_backward_call *call, const backward_task *task);

/* The task's slot, empty, with the rows that it owns in place of partial ones. */
void locus_slot_begin(const locus_backward_call *call, const backward_task *task, char *base,
                      locus_slot *slot);

#endif
