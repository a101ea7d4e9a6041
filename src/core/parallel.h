/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_PARALLEL_H
#define LOCUS_CORE_PARALLEL_H

#include <stddef.h>
#include <stdint.h>

/* Run task(context, i, worker) for every i in [0, count), on at most `threads`
 * threads; worker in [0, threads) is the number of the running thread, never used
 * by two tasks at once. Tasks may run in any order, so they must not depend on it. The child of a fork
 * runs them all itself.
 * On every worker, denormals are flushed and rounding is to nearest while tasks
 * run; the caller's floating-point state is put back before this returns. */
typedef void (*locus_task)(void *context, size_t index, uint32_t worker);
void locus_parallel_for(uint32_t threads, size_t count, locus_task task, void *context);

#endif
