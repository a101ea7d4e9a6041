/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_LINEAR_H
#define LOCUS_NN_LINEAR_H

/* Linear maps on batches of rows, forward and backward as twins:
 *     y  = gate activation(z) + residual,  z = x W^T + b     W [outputs, inputs], b [outputs]
 *     dx = dz W,  dW = dz^T x,  db = sum of the rows of dz
 * Built on the kernels of kernels/linear.h. Every output element belongs to one task and is
 * summed in blocks of the kernels' `inner` inner indices, counted from the first: the bits
 * depend neither on the threads nor, in y and dx, on the other rows, nor on whether W was packed
 * before. NaN propagates as in the formulas. Nothing is allocated. */

#include <stdint.h>

#include <locus/tensor.h>

#include "kernels/kernels.h"

/* Row t of batch b starts at data + b * batch_stride + t * row_stride. */
typedef struct locus_row_batch {
    float *data;
    int64_t batches, rows;
    int64_t batch_stride, row_stride;
} locus_row_batch;

/* W as one kernel table reads it: packed once, then shared by any number of calls and
 * threads. It is a copy: W may change or go. The memory is the caller's. */
typedef struct locus_packed {
    const locus_kernels *kernels;
    int64_t inputs, outputs;
    const float *panels; /* right panels of all inputs, one behind the other */
} locus_packed;

/* Bytes of memory for it, whatever the kernels. Returns 0 when the size does not fit, else 1. */
int locus_packed_bytes(uint64_t *bytes, int64_t inputs, int64_t outputs);

/* Pack weight [outputs, inputs], F32, unit stride along the inputs. `memory` is aligned for
 * floats and stays in use as long as the handle. */
locus_packed locus_pack_weight(const locus_kernels *kernels, const locus_tensor *weight,
                               void *memory, uint32_t threads);

/* W in integers: nn/quantized.h. */
typedef struct locus_quantized locus_quantized;

typedef struct locus_linear {
    const locus_kernels *kernels;
    uint32_t threads;
    size_t second_cache;              /* of one core, bytes (locus_cpu_caches); 0: not known     */
    const locus_tensor *weight;       /* [outputs, inputs], F32, unit stride along the inputs    */
    const locus_packed *packed;       /* W of the same kernels, for the forward pass; NULL: it is */
                                      /* packed piece by piece as the product goes               */
    const locus_quantized *quantized; /* W in its place, forward alone; NULL: none         */
    const locus_tensor *bias;         /* [outputs]; NULL: none                                   */
    void *workspace;                  /* locus_linear_workspace bytes, aligned for floats        */
} locus_linear;

/* Bytes of workspace for both passes of any map by f->kernels, f->threads, f->second_cache. */
uint64_t locus_linear_workspace(const locus_linear *f);

/* What becomes of z. Two maps make a gated pair: the second one takes the y of the first, which
 * had the activation, as its gate. */
typedef struct locus_linear_end {
    locus_activation activation;
    const locus_row_batch *gate;     /* as y; NULL: 1 */
    const locus_row_batch *residual; /* as y; NULL: 0 */
} locus_linear_end;

/* y rows of width outputs, x rows of width inputs; y overlaps nothing. end NULL: y = z. With
 * `packed`, weight may be NULL. */
void locus_linear_forward(const locus_linear *f, const locus_row_batch *y, const locus_row_batch *x,
                          const locus_linear_end *end);

/* Where the gradients go. Each may be NULL: it is not computed. The add_ flags add to
 * what is there instead of overwriting it. */
typedef struct locus_linear_grad {
    const locus_row_batch *x;   /* as many rows as dz                                      */
    const locus_tensor *weight; /* [outputs, inputs]                                       */
    const locus_tensor *bias;   /* [outputs]                                               */
    int add_x, add_parameters;
} locus_linear_grad;

/* dz is the gradient of z: dy where there is no end. */
void locus_linear_backward(const locus_linear *f, const locus_row_batch *dz,
                           const locus_row_batch *x, const locus_linear_grad *grad);

#endif
