/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_ERROR_H
#define LOCUS_CORE_ERROR_H

#include <locus/status.h>

#include "core/compiler.h"

/* Write one line into `error` (may be NULL) and return `status`:
 *     return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s is missing", name); */
locus_status locus_fail(locus_error *error, locus_status status, const char *format, ...)
    LOCUS_PRINTF(3, 4);

/* Put "prefix: " in front of a message that is already there, for a caller that
 * knows the file or the step. Returns `status`. */
locus_status locus_fail_in(locus_error *error, locus_status status, const char *prefix);

/* Copy `bytes` of file text into out[capacity] for printing: control bytes, quotes,
 * backslashes, invalid UTF-8 and Unicode direction marks become escapes; long text
 * is cut with "...". Always NUL-terminated. Returns out. */
char *locus_escape(char *out, size_t capacity, const char *text, size_t bytes);

/* Forward a failure. */
#define LOCUS_TRY(call)                                                                            \
    do {                                                                                           \
        const locus_status try_status_ = (call);                                                   \
        if (try_status_ != LOCUS_OK) return try_status_;                                           \
    } while (0)

#endif
