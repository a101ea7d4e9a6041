/* SPDX-License-Identifier: Apache-2.0 */
#define QUANT_NAME locus_quant_avxvnni
#define QUANT_ISA "avxvnni"
#define QUANT_BESIDE "avx2"
#define QUANT_CPU (LOCUS_CPU_AVX2 | LOCUS_CPU_AVX_VNNI)
#define QUANT_VNNI 1
#include "kernels/vec/quant256.h"

#include "kernels/quant_x86.inc.c"
