/* SPDX-License-Identifier: Apache-2.0 */
#define LOOPS_NAME bench_loops_avx2
#define LOOPS_ISA "avx2"
#define LOOPS_CHAINS 12 /* of 16 registers */
#include "kernels/vec/avx2.h"

#include "bench/loops.inc.c"
