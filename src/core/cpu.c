/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cpu.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

/* Older clangs do not keep that bit. Every known CPU with AVX2 has it; a hypervisor might hide it. */
static int has_f16c(void)
{
#if defined(__clang__) && __clang_major__ < 19
    uint32_t a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c >> 29 & 1u) != 0;
#else
    return __builtin_cpu_supports("f16c") != 0;
#endif
}

/* Older compilers do not keep that bit, so CPUID is asked. Only where quantized models are opened. */
static int has_avx_vnni(void)
{
    uint32_t a, b, c, d;
    return __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 4 & 1u) != 0;
}

uint32_t locus_cpu_integer_features(void)
{
    uint32_t features = locus_cpu_features();
    if ((features & LOCUS_CPU_AVX2) && has_avx_vnni()) features |= LOCUS_CPU_AVX_VNNI;
    if ((features & LOCUS_CPU_AVX512) && __builtin_cpu_supports("avx512vnni"))
        features |= LOCUS_CPU_AVX512_VNNI;
    return features;
}

/* The compiler's run time library asks CPUID and XGETBV once per process, before main, and keeps
 * the answer: asking it costs no more than reading memory, where CPUID traps on a virtual machine
 * (tens of microseconds for a plan). Its answers count what the system saves, too. */
uint32_t locus_cpu_features(void)
{
    uint32_t features = 0;
    __builtin_cpu_init();
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && has_f16c();
    if (avx2) features |= LOCUS_CPU_AVX2;
    if (avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        features |= LOCUS_CPU_AVX512;
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

#elif defined(__aarch64__)

/* Linux tells what the system offers; elsewhere Advanced SIMD belongs to every program of aarch64. */
#if defined(__linux__)

#include <sys/auxv.h>

uint32_t locus_cpu_features(void)
{
    enum { ADVANCED_SIMD = 1 << 1 /* HWCAP_ASIMD */ };
    return getauxval(AT_HWCAP) & ADVANCED_SIMD ? LOCUS_CPU_NEON : 0;
}

#else

uint32_t locus_cpu_features(void) { return LOCUS_CPU_NEON; }

#endif

uint32_t locus_cpu_integer_features(void) { return locus_cpu_features(); }

#if defined(__APPLE__)

#include <sys/sysctl.h>

static size_t cache_bytes(const char *name)
{
    int64_t bytes = 0;
    size_t length = sizeof bytes;
    return sysctlbyname(name, &bytes, &length, NULL, 0) == 0 && bytes > 0 ? (size_t)bytes : 0;
}

locus_caches locus_cpu_caches(void)
{
    return (locus_caches){cache_bytes("hw.l1dcachesize"), cache_bytes("hw.l2cachesize")};
}

#else

locus_caches locus_cpu_caches(void) { return (locus_caches){0, 0}; }

#endif

#else

uint32_t locus_cpu_features(void) { return 0; }
uint32_t locus_cpu_integer_features(void) { return 0; }

locus_caches locus_cpu_caches(void) { return (locus_caches){0, 0}; }

#endif
