/* SPDX-License-Identifier: Apache-2.0 */
#define LINEAR_NAME locus_linear_avx512
#include "kernels/vec/avx512.h"

#include "kernels/linear_unit.inc.c"
