/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_NN_FORMULAS_H
#define LOCUS_TESTS_NN_FORMULAS_H

/* formulas.inc in double and in float, by the names norm_double, norm_float, ... A program uses some
 * of them only. */

#include <math.h>

#include "nn/convolution.h"
#include "nn/cross_entropy.h"
#include "nn/depthwise.h"
#include "nn/norm.h"
#include "nn/operand.h"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-function"

#define REAL double
#define NAME(x) x##_double
#define SQRT sqrt
#define EXP exp
#define LOG log
#include "nn/formulas.inc"
#undef REAL
#undef NAME
#undef SQRT
#undef EXP
#undef LOG

#define REAL float
#define NAME(x) x##_float
#define SQRT sqrtf
#define EXP expf
#define LOG logf
#include "nn/formulas.inc"
#undef REAL
#undef NAME
#undef SQRT
#undef EXP
#undef LOG

#pragma GCC diagnostic pop

#endif
