/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_EXPLAIN_JUDGE_H
#define LOCUS_TESTS_EXPLAIN_JUDGE_H

/* Does an explanation explain? Every pair of a call is explained block by block, and from
 * terms, weights and values alone the results of attention are made again. */

#include <locus/explain.h>

/* CHECKs, in the running case:
 *     terms        add up to the score, to 1e-12 of the largest term
 *     lse          ln sum exp(score) is locus_explain_lse, and is results->lse
 *     weight       sums to 1 over a row
 *     out          sum weight (v + RV), projected where the call is a layer, is results->out
 * The last two columns to the tolerances given, by |got - want| <= tolerance max(1, max |want|). */
void judge_call(uint32_t level, const locus_config *config, const locus_tensors *in,
                const locus_results *results, double lse_tolerance, double out_tolerance);

#endif
