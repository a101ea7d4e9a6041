/* SPDX-License-Identifier: Apache-2.0 */
#define LINEAR_NAME locus_linear_avx2
#include "kernels/vec/avx2.h"

#include "kernels/linear_unit.inc.c"
