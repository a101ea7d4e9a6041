/* SPDX-License-Identifier: Apache-2.0 */
#define KERNELS_NAME locus_kernels_generic
#define LINEAR_NAME locus_linear_generic
#define KERNELS_ISA "generic"
#define KERNELS_CPU 0
#include "kernels/vec/generic.h"

#include "kernels/all.inc.c"
