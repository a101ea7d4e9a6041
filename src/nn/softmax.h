/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_SOFTMAX_H
#define LOCUS_NN_SOFTMAX_H

/* Softmax and log-softmax of rows, such as logits over a vocabulary:
 *     y = e^(x - lse), or x - lse where `logarithm`,  lse = ln sum e^x
 *     dx = y (dy - sum dy y), or dy - e^y sum dy
 * -inf gives exactly 0 (log: -inf). A row of nothing but -inf, or with NaN or +inf, is NaN. */

#include "nn/rows.h"

/* y may be x. */
void locus_softmax_forward(const locus_workers *workers, const locus_rows *y, const locus_rows *x,
                           int logarithm, int64_t width);

/* From y, not x. dx may be dy or y. */
void locus_softmax_backward(const locus_workers *workers, const locus_rows *dx,
                            const locus_rows *dy, const locus_rows *y, int logarithm,
                            int64_t width);

#endif
