/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_BACKWARD_RUN_H
#define LOCUS_ATTENTION_BACKWARD_RUN_H

/* One task of a backward call. */

#include "attention/slot.h"

/* Run task `index` on `thread`; what is shared goes to the slot in `slot_room`. */
void locus_backward_run(const locus_backward_call *call, int64_t index, char *slot_room,
                        uint32_t thread);

#endif
