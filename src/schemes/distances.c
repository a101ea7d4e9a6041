/* SPDX-License-Identifier: Apache-2.0 */
/* What the schemes with a number or a row per distance share. */
#include <inttypes.h>

#include "core/error.h"
#include "schemes/scheme.h"

locus_status locus_check_distances(const locus_call *call, const char *name, int64_t count,
                                   locus_error *error)
{
    const int64_t lowest = call->options.delta_min, highest = lowest + count - 1;
    if (call->least > call->most) return LOCUS_OK;
    if (call->options.clamp != 0 ? count > 0 : call->least >= lowest && call->most <= highest)
        return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_RANGE,
                      "tensor %s: found entries for m - n in %" PRId64 "..%" PRId64
                      " (delta_min %" PRId64 ", %" PRId64 " entries), expected %" PRId64
                      "..%" PRId64,
                      name, lowest, highest, lowest, count, call->least, call->most);
}
