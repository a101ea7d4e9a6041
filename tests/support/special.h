/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_SPECIAL_H
#define LOCUS_TESTS_SPECIAL_H

/* NaN and infinity in one element of one input: the library and the oracle agree on which elements
 * of results and gradients they reach. */

#include "support/problem.h"

/* Put `value` into element `element` of the input `name` ("dout" too), run both and compare. A NaN
 * must give NaN where the oracle has NaN. An infinity must give something that is not finite where
 * the oracle has something that is not finite: whether inf or NaN depends on the order of a sum. */
void test_special_value(test_problem *problem, const char *name, int64_t element, double value);

/* The same without the change: both run and are compared. */
void test_special_agree(test_problem *problem, int nan_only);

#endif
