/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "stopwatch.h"

#include <time.h>

enum { ROUNDS = 15, ROUNDS_AT_LEAST = 3 };

static double read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Time that this thread has run; other programs on the machine do not count. */
static double worked(void) { return read_clock(CLOCK_THREAD_CPUTIME_ID); }

static double now(void) { return read_clock(CLOCK_MONOTONIC); }

static locus_status time_once(trial *t, double *forward, double *both, locus_error *error)
{
    const double start = worked();
    locus_status status = trial_forward(t, error);
    *forward = worked() - start;
    if (status == LOCUS_OK) status = trial_backward(t, error);
    *both = worked() - start;
    return status;
}

/* The fastest round: caches and clocks shared with others only ever add time. */
static double fastest(const double *times, size_t count)
{
    double best = times[0];
    for (size_t i = 1; i < count; i++)
        if (times[i] < best) best = times[i];
    return best;
}

locus_status pace_measure(pace *result, trial *measured, trial *against, double seconds,
                          locus_error *error)
{
    double forward[2][ROUNDS], both[2][ROUNDS];
    trial *const trials[2] = {measured, against};
    size_t rounds = 0;
    double unused = 0;
    for (size_t i = 0; i < 2; i++) { /* pages and caches */
        const locus_status status = time_once(trials[i], &unused, &unused, error);
        if (status != LOCUS_OK) return status;
    }
    for (const double start = now(); rounds < ROUNDS; rounds++) {
        if (rounds >= ROUNDS_AT_LEAST && now() - start > seconds) break;
        for (size_t i = 0; i < 2; i++) {
            const locus_status status =
                time_once(trials[i], &forward[i][rounds], &both[i][rounds], error);
            if (status != LOCUS_OK) return status;
        }
    }
    result->forward = fastest(forward[0], rounds);
    result->both = fastest(both[0], rounds);
    result->forward_ratio = result->forward / fastest(forward[1], rounds);
    result->both_ratio = result->both / fastest(both[1], rounds);
    return LOCUS_OK;
}
