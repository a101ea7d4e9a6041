/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

/* What the machine could do at best: multiply-adds in registers, reading memory. */

#include <stddef.h>
#include <stdint.h>

#include "bench/loops.h"

/* Seconds. One thread: processor time of the calling thread, which other programs on the
 * machine do not lengthen. More: time on the wall. */
double limits_clock(uint32_t threads);

/* GF/s of all threads together; the best of a few runs of some milliseconds. */
double limits_fma(const bench_loops *loops, uint32_t threads);

/* Read `count` floats once; the sum keeps the compiler honest. */
float limits_read(const bench_loops *loops, uint32_t threads, const float *data, int64_t count);

/* Out of all caches, where the architecture has an instruction for it. */
void limits_flush(const void *data, size_t bytes);

/* Flush denormals, as the workers of the library do: they cost thirty times as much, and
 * far keys of ALiBi make them by the row. Returns what to restore. */
unsigned limits_flush_denormals(void);
void limits_restore_denormals(unsigned state);

/* Bytes of the second-level cache, or a guess. */
size_t limits_l2_bytes(void);

#endif
