/* SPDX-License-Identifier: Apache-2.0 */
/* What the schemes with a number or a row per distance share. */
#include <inttypes.h>

#include "core/error.h"
#include "schemes/scheme.h"

locus_status locus_check_distances(const locus_call *call, const char *name, int64_t count,
                                   locus_error *error)
{
    const int64_t lowest = call->options.delta_min, highest = lowest + count - 1;
    const int64_t low = call->delta_low[0], high = call->delta_high[0];
    if (low > high) return LOCUS_OK;
    if (call->options.clamp != 0 ? count > 0 : low >= lowest && high <= highest) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_RANGE,
                      "tensor %s: found entries for m - n in %" PRId64 "..%" PRId64
                      " (delta_min %" PRId64 ", %" PRId64 " entries), expected %" PRId64
                      "..%" PRId64,
                      name, lowest, highest, lowest, count, low, high);
}

void locus_reach_of_entries(const locus_call *call, int64_t count, int64_t *low, int64_t *high)
{
    *low = call->options.delta_min;
    *high = *low + (count > 0 ? count - 1 : 0);
}
