/* SPDX-License-Identifier: Apache-2.0 */
#define KERNELS_NAME locus_kernels_avx512
#define LINEAR_NAME locus_linear_avx512
#define KERNELS_ISA "avx512"
#define KERNELS_CPU LOCUS_CPU_AVX512
#include "kernels/vec/avx512.h"

#include "kernels/all.inc.c"
