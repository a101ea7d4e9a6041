/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ORACLE_H
#define LOCUS_ORACLE_H

/* The oracle: the same call in double precision, straight from the scheme's
 * definition, one (m, n) pair after the other. Slow, small and readable; it
 * shares no code with the kernels it judges. */

#include <locus/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `level` is LOCUS_ATTEND or LOCUS_LAYER. Floating inputs may be of any floating type;
 * `results` are F64 and have the shapes that locus_forward or locus_layer_forward give.
 * With dresults and grad, also the gradients, as locus_backward defines them: every
 * tensor present in `grad` is F64, dense, of the input's shape, and is overwritten.
 * Allocates through config->allocator. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_oracle(uint32_t level, const locus_config *config,
                                                     const locus_tensors *in,
                                                     const locus_results *results,
                                                     const locus_results *dresults,
                                                     const locus_tensors *grad, locus_error *error);

#ifdef __cplusplus
}
#endif
#endif
