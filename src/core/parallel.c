/* SPDX-License-Identifier: Apache-2.0 */
#include "core/parallel.h"

#include <locus/runtime.h>

#if defined(_OPENMP)
#include <omp.h>
#include <pthread.h>
#endif
#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

/* Denormal operands cost about thirty times an ordinary one, and exp() of far keys
 * makes them by the row. MXCSR: FTZ is bit 15, DAZ bit 6, rounding bits 13 and 14. */
#if defined(__SSE2__)
typedef unsigned int float_state;
static float_state enter_float_state(void)
{
    const unsigned int old = _mm_getcsr();
    _mm_setcsr((old & ~0x6000u) | 0x8040u);
    return old;
}
/* Exception flags raised by the tasks are not the caller's: put everything back. */
static void leave_float_state(float_state old) { _mm_setcsr(old); }
#elif defined(__aarch64__)
/* FPCR: FZ is bit 24, rounding bits 22 and 23. */
typedef uint64_t float_state;
static void leave_float_state(float_state old) { __asm__ volatile("msr fpcr, %0" : : "r"(old)); }
static float_state enter_float_state(void)
{
    float_state old;
    __asm__ volatile("mrs %0, fpcr" : "=r"(old));
    leave_float_state((old & ~(float_state)0x0C00000) | 0x1000000);
    return old;
}
#else
typedef int float_state;
static float_state enter_float_state(void) { return 0; }
static void leave_float_state(float_state old) { (void)old; }
#endif

static void run_in_order(size_t count, locus_task task, void *context)
{
    const float_state old = enter_float_state();
    for (size_t i = 0; i < count; i++) task(context, i, 0);
    leave_float_state(old);
}

#if defined(_OPENMP)

/* The workers of an OpenMP runtime do not exist in the child of a fork, and the runtime waits for them
 * for ever. A process that has asked for threads once leaves a note to its children: they compute
 * alone, with the same bits. Where no note can be left, this process does so, too. */
static pthread_once_t watch = PTHREAD_ONCE_INIT;
static int alone;

static void note_fork(void) { alone = 1; }
static void watch_forks(void)
{
    if (pthread_atfork(NULL, NULL, note_fork) != 0) alone = 1;
}

static int is_alone(void)
{
    (void)pthread_once(&watch, watch_forks);
    return alone;
}

int locus_has_threads(void) { return 1; }

uint32_t locus_default_threads(void)
{
    const int most = is_alone() ? 1 : omp_get_max_threads();
    return most > 0 ? (uint32_t)most : 1;
}

void locus_parallel_for(uint32_t threads, size_t count, locus_task task, void *context)
{
    const int team = count < threads ? (int)count : (int)threads;
    if (team <= 1 || is_alone()) { /* a team of one still costs the runtime's set-up */
        run_in_order(count, task, context);
        return;
    }
#pragma omp parallel num_threads(team)
    {
        const float_state old = enter_float_state();
        const uint32_t worker = (uint32_t)omp_get_thread_num();
#pragma omp for schedule(dynamic, 1)
        for (size_t i = 0; i < count; i++) task(context, i, worker);
        leave_float_state(old);
    }
}

#else

int locus_has_threads(void) { return 0; }

uint32_t locus_default_threads(void) { return 1; }

void locus_parallel_for(uint32_t threads, size_t count, locus_task task, void *context)
{
    (void)threads;
    run_in_order(count, task, context);
}

#endif
