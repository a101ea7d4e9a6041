/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_BACKWARD_WORKER_H
#define LOCUS_ATTENTION_BACKWARD_WORKER_H

/* What one thread of the backward pass works with. */

#include "attention/fold.h"
#include "attention/packed.h"
#include "attention/slot.h"
#include "attention/softmax_rows.h"

/* The rows of one query tile, and the gradients that are theirs. */
typedef struct locus_gradient_rows {
    locus_queries queries;
    float *lse, *factor; /* [rows] P = e^(s - lse) factor                          */
    float *row_dot;      /* [rows] dout . out - dlse                               */
    const float *dout;   /* rows of Dv floats: the caller's, or dout_rows          */
    int64_t dout_stride; /* from one of them to the next                           */
    float *dout_rows;    /* [rows][Dv] copies, where they lie far apart or are no floats */
    uint8_t *dout_bad;   /* [rows]                                                 */
    float *dcontent;     /* [rows][D] of turned q + u                              */
    float *dposition;    /* [rows][key_width] of q + w or pos_query; dcontent, if the plan has
                            same_query_rows                                        */
    float *dpos_q;       /* [rows][D] of pos_q                                     */
    double *dgate;       /* [rows]; NULL: no gates                                 */
    double *dgate_sum;   /* [rows] of sums of gates; NULL: likewise                */
    int fresh;           /* dcontent and dpos_q hold nothing yet                   */
    int dq_is_written;   /* the only key tile wrote dq itself; dcontent holds nothing */
} locus_gradient_rows;

typedef struct locus_backward_worker {
    const locus_backward_call *call;
    const locus_slot *slot; /* NULL: the pass for a shared dense bias */
    head_context head;
    locus_keys keys;
    locus_head_tables tables;
    locus_scores scores;        /* scores.score becomes P             */
    locus_softmax_rows softmax; /* of rows whose lse is too coarse    */
    locus_prefetch prefetch;
    locus_gradient_rows rows[MAX_GROUP]; /* query tiles that a key tile serves in turn */
    /* of the tile */
    locus_tile tile;
    float *grad;              /* [rows][stride] dS                          */
    float *dropped;           /* [rows][stride] P after dropout             */
    float *weights;           /* what the values were multiplied with: P, or `dropped` */
    const locus_tensor *kept; /* P of the call, kept by its forward pass; NULL: computed again */
    double *pair_ds;          /* [keys] dS of a row, for a bias by pair */
    float *diagonal;          /* [distances] sums by distance               */
    float *column_sums;       /* [keys], of gates                           */
    float *gated;             /* [rows][stride] dS times the gates          */
    float *clean_keys, *clean_rows, *clean_dout; /* rooms of operands                          */
    float *gain_product;                         /* [rows][D] before the gain of the tile      */
    float *key_product;                          /* [keys][D] before the decay of the tile     */
    float *dense_sums; /* [rows][Tk] of a shared dense bias of half precision, see run_dense   */
    /* along the key tiles of one query tile */
    locus_strip value_strips[MAX_BANDS]; /* dout . value table */
    locus_fold key_fold;                 /* dS by entry        */
    locus_fold value_fold;               /* weights by entry   */
    const locus_gradient_rows *folded;   /* whose rows they are */
    float *value_strip_room, *key_fold_room, *value_fold_room;
    /* of the keys of the head */
    int32_t *written; /* [key tiles] keys of each whose dk and dv hold sums */
    int fresh_keys;   /* those of the tile hold nothing yet                 */
} locus_backward_worker;

void locus_backward_worker_carve(const locus_plan *plan, locus_arena *arena,
                                 locus_backward_worker *worker);

/* A worker of the call for one head; its keys are not packed yet. */
void locus_backward_worker_begin(const locus_backward_call *call, uint32_t thread, int64_t b,
                                 int64_t h, locus_backward_worker *worker);

/* Pack tables and keys [from, to) of the head. */
void locus_backward_worker_pack(locus_backward_worker *worker, int64_t from, int64_t to);

#endif
