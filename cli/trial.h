/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TRIAL_H
#define CLI_TRIAL_H

/* Running a problem: plan or layer, workspace, results and gradients in one place. */

#include <locus/locus.h>
#include <locus/problem.h>

enum { TRIAL_BLOCKS = LOCUS_TENSOR_COUNT + 8 };

typedef struct trial {
    const locus_problem *problem; /* outlives the trial                   */
    locus_plan *plan;             /* at LOCUS_ATTEND                      */
    locus_layer *layer;           /* at LOCUS_LAYER                       */
    locus_results results;        /* F32                                  */
    locus_tensors grad;           /* F32, one for every F32 input         */
    void *saved, *workspace;
    size_t saved_bytes, workspace_bytes;
    void *blocks[TRIAL_BLOCKS];
    size_t block_count;
} trial;

LOCUS_MUST_CHECK locus_status trial_new(trial *t, const locus_problem *p, locus_error *error);
void trial_free(trial *t);

LOCUS_MUST_CHECK locus_status trial_forward(trial *t, locus_error *error);
LOCUS_MUST_CHECK locus_status trial_backward(trial *t, locus_error *error);

/* Kernel table of the plan. */
const char *trial_isa(const trial *t);

/* Largest |got - want| / max(1, max |want|) against the oracle, over out and lse and
 * over all gradients. Both passes must have run. */
LOCUS_MUST_CHECK locus_status trial_errors(const trial *t, double *outputs, double *gradients,
                                           locus_error *error);

#endif
