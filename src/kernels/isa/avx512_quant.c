/* SPDX-License-Identifier: Apache-2.0 */
#define QUANT_NAME locus_quant_avx512
#define QUANT_ISA "avx512"
#define QUANT_BESIDE "avx512"
#define QUANT_CPU (LOCUS_CPU_AVX512)
#define QUANT_VNNI 0
#include "kernels/vec/quant512.h"

#include "kernels/quant_x86.inc.c"
