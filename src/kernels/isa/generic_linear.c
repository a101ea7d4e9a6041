/* SPDX-License-Identifier: Apache-2.0 */
#define LINEAR_NAME locus_linear_generic
#include "kernels/vec/generic.h"

#include "kernels/linear_unit.inc.c"
