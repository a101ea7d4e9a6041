/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_RAGGED_FORWARD_H
#define LOCUS_ATTENTION_RAGGED_FORWARD_H

/* The forward call of a ragged batch. Unit = some tasks of one sequence, one after another. */

#include "attention/forward_call.h"

/* Bytes of one thread's scratch. */
size_t locus_ragged_forward_bytes(const locus_plan *plan);

/* All units, then the joins of the rows path. */
void locus_ragged_forward(const locus_forward_call *call);

#endif
