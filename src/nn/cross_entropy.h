/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_CROSS_ENTROPY_H
#define LOCUS_NN_CROSS_ENTROPY_H

/* Softmax cross entropy of logits and target classes:
 *     loss[i] = w[t] (lse(x_i) - x_i[t]),  t = target[i]         0 where t is negative: ignored
 *     total   = sum of loss[i],  weight = sum of w[t] over the rows that count
 *     dx_i    = factor w[t] (softmax(x_i) - e_t)
 * The mean of PyTorch is total / weight; its gradient has factor = 1 / weight. w NULL: 1. */

#include "nn/rows.h"

typedef struct locus_cross_entropy {
    const int32_t *target; /* [rows], below width; negative: the row is ignored */
    const float *weight;   /* [width]; NULL: 1 */
    int64_t width;
} locus_cross_entropy;

/* loss [rows]. The totals are summed in double in the order of the rows. */
void locus_cross_entropy_forward(const locus_workers *workers, const locus_cross_entropy *e,
                                 const locus_rows *x, float *loss, double *total, double *weight);

/* dx may be x. */
void locus_cross_entropy_backward(const locus_workers *workers, const locus_cross_entropy *e,
                                  const locus_rows *dx, const locus_rows *x, float factor);

#endif
