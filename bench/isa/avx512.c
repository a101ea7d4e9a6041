/* SPDX-License-Identifier: Apache-2.0 */
#define LOOPS_NAME bench_loops_avx512
#define LOOPS_ISA "avx512"
#define LOOPS_CHAINS 12 /* two units of latency 4 need 8 */
#include "kernels/vec/avx512.h"

#include "bench/loops.inc.c"
