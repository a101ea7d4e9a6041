/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_RANDOM_H
#define LOCUS_CORE_RANDOM_H

/* Philox4x32-10 (Salmon et al. 2011): a keyed bijection of a 128-bit counter. A
 * random number is a pure function of (key, counter), so any order of evaluation
 * and any number of threads see the same numbers. */

#include <stdint.h>

#include "core/compiler.h"

#define LOCUS_PHILOX_M0 0xD2511F53u
#define LOCUS_PHILOX_M1 0xCD9E8D57u
#define LOCUS_PHILOX_W0 0x9E3779B9u
#define LOCUS_PHILOX_W1 0xBB67AE85u

LOCUS_INLINE void locus_philox(const uint32_t key[2], const uint32_t counter[4], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t p0 = (uint64_t)LOCUS_PHILOX_M0 * c0;
        const uint64_t p1 = (uint64_t)LOCUS_PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += LOCUS_PHILOX_W0;
        k1 += LOCUS_PHILOX_W1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* Attention dropout as case files define it: u of the pair (row m, key n) in head h
 * of batch b is word n mod 4 of counter (n / 4, m, h, b); the pair is kept where
 * u >= floor(p 2^32). */
LOCUS_INLINE int locus_dropout_keeps(uint64_t seed, uint32_t threshold, uint32_t b, uint32_t h,
                                     uint32_t m, uint32_t n)
{
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    const uint32_t counter[4] = {n / 4, m, h, b};
    uint32_t words[4];
    locus_philox(key, counter, words);
    return words[n % 4] >= threshold;
}

/* floor(p 2^32) for p in [0, 1). */
LOCUS_INLINE uint32_t locus_dropout_threshold(double p) { return (uint32_t)(p * 4294967296.0); }

#endif
