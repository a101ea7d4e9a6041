/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* _SC_LEVEL2_CACHE_SIZE */
#include "bench/limits.h"

#include <time.h>
#include <unistd.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

enum { TURNS = 1 << 19, RUNS = 3, LINE = 64 };

double limits_clock(uint32_t threads)
{
    struct timespec t;
    clock_gettime(threads == 1 ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* On every thread of a team; results go nowhere, but must be somewhere. */
static void run_fma(const bench_loops *loops, uint32_t threads, volatile float *sink)
{
    (void)threads; /* in a serial build */
#if defined(_OPENMP)
#pragma omp parallel num_threads((int)threads) if (threads > 1)
#endif
    {
        const float result = loops->fma(TURNS);
#if defined(_OPENMP)
#pragma omp critical
#endif
        *sink = result;
    }
}

double limits_fma(const bench_loops *loops, uint32_t threads)
{
    volatile float sink = 0;
    double best = 0;
    for (int i = 0; i < RUNS; i++) {
        const double start = limits_clock(threads);
        run_fma(loops, threads, &sink);
        const double rate =
            loops->turn_flops * TURNS * threads / (limits_clock(threads) - start) * 1e-9;
        if (rate > best) best = rate;
    }
    return best;
}

float limits_read(const bench_loops *loops, uint32_t threads, const float *data, int64_t count)
{
    float total = 0;
    const int64_t parts = threads, each = (count + parts - 1) / parts;
#if defined(_OPENMP)
#pragma omp parallel for num_threads((int)threads) if (threads > 1) reduction(+ : total)
#endif
    for (int64_t i = 0; i < parts; i++) {
        const int64_t from = i * each, left = count - from;
        if (left > 0) total += loops->sum(data + from, left < each ? left : each);
    }
    return total;
}

void limits_flush(const void *data, size_t bytes)
{
#if defined(__SSE2__)
    for (size_t i = 0; i < bytes; i += LINE) _mm_clflush((const char *)data + i);
    _mm_mfence();
#else
    (void)data;
    (void)bytes;
#endif
}

unsigned limits_flush_denormals(void)
{
#if defined(__SSE2__)
    const unsigned state = _mm_getcsr();
    _mm_setcsr(state | 0x8040u); /* FTZ and DAZ */
    return state;
#else
    return 0;
#endif
}

void limits_restore_denormals(unsigned state)
{
#if defined(__SSE2__)
    _mm_setcsr(state);
#else
    (void)state;
#endif
}

size_t limits_l2_bytes(void)
{
    long bytes = 0;
#if defined(_SC_LEVEL2_CACHE_SIZE)
    bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)1 << 20;
}
