/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cpu.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* The registers that the operating system saves on a context switch (XCR0). */
static uint32_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int all_set(uint32_t word, uint32_t bits) { return (word & bits) == bits; }

uint32_t locus_cpu_features(void)
{
    const uint32_t fma_osxsave_avx = 1u << 12 | 1u << 27 | 1u << 28;
    const uint32_t avx2 = 1u << 5;
    const uint32_t avx512_f_dq_bw_vl = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
    const uint32_t ymm = 0x06, zmm = 0xE6;

    uint32_t a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !all_set(c, fma_osxsave_avx)) return 0;
    const uint32_t saved = saved_registers();
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (all_set(b, avx2) && all_set(saved, ymm)) features |= LOCUS_CPU_AVX2;
    if (all_set(b, avx2 | avx512_f_dq_bw_vl) && all_set(saved, zmm)) features |= LOCUS_CPU_AVX512;
    return features;
}

/* Cache `index` as one leaf of CPUID tells it: 4 (Intel) and 0x8000001D (AMD) have one form.
 * Returns 0 behind the last one. */
static int cache_at(uint32_t leaf, uint32_t index, locus_caches *caches)
{
    uint32_t a, b, c, d;
    if (!__get_cpuid_count(leaf, index, &a, &b, &c, &d)) return 0;
    const uint32_t type = a & 0x1F, level = a >> 5 & 7;
    if (type == 0) return 0;
    const size_t ways = (b >> 22) + 1, partitions = (b >> 12 & 0x3FF) + 1, line = (b & 0xFFF) + 1;
    const size_t bytes = ways * partitions * line * ((size_t)c + 1);
    const int holds_data = type == 1 || type == 3;
    if (holds_data && level == 1) caches->first = bytes;
    if (holds_data && level == 2) caches->second = bytes;
    return 1;
}

locus_caches locus_cpu_caches(void)
{
    enum { MOST = 16 }; /* no CPU has as many: an end, whatever a hypervisor says */
    locus_caches caches = {0, 0};
    for (uint32_t i = 0; i < MOST && cache_at(4, i, &caches); i++) {}
    for (uint32_t i = 0; caches.second == 0 && i < MOST && cache_at(0x8000001Du, i, &caches); i++) {
    }
    return caches;
}

#else

uint32_t locus_cpu_features(void) { return 0; }

locus_caches locus_cpu_caches(void) { return (locus_caches){0, 0}; }

#endif
