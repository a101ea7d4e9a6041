/* SPDX-License-Identifier: Apache-2.0 */
#define LOOPS_NAME bench_loops_neon
#define LOOPS_ISA "neon"
#define LOOPS_CHAINS 12 /* of two registers each: 24 of 32 */
#include "kernels/vec/neon.h"

#include "bench/loops.inc.c"
