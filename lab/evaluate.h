/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_EVALUATE_H
#define LOCUS_LAB_EVALUATE_H

/* What a model has learned, in numbers: on rows that no training saw, at the trained length and
 * beyond it. */

#include "lab/batch.h"
#include "lab/print.h"

typedef struct lab_judge {
    const lab_plan *plan;
    train_model *model;
    train_batch *batch; /* room for lab_judge_tokens */
} lab_judge;

/* Tokens of the largest batch that a judge or a training step makes. */
int64_t lab_judge_tokens(const lab_plan *plan);

/* One number at the trained length: exact match, accuracy, bits per character or loss. */
locus_status lab_validate(const lab_judge *judge, double *value, locus_error *error);

/* Lines "length,metric,value" of all test lengths; `milliseconds` of reading one row of the longest.
 */
locus_status lab_evaluate(const lab_judge *judge, plot_text *out, double *milliseconds,
                          locus_error *error);

#endif
