/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_NORM_H
#define LOCUS_NN_NORM_H

/* LayerNorm and RMSNorm, forward and backward as twins. The rule (kernels/operators.h):
 *     LayerNorm      centred            y = (x - mean) / sqrt(var + epsilon) gain + shift
 *     RMSNorm        not centred        y = x / sqrt(mean of x^2 + epsilon) gain        (T5, Llama)
 *     epsilon_outside                   the divisor is sqrt(..) + epsilon instead
 * The backward pass needs x only: it makes the statistics of the rows again. */

#include "nn/rows.h"

/* y may be x. */
void locus_norm_forward(const locus_workers *workers, const locus_norm_rule *rule,
                        const locus_rows *y, const locus_rows *x);

/* Where the gradients go; each may be NULL. The add_ flags add to what is there. */
typedef struct locus_norm_grad {
    const locus_rows *x; /* may be dy where gain and shift are NULL */
    float *gain, *shift; /* [width] */
    int add_x, add_parameters;
} locus_norm_grad;

/* Bytes of workspace for the backward pass over `rows` rows. */
uint64_t locus_norm_workspace(int64_t rows);

/* workspace: aligned for floats. */
void locus_norm_backward(const locus_workers *workers, const locus_norm_rule *rule,
                         const locus_norm_grad *grad, const locus_rows *dy, const locus_rows *x,
                         void *workspace);

#endif
