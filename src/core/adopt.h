/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_ADOPT_H
#define LOCUS_CORE_ADOPT_H

/* Structs of callers that were compiled against another version. Each begins with
 * `uint32_t size`; fields are aligned to their size and at most 8 bytes wide, or structs
 * that never grow, so that a size divisible by 8 cuts none of them. */

#include <stddef.h>

#include <locus/status.h>

/* Copy the struct `from` of a caller over `to`, which has `bytes` bytes and holds the
 * defaults: what the caller's version lacks keeps them. Refused in one line: a size that
 * no version has, and a field beyond `bytes` that is not 0. */
locus_status locus_adopt(void *to, size_t bytes, const void *from, const char *name,
                         locus_error *error);

/* Write `from` into the struct `to` of a caller, up to the size that `to` has; what the
 * caller has beyond `bytes` becomes 0. `size` itself stays. */
void locus_hand_back(void *to, const void *from, size_t bytes);

/* Replace `pointer` by one to `copy` where the caller's struct is not of this version's size;
 * `copy` holds the defaults. Returns from the function on failure. */
#define LOCUS_ADOPT(pointer, copy, name, error)                                                    \
    do {                                                                                           \
        if ((pointer)->size != sizeof(copy)) {                                                     \
            LOCUS_TRY(locus_adopt(&(copy), sizeof(copy), (pointer), (name), (error)));             \
            (pointer) = &(copy);                                                                   \
        }                                                                                          \
    } while (0)

#endif
