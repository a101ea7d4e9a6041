/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_LINEAR_H
#define LOCUS_NN_LINEAR_H

/* Linear layers on batches of rows, forward and backward as twins:
 *     y  = x W^T + b                    W [outputs, inputs], b [outputs]
 *     dx = dy W,  dW = dy^T x,  db = sum of the rows of dy
 * Built on the kernel table's gemm. Inner dimensions are summed in blocks of a fixed
 * length, counted from the first row or column, and every output element belongs to
 * one task: the bits depend neither on the threads nor, in y and dx, on the other rows.
 * NaN and infinities propagate as in the formulas. Nothing is allocated. */

#include <stdint.h>

#include <locus/tensor.h>

#include "kernels/kernels.h"

/* Row t of batch b starts at data + b * batch_stride + t * row_stride. */
typedef struct locus_rows {
    float *data;
    int64_t batches, rows;
    int64_t batch_stride, row_stride;
} locus_rows;

typedef struct locus_linear {
    const locus_kernels *kernels;
    uint32_t threads;
    const locus_tensor *weight; /* [outputs, inputs], F32, unit stride along the inputs    */
    const locus_tensor *bias;   /* [outputs]; NULL: none                                   */
    void *workspace;            /* locus_linear_workspace bytes, aligned for floats        */
} locus_linear;

/* Bytes of workspace for both passes. Returns 0 when the size does not fit, else 1. */
int locus_linear_workspace(uint64_t *bytes, int64_t inputs, int64_t outputs, uint32_t threads);

/* y rows of width outputs, x rows of width inputs; y overlaps nothing. */
void locus_linear_forward(const locus_linear *f, const locus_rows *y, const locus_rows *x);

/* Where the gradients go. Each may be NULL: it is not computed. The add_ flags add to
 * what is there instead of overwriting it. */
typedef struct locus_linear_grad {
    const locus_rows *x;        /* as many rows as dy                                      */
    const locus_tensor *weight; /* [outputs, inputs]                                       */
    const locus_tensor *bias;   /* [outputs]                                               */
    int add_x, add_parameters;
} locus_linear_grad;

void locus_linear_backward(const locus_linear *f, const locus_rows *dy, const locus_rows *x,
                           const locus_linear_grad *grad);

#endif
