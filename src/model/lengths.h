/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_LENGTHS_H
#define LOCUS_MODEL_LENGTHS_H

#include <locus/status.h>

enum { MODEL_MOST_TOKENS = 1 << 20 }; /* of one sequence */

int model_is_length(int64_t tokens);

/* offsets[sequences + 1] begin at 0 and rise by lengths. */
locus_status model_check_offsets(const int64_t *offsets, int64_t sequences, locus_error *error);

#endif
