/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_REDUCE_H
#define LOCUS_ATTENTION_REDUCE_H

/* Partial gradients of a round into the gradients, in the order of the tasks. */

#include "attention/slot.h"

/* Zero the gradients that are sums over tasks. */
void locus_reduce_zero(const locus_backward_call *call);

/* Add the slots of the running round. */
void locus_reduce_round(const locus_backward_call *call);

/* Pull the bias back to its parameters, and add dcls. */
void locus_reduce_bias(const locus_backward_call *call);

/* Add dsink. */
void locus_reduce_sink(const locus_backward_call *call);

#endif
