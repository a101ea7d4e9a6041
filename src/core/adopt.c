/* SPDX-License-Identifier: Apache-2.0 */
#include "core/adopt.h"

#include <string.h>

#include "core/error.h"

enum { WORD = 8, MOST_BYTES = 1 << 20 };

static uint32_t size_of(const void *from)
{
    uint32_t size;
    memcpy(&size, from, sizeof size);
    return size;
}

locus_status locus_adopt(void *to, size_t bytes, const void *from, const char *name,
                         locus_error *error)
{
    const size_t found = size_of(from);
    const uint32_t own = (uint32_t)bytes;
    if (found == 0 || found % WORD != 0 || found > MOST_BYTES)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: found size %zu, expected the sizeof of the struct, here %zu", name,
                          found, bytes);
    const unsigned char *more = from;
    for (size_t i = bytes; i < found; i++)
        if (more[i] != 0)
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "%s: found a field at byte %zu that version %s does not know, "
                              "expected 0",
                              name, i, locus_version());
    memcpy(to, from, found < bytes ? found : bytes);
    memcpy(to, &own, sizeof own);
    return LOCUS_OK;
}

void locus_hand_back(void *to, const void *from, size_t bytes)
{
    const uint32_t size = size_of(to);
    if (size < sizeof size) return;
    memcpy(to, from, size < bytes ? size : bytes);
    if (size > bytes) memset((char *)to + bytes, 0, size - bytes);
    memcpy(to, &size, sizeof size);
}
