/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

/* Attention as one would build it on a good GEMM library, to measure ours against:
 *   unfused   whole n x n scores per head: products by sgemm, position terms by contiguous
 *             shifted adds (gathers for DeBERTa), softmax row by row, sgemm again; RoPE and
 *             xPos turn q and k first and are plain then;
 *   flash     plain attention in tiles of 64 x 512, an sgemm per product of a tile;
 *   backward  unfused, from the stored weights (and turned q and k): gradients of the scores
 *             are folded by table row, then sgemm.
 * Tables are reordered, biases expanded, sines taken beforehand and not timed, in their
 * favour. */

#include <locus/locus.h>

#include "bench/blas.h"
#include "bench/loops.h"

/* Scratch memory that yardsticks share: they run one after the other. */
typedef struct yardstick_scratch {
    float *data;
    size_t floats;
} yardstick_scratch;

/* How a table row follows from the distance rho = n - m (key minus query). */
typedef enum yardstick_rule {
    YARDSTICK_NO_TABLE,
    YARDSTICK_STRIP, /* row = rho + T - 1                   */
    YARDSTICK_BAND,  /* row = clip(rho, -left, right) + left */
    YARDSTICK_MAP,   /* row = map[rho + T - 1]              */
} yardstick_rule;

typedef struct yardstick {
    const blas *blas;
    const bench_loops *loops;
    yardstick_scratch *scratch;
    int64_t B, H, T, D;
    float scale;
    locus_tensors in;
    yardstick_rule rule;
    int64_t left, right;   /* of YARDSTICK_BAND                                  */
    int64_t R;             /* rows of the tables                                 */
    int shared;            /* 1: one table for all heads                         */
    float *key_table;      /* [H or 1][R][D], dotted with q + w; NULL: none      */
    float *query_table;    /* [H or 1][R][D], dotted with k; NULL: none          */
    int32_t *map;          /* [2T-1]                                             */
    int64_t near, far;     /* all of map before and from there on is the same row each */
    float *bias;           /* [H][2T-1] by rho + T - 1; NULL: none               */
    bench_pairs pairs;     /* that turn; none: count 0                           */
    float *turns[4];       /* [T][pairs]: cosine and sine of q, of k, gains included */
    const float *given[2]; /* q and k as they were; in.q and in.k are ...     */
    float *turned[2];      /* ... these, [B][H][T][D], filled by the forward pass */
    int has_flash, has_backward;
    float *out, *lse;       /* [B][H][T][D], [B][H][T]                         */
    float *weights;         /* [B][H][T][T] for the backward pass, or NULL     */
    float *dq, *dk, *dv;    /* [B][H][T][D]                                    */
    float *dtable;          /* [H][R][D]                                       */
    float *dquery_table;    /* the same; NULL: its gradient goes to dtable     */
    float *dvalue_table;    /* [R][D]                                          */
    float *dbias, *du, *dw; /* [H][2T-1] by rho + T - 1, [H][D], [H][D]       */
    float *dpos_q, *dpos_k; /* [H][T][D]                                       */
} yardstick;

/* For a call in which every query sees every key, with `scale` as the plan resolved it.
 * 0: there is none for it (or no memory), and `y` holds nothing. */
int yardstick_new(yardstick *y, const blas *b, const bench_loops *loops, yardstick_scratch *scratch,
                  const locus_config *config, double scale, const locus_tensors *in, int backward);
void yardstick_free(yardstick *y);

void yardstick_unfused(yardstick *y);
void yardstick_flash(yardstick *y);
void yardstick_backward(yardstick *y, const float *dout); /* after yardstick_unfused */

/* ---- rows and blocks by distance (yardstick_rows.c) ---- */

/* Row i of the scores, given its products with the whole table. */
void yardstick_add_row(const yardstick *y, float *s, const float *products, int64_t i);
/* s[i][j] += products[j][row(j - i)], for all i, j. */
void yardstick_add_turned(const yardstick *y, float *s, const float *products);
/* The ways back: sums by table row, of row i, and of every column. */
void yardstick_fold_row(const yardstick *y, const float *x, float *folded, int64_t i);
void yardstick_fold_turned(const yardstick *y, const float *x, float *folded);

/* Row `from` of a head turned to `to`; which: 0 q, 1 k. */
void yardstick_turn_head(const yardstick *y, int which, int back, const float *from, float *to);

/* Parts of the unfused forward pass that the backward pass shares. */
const float *yardstick_head(const float *all, const yardstick *y, int64_t b, int64_t h);
const float *yardstick_table(const yardstick *y, const float *tables, int64_t h);
void yardstick_biased_queries(const yardstick *y, int64_t b, int64_t h, const locus_tensor *bias,
                              float *to);

#endif
