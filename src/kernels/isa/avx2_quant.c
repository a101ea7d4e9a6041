/* SPDX-License-Identifier: Apache-2.0 */
#define QUANT_NAME locus_quant_avx2
#define QUANT_ISA "avx2"
#define QUANT_BESIDE "avx2"
#define QUANT_CPU (LOCUS_CPU_AVX2)
#define QUANT_VNNI 0
#include "kernels/vec/quant256.h"

#include "kernels/quant_x86.inc.c"
