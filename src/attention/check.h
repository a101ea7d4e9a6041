/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_CHECK_H
#define LOCUS_ATTENTION_CHECK_H

/* The tensors of one call against its plan: present where they were, same shapes, F32 in and
 * out, outputs apart from everything else. */

#include "attention/plan.h"

locus_status locus_check_inputs(const locus_plan *plan, const locus_tensors *in,
                                locus_error *error);
/* The same for tables alone: what belongs to the rows and pairs of a call needs no data. */
locus_status locus_check_table_inputs(const locus_plan *plan, const locus_tensors *in,
                                      locus_error *error);
locus_status locus_check_results(const locus_plan *plan, const locus_results *results,
                                 locus_error *error);
locus_status locus_check_output_overlap(const locus_tensors *in, const locus_tensor *outputs,
                                        const char *const *names, size_t count, locus_error *error);
/* Gradients that are absent are not checked. */
locus_status locus_check_gradients(const locus_plan *plan, const locus_tensors *in,
                                   const locus_results *results, const locus_results *dresults,
                                   const locus_tensors *grad, locus_error *error);

#endif
