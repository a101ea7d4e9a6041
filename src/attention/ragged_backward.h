/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_RAGGED_BACKWARD_H
#define LOCUS_ATTENTION_RAGGED_BACKWARD_H

/* The tasks of the backward call of a ragged batch: those of its sequences, in their order. Nobody
 * owns the rows of tables, which all sequences share. */

#include "attention/backward_call.h"

/* Bytes of one thread's scratch. */
size_t locus_ragged_backward_bytes(const locus_plan *plan);

/* Before the first task. */
void locus_ragged_backward_begin(const locus_backward_call *call);

void locus_ragged_backward_run(const locus_backward_call *call, int64_t task, char *slot_room,
                               uint32_t thread);

#endif
