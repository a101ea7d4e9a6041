/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_KERNELS_OPERANDS_H
#define LOCUS_TESTS_KERNELS_OPERANDS_H

/* What the tests of the kernels share: every operation of every kernel table that this CPU has is
 * held to its contract in kernels.h, on the same made-up numbers. */

#include "kernels/kernels.h"
#include "support/check.h"
#include "support/problem.h"

enum { KEYS = 64, ROOM = 96 * 160 }; /* KEYS: the row stride of tiles here */

/* Operands in [-2, 2). C is for results, `before` for what was there. */
extern float A[ROOM], B[ROOM], C[ROOM], before[ROOM];

void fill(float *x, size_t count, uint64_t stream);

/* Run the tests on every table; the main function of each program. `tests` ends with NULL. */
typedef void (*kernel_test)(const locus_kernels *k);
int test_kernels(int argc, char **argv, const char *suite, const kernel_test *tests);

#endif
