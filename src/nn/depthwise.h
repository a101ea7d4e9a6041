/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_DEPTHWISE_H
#define LOCUS_NN_DEPTHWISE_H

/* Convolution over the tokens of each sequence, every channel by itself, as in the Conformer:
 *     y_t[c] = b[c] + sum_k w[k][c] x_(t + k - before)[c]          x = 0 beyond the sequence
 * before = (taps - 1) / 2 centres the window, before = taps - 1 makes it causal. The weights are
 * [taps][width]: PyTorch's [width, 1, taps] transposed. Sums run in ascending k. The parts around
 * it are linear maps (pointwise), a gated sigmoid (nn/activation.h) and norms; a BatchNorm at
 * inference is a factor and a shift per channel, which go into w and b. */

#include "nn/rows.h"

typedef struct locus_depthwise {
    const float *weight;         /* [taps][width] */
    const float *bias;           /* [width]; NULL: 0 */
    int64_t taps, before, width; /* 0 <= before < taps */
} locus_depthwise;

/* y overlaps nothing. */
void locus_depthwise_forward(const locus_workers *workers, const locus_depthwise *f,
                             const locus_rows *y, const locus_rows *x, const locus_ragged *tokens);

/* Where the gradients go; each may be NULL. dx is written; the add_parameters flag adds to what
 * is in the others. */
typedef struct locus_depthwise_grad {
    const locus_rows *x;
    float *weight, *bias;
    int add_parameters;
} locus_depthwise_grad;

void locus_depthwise_backward(const locus_workers *workers, const locus_depthwise *f,
                              const locus_depthwise_grad *grad, const locus_rows *dy,
                              const locus_rows *x, const locus_ragged *tokens);

#endif
