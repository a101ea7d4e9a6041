/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_NAIVE_H
#define LOCUS_TESTS_NAIVE_H

/* A third witness: the forward pass of attention from the formulas of docs/schemes.md alone, in
 * long double, one pair at a time. The oracle and the library share the rules that say which
 * pairs exist, which row serves a distance, how far a pair is turned and which weights are
 * dropped; nothing here is shared with them. */

#include "support/problem.h"

/* out [B,H,Tq,Dv] and lse [B,H,Tq], dense F64, from problem->in[0] and problem->config. */
void test_naive(const test_problem *problem, double *out, double *lse);

/* The rules: T5's bucket of rho = n - m, DeBERTa's beta of delta = m - n. */
int64_t test_naive_t5(int64_t rho, int64_t buckets, int64_t max_distance, int both);
int64_t test_naive_deberta(int64_t delta, int64_t buckets, int64_t max_distance);

#endif
