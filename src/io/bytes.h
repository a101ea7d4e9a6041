/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_BYTES_H
#define LOCUS_IO_BYTES_H

/* The byte order of files (little-endian) against the one of this machine. Numbers
 * are assembled from bytes, so this code is right on any host; tests compile it
 * with LOCUS_PRETEND_BIG_ENDIAN to run the swapping path on a little-endian one. */

#include <stddef.h>
#include <stdint.h>

#if defined(LOCUS_PRETEND_BIG_ENDIAN) || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define LOCUS_FILE_ORDER_IS_NATIVE 0
#else
#define LOCUS_FILE_ORDER_IS_NATIVE 1
#endif

static inline uint64_t locus_load_u64(const unsigned char *bytes)
{
    uint64_t value = 0;
    for (size_t i = 8; i-- > 0;) value = value << 8 | bytes[i];
    return value;
}

static inline void locus_store_u64(unsigned char *bytes, uint64_t value)
{
    for (size_t i = 0; i < 8; i++) bytes[i] = (unsigned char)(value >> (8 * i));
}

/* Turn `bytes` of words between file order and native order, either way, in place.
 * `word` is 1, 2, 4 or 8; nothing happens where the two orders are the same. */
static inline void locus_swap_words(void *data, size_t bytes, size_t word)
{
    unsigned char *at = data;
    if (LOCUS_FILE_ORDER_IS_NATIVE || word < 2) return;
    for (size_t i = 0; i + word <= bytes; i += word) {
        for (size_t low = i, high = i + word - 1; low < high; low++, high--) {
            const unsigned char kept = at[low];
            at[low] = at[high];
            at[high] = kept;
        }
    }
}

#endif
