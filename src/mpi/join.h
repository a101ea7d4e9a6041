/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_JOIN_H
#define LOCUS_MPI_JOIN_H

/* Softmax over two sets of keys from the softmax over each:
 *     lse = ln(e^a + e^b),  out = e^(a - lse) out_a + e^(b - lse) out_b
 * with a, b and lse as lse + lse_low, in double. */

#include <locus/call.h>

/* all = all joined with more, row by row; F32, all three tensors present. */
void ring_join(const locus_results *all, const locus_results *more, uint32_t threads);

/* A softmax over no key: out 0, lse -inf or the sink of the head. */
void ring_join_begin(const locus_results *all, const locus_tensor *sink);

#endif
