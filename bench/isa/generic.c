/* SPDX-License-Identifier: Apache-2.0 */
#define LOOPS_NAME bench_loops_generic
#define LOOPS_ISA "generic"
#define LOOPS_CHAINS 10 /* and products of their own where there is no fused form */
#include "kernels/vec/generic.h"

#include "bench/loops.inc.c"
