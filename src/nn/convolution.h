/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_CONVOLUTION_H
#define LOCUS_NN_CONVOLUTION_H

/* Convolution over the tokens of each sequence, in groups of channels, as in DeBERTa:
 *     z_t = b + sum_k W_k x_(t + k - before)           x = 0 beyond the sequence
 *     y_t = activation(z_t) + residual_t
 * Output channels of group g see the input channels of group g alone. A window of rows that lie one
 * behind the other is one long row, so each group is one linear map (nn/linear.h) from
 * taps * inputs / groups channels; its weights are [outputs, taps, inputs / groups], PyTorch's
 * [outputs, inputs / groups, taps] with the last two axes exchanged (locus_convolution_arrange). */

#include "nn/linear.h"
#include "nn/rows.h"

typedef struct locus_convolution {
    locus_workers workers;
    int64_t inputs, outputs, groups; /* groups divides both */
    int64_t taps, before;            /* 0 <= before < taps  */
    const float *weight;             /* [outputs, taps, inputs / groups] */
    const locus_packed *packed;      /* [groups]; NULL: packed as it goes */
    const float *bias;               /* [outputs]; NULL: 0 */
    locus_activation activation;
    size_t second_cache; /* of a core, bytes (locus_cpu_caches); 0: not known */
    void *workspace;     /* locus_convolution_workspace bytes, aligned for floats */
} locus_convolution;

/* to = from with axes 1 and 2 of [outputs, a, b] exchanged; they overlap nowhere. */
void locus_convolution_arrange(float *to, const float *from, int64_t outputs, int64_t a, int64_t b);

/* Bytes of memory for group `group` of the packed weights, and the packing. */
int locus_convolution_packed_bytes(uint64_t *bytes, const locus_convolution *f);
locus_packed locus_convolution_pack(const locus_convolution *f, int64_t group, void *memory);

/* Bytes of workspace for sequences of at most `longest` tokens, for both passes. Returns 0 when
 * the size does not fit, else 1. */
int locus_convolution_workspace(uint64_t *bytes, const locus_convolution *f, int64_t longest);

/* residual as y, or NULL. y overlaps nothing. */
void locus_convolution_forward(const locus_convolution *f, const locus_rows *y, const locus_rows *x,
                               const locus_rows *residual, const locus_ragged *tokens);

/* Where the gradients go; each may be NULL. dx is written; add_parameters adds to what is in the
 * others. */
typedef struct locus_convolution_grad {
    const locus_rows *x;
    float *weight, *bias;
    int add_parameters;
} locus_convolution_grad;

/* dz: the gradient of z, before the activation. */
void locus_convolution_backward(const locus_convolution *f, const locus_convolution_grad *grad,
                                const locus_rows *dz, const locus_rows *x,
                                const locus_ragged *tokens);

#endif
