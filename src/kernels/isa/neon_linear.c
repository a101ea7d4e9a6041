/* SPDX-License-Identifier: Apache-2.0 */
#define LINEAR_NAME locus_linear_neon
#include "kernels/vec/neon.h"

#include "kernels/linear_unit.inc.c"
