/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_VIEWS_H
#define LOCUS_TESTS_VIEWS_H

/* The float side of a problem, laid out anew in memory of its own: axes in another order,
 * gaps between rows, odd addresses, masks with steps on their last axis, inputs that are
 * broadcast with strides of 0. What the elements hold stays the same on both sides. */

#include "support/problem.h"

typedef struct test_views test_views;

enum {
    TEST_VIEWS_GAPS = 0,      /* random order, gaps of a few elements              */
    TEST_VIEWS_BROADCAST = 1, /* and some axes of some inputs with a stride of 0   */
    TEST_VIEWS_FAR = 2,       /* rows 2^31 elements apart, in memory that is sparse */
};

/* Replaces the tensors of problem->in[1], grad[1], results[1] and dout[1]. NULL: the system
 * gives no address space for TEST_VIEWS_FAR. Gaps of inputs hold NaN (of masks: noise). */
test_views *test_views_new(test_problem *problem, int kind, uint64_t seed);
void test_views_free(test_views *views); /* after the last use of the problem's float side */

/* Every element of the results and gradients of the float side = value. */
void test_views_fill(const test_problem *problem, double value);

/* The name of an output around whose elements something was written; NULL: none. */
const char *test_views_damaged(const test_views *views);

#endif
