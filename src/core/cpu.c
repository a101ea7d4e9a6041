/* SPDX-License-Identifier: Apache-2.0 */
#include "core/cpu.h"

#if defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>
#include <stdatomic.h>

/* The registers that the system saves (XCR0): bits 1 and 2 for 256 bits, 5 to 7 too for 512. macOS sets
 * the latter when a thread first uses them, so that AVX-512 does not show there. */
static uint32_t saved_registers(void)
{
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static int has(uint32_t word, unsigned bit) { return (word >> bit & 1u) != 0; }

static uint32_t ask(void)
{
    uint32_t a, b, c, d, features = 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !has(c, 27)) return 0; /* no XGETBV */
    const int has_fma = has(c, 12), has_f16c = has(c, 29);
    const uint32_t saved = saved_registers();
    if ((saved & 0x6) != 0x6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return 0;
    if (!(has(b, 5) && has_fma && has_f16c)) return 0;
    features |= LOCUS_CPU_AVX2;
    if ((saved & 0xE6) == 0xE6 && has(b, 16) && has(b, 17) && has(b, 30) && has(b, 31)) {
        features |= LOCUS_CPU_AVX512;
        if (has(c, 11)) features |= LOCUS_CPU_AVX512_VNNI;
    }
    if (__get_cpuid_count(7, 1, &a, &b, &c, &d) && has(a, 4)) features |= LOCUS_CPU_AVX_VNNI;
    return features;
}

/* Asked once per process: CPUID traps on a virtual machine (tens of microseconds for a plan). Threads that
 * ask at once find the same. Compilers' own answers know other bits in every version, and not all have them. */
static _Atomic uint32_t known; /* 0: not asked */

uint32_t locus_cpu_integer_features(void)
{
    enum { ASKED = 1 << 30 };
    uint32_t features = atomic_load_explicit(&known, memory_order_relaxed);
    if (features == 0) {
        features = ask() | ASKED;
        atomic_store_explicit(&known, features, memory_order_relaxed);
    }
    return features & ~(uint32_t)ASKED;
}

uint32_t locus_cpu_features(void)
{
    return locus_cpu_integer_features() & (LOCUS_CPU_AVX2 | LOCUS_CPU_AVX512);
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
