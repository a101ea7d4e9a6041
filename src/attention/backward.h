/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_BACKWARD_H
#define LOCUS_ATTENTION_BACKWARD_H

/* The backward pass, cut into units = (batch, head, split of the query tiles).
 *
 * A unit owns its rows of dq. Everything that several units add to (dk, dv, table
 * gradients, ...) goes into the unit's slot, a partial buffer. Units run in rounds of
 * `slots` units; after each round the slots are added to the gradients in the order of
 * the units. So every sum has one fixed order, and no bit depends on the threads. */

#include "attention/relative.h"

/* What the caller asked for. */
typedef struct locus_wanted {
    int q, k, v, u, w;
    int key_table, query_table, value_table;
    int bias, pos_q, pos_k, cls;
    int dense; /* bias_dense */
} locus_wanted;

/* Partial gradients of one unit; NULL where not wanted. */
typedef struct locus_slot {
    float *k;                     /* [Tk][D], turned like the keys                       */
    float *v;                     /* [Tk][Dv]                                            */
    size_t keys_bytes;            /* of k and v, which lie first   */
    float *key_table;             /* [row_count][D] by entry       */
    float *query_table;           /* [row_count][D]; may be the same memory as key_table */
    float *value_table;           /* [row_count][Dv]               */
    float *u, *w;                 /* [D]                           */
    float *pos_q;                 /* [Tq][D]                       */
    float *pos_k;                 /* [Tk][D]                       */
    double *bias;                 /* [span] by z                   */
    double *cls;                  /* [2]                           */
    int pos_q_fresh, pos_k_fresh; /* hold nothing yet, like k and v */
    /* from one row to the next, of any sign */
    int64_t k_row, v_row, key_table_row, query_table_row, value_table_row, pos_q_row, pos_k_row;
} locus_slot;

typedef struct locus_backward_call {
    const locus_plan *plan;
    const locus_tensors *in;
    const locus_results *results;
    const locus_tensor *dout;
    const locus_tensors *grad;
    locus_wanted wanted;
    locus_wanted owned;  /* by the first unit of each head; see locus_unit */
    int accumulate;      /* LOCUS_ACCUMULATE             */
    int dense_directly;  /* bias_dense is not broadcast: units own its rows */
    float *bias;         /* [H][locus_bias_room]         */
    double *bias_total;  /* [H][span] by z               */
    double *cls_total;   /* [H][2]                       */
    locus_tensors exact; /* F64 gradients of the bias's parameters */
    char *workers, *slots;
    size_t worker_bytes, slot_bytes;
    int64_t first_unit, round_units; /* of the running round */
} locus_backward_call;

/* The unit's place in the call. */
typedef struct locus_unit {
    int64_t index;
    int64_t b, h, kv;
    int64_t tile_from, tile_to; /* its query tiles */
    /* It adds to the gradients themselves, not to its slot: to its head's rows of dk and dv; to
     * those of the tables and of pos_q and pos_k that are the head's own in all sequences. */
    int owns_keys, owns_tables;
} locus_unit;
locus_unit locus_unit_at(const locus_plan *plan, int64_t index, int accumulate);
static inline int64_t locus_unit_count(const locus_plan *plan)
{
    return plan->call.B * plan->call.H * plan->backward_splits;
}

/* Nobody shares a head's dk and dv, so its first unit owns them. Turned keys are turned back where
 * they were summed, so they must start from 0. */
int locus_heads_own_keys(const locus_plan *plan, int accumulate);

/* 1: the first unit of each head owns its rows of this gradient (see owns_tables). */
int locus_owned_by_heads(const locus_backward_call *call, const locus_tensor *gradient);

/* What a unit that owns tables adds to directly: each head has rows of its own. Of pos_q and
 * pos_k, if no row of the call lies outside. */
locus_wanted locus_owned_tables(const locus_plan *plan);
void locus_leave_out(const locus_wanted *owned, locus_wanted *wanted);

/* The unit's own rows of dk and dv, and of what it owns else, in place of partial ones. */
void locus_own_keys(const locus_backward_call *call, const locus_unit *unit, locus_slot *slot);
void locus_own_tables(const locus_backward_call *call, const locus_unit *unit, locus_slot *slot);

/* What a unit leaves in its slot. */
locus_wanted locus_unit_wanted(const locus_backward_call *call, const locus_unit *unit);

/* Lay out one slot; returns its bytes. base NULL: measure. */
size_t locus_slot_carve(const locus_plan *plan, const locus_wanted *wanted, char *base,
                        locus_slot *slot);

void locus_backward_rows_begin(const locus_backward_call *call, const locus_head *head,
                               const locus_rows *rows);

/* What one query tile carries along its key tiles. */
typedef struct locus_pass {
    const locus_backward_call *call;
    const locus_slot *slot;   /* NULL: the pass for a shared dense bias */
    int64_t rows;             /* of the query tile                      */
    int fresh;                /* dk and dv of the tile hold nothing yet */
    int fresh_rows;           /* nor do dcontent and dplace             */
    locus_strips key_strip;   /* position . RK                          */
    locus_strips value_strip; /* dout . RV                              */
    locus_strips key_fold;    /* dS by entry                            */
    locus_strips value_fold;  /* weights by entry                       */
} locus_pass;
void locus_pass_begin(const locus_backward_call *call, const locus_head *head,
                      const locus_slot *slot, int64_t rows, locus_pass *pass);
/* Flush what is left in the folds. */
void locus_pass_end(locus_pass *pass, const locus_head *head);

/* worker->score = P, worker->grad = dS, worker->dropped = P after dropout. */
void locus_tile_gradients(locus_pass *pass, const locus_head *head, const locus_rows *rows,
                          const locus_tile *tile);

/* dk and dv of a unit: whether they hold sums already; zeros where no sum was written. */
void locus_keys_begin(const locus_head *head, int hold_sums);
void locus_keys_end(const locus_head *head, const locus_slot *slot);

/* Add the tile's share to dq of its rows and to the slot. */
void locus_tile_spread(locus_pass *pass, const locus_head *head, const locus_rows *rows,
                       const locus_tile *tile);

/* Add dS of one tile to the gradient of bias_dense. */
void locus_tile_spread_dense(const locus_backward_call *call, const locus_head *head,
                             const locus_tile *tile);

/* backward_ahead.c: what the worker needs after query tiles [from, to) of the unit: for the group
 * that follows in it, or for the first one of its next unit. */
void locus_look_ahead(const locus_backward_call *call, const locus_head *head,
                      const locus_unit *now, int64_t from, int64_t to, int64_t pairs);

/* fold.c: zero the gradients that are sums over units; add the slots of a round; pull the bias back to its parameters. */
void locus_fold_zero(const locus_backward_call *call);
void locus_fold_round(const locus_backward_call *call);
void locus_fold_bias(const locus_backward_call *call);

#endif
