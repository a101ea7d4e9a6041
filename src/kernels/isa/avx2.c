/* SPDX-License-Identifier: Apache-2.0 */
#define KERNELS_NAME locus_kernels_avx2
#define LINEAR_NAME locus_linear_avx2
#define KERNELS_ISA "avx2"
#define KERNELS_CPU LOCUS_CPU_AVX2
#include "kernels/vec/avx2.h"

#include "kernels/all.inc.c"
