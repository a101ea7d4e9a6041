/* SPDX-License-Identifier: Apache-2.0 */
#define KERNELS_NAME locus_kernels_neon
#define LINEAR_NAME locus_linear_neon
#define KERNELS_ISA "neon"
#define KERNELS_CPU LOCUS_CPU_NEON
#include "kernels/vec/neon.h"

#include "kernels/all.inc.c"
