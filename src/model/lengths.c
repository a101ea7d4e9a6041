/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "model/lengths.h"

int model_is_length(int64_t tokens) { return tokens >= 0 && tokens <= MODEL_MOST_TOKENS; }

/* Offsets begin at 0 and are compared before they are subtracted: nothing overflows. */
locus_status model_check_offsets(const int64_t *offsets, int64_t sequences, locus_error *error)
{
    if (offsets[0] != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "offsets: found %" PRId64 " first, expected 0",
                          offsets[0]);
    for (int64_t s = 0; s < sequences; s++) {
        const int64_t first = offsets[s], last = offsets[s + 1];
        if (last < first)
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "offsets: found %" PRId64 " behind %" PRId64
                              ", expected none to fall",
                              last, first);
        if (!model_is_length(last - first))
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "sequence %" PRId64 ": found %" PRId64 " tokens, expected 0 to %d", s,
                              last - first, MODEL_MOST_TOKENS);
    }
    return LOCUS_OK;
}
