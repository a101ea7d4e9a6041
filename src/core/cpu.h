/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_CPU_H
#define LOCUS_CORE_CPU_H

#include <stddef.h>
#include <stdint.h>

/* Features that both the CPU and the operating system offer (x86: CPUID and XGETBV). */
enum {
    LOCUS_CPU_AVX2 = 1 << 0,     /* AVX2, FMA and F16C, 256-bit registers saved by the system    */
    LOCUS_CPU_AVX512 = 1 << 1,   /* AVX-512 F, BW, DQ and VL, 512-bit registers saved            */
    LOCUS_CPU_AVX_VNNI = 1 << 2, /* AVX2 and products of bytes and pairs in 256 bits         */
    LOCUS_CPU_AVX512_VNNI =
        1 << 3,              /* AVX-512 and the same in 512 bits; neither implies the other */
    LOCUS_CPU_NEON = 1 << 4, /* Advanced SIMD of aarch64                                     */
};
uint32_t locus_cpu_features(void); /* without those of integers */
uint32_t locus_cpu_integer_features(void);

/* Bytes of the data caches of the first and the second level; 0: not known.
 * Asking takes microseconds on a virtual machine: once per plan, not per call. */
typedef struct locus_caches {
    size_t first, second;
} locus_caches;
locus_caches locus_cpu_caches(void);

#endif
