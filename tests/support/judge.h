/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_JUDGE_H
#define LOCUS_TESTS_JUDGE_H

/* The attention call or layer of a problem, run in a chosen manner and held to the oracle. */

#include "support/problem.h"

/* How the float side is called. Zeroed: forward and backward, all gradients. */
typedef struct test_manner {
    int forward_only;
    int accumulate;   /* gradients are added to what is there                     */
    int prepared;     /* both directions on tables that were made before          */
    const char *only; /* the one gradient that is asked for; NULL: all            */
    int trust_oracle; /* not held to naive.h: another case with the same numbers was */
    size_t misalign;  /* bytes by which the workspace misses an address of 64 n    */
} test_manner;

/* Run the float side on the views of the problem as they are; outputs need not be dense. */
locus_status test_run(const test_problem *problem, const test_manner *manner, locus_error *error);

/* CHECK the float side against the oracle, and the oracle's results against naive.h. */
void test_judge(test_problem *problem, const test_manner *manner);

/* Biases that grow with the distance are kept near 100, where a float still has five digits behind
 * the point: for calls in which queries are far from every key that they see. */
void test_calm(test_problem *problem);

/* CHECK two tensors of one shape. Empty ones pass. */
void test_judge_tensor(const char *name, const locus_tensor *got, const locus_tensor *want,
                       double tolerance);

#endif
