/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_YARDSTICK_H
#define BENCH_YARDSTICK_H

/* Attention as one would build it on a good GEMM library, to measure ours against:
 *   unfused   whole n x n scores per head: products by sgemm, position terms by contiguous
 *             shifted adds (gathers for DeBERTa), softmax row by row, sgemm again;
 *   flash     plain attention in tiles of 64 x 512, an sgemm per product of a tile;
 *   backward  unfused, from the stored weights.
 * Tables are reordered and biases expanded beforehand and not timed, in their favour. */

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
    int64_t left, right; /* of YARDSTICK_BAND                                  */
    int64_t R;           /* rows of the tables                                 */
    int shared;          /* 1: one table for all heads                         */
    float *key_table;    /* [H or 1][R][D], dotted with q + w; NULL: none      */
    float *query_table;  /* [H or 1][R][D], dotted with k; NULL: none          */
    int32_t *map;        /* [2T-1]                                             */
    float *bias;         /* [H][2T-1] by rho + T - 1; NULL: none               */
    int has_flash, has_backward;
    float *out, *lse;       /* [B][H][T][D], [B][H][T]                         */
    float *weights;         /* [B][H][T][T] for the backward pass, or NULL     */
    float *dq, *dk, *dv;    /* [B][H][T][D]                                    */
    float *dtable;          /* [H][R][D]                                       */
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

/* Parts of the unfused forward pass that the backward pass shares. */
const float *yardstick_head(const float *all, const yardstick *y, int64_t b, int64_t h);
const float *yardstick_table(const yardstick *y, const float *tables, int64_t h);
void yardstick_biased_queries(const yardstick *y, int64_t b, int64_t h, const locus_tensor *bias,
                              float *to);

#endif
