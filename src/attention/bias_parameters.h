/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_BIAS_PARAMETERS_H
#define LOCUS_ATTENTION_BIAS_PARAMETERS_H

/* The tensors that a scheme's bias depends on, as its declarations list them (LOCUS_USE_BIAS).
 * Their gradients are summed in double, in twins that lie one after another. */

#include "attention/plan.h"

/* Numbers in all twins together; 0 where the scheme has no bias. */
int64_t locus_bias_numbers(const locus_plan *plan);

/* Dense F64 views on `data`, one for each parameter of the plan. */
locus_tensors locus_bias_twins(const locus_plan *plan, double *data);

/* 1 when the gradient of some parameter is wanted. */
int locus_bias_is_wanted(const locus_plan *plan, const locus_tensors *grad);

/* 1 when heads share a parameter: its shape does not name H. */
int locus_bias_is_shared(const locus_plan *plan);

/* grad += twins, for those that are wanted. */
void locus_bias_add_twins(const locus_plan *plan, const locus_tensors *grad,
                          const locus_tensors *twins);

#endif
