/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_SETTINGS_H
#define LOCUS_LAB_SETTINGS_H

/* The settings of a run, complete: defaults filled in, checked, and as run.json spells them. */

#include "lab/lab.h"
#include "lab/task.h"

/* How the rows of learned and sinusoidal positions are chosen. */
typedef enum lab_positions { LAB_PLAIN, LAB_OFFSET, LAB_SUBSET } lab_positions;

typedef struct lab_plan {
    lab_settings settings; /* nothing left open */
    const lab_task *task;
    lab_positions positions;
    int64_t position_rows;
    train_shape shape;
    lab_corpus corpus; /* empty where the task reads no text */
} lab_plan;

/* The learning rate of a width, where nobody names one. */
double lab_usual_rate(int64_t width);

locus_status lab_plan_new(lab_plan *plan, const lab_settings *settings, locus_error *error);
/* All but the text: enough for a model, not for its batches. */
locus_status lab_plan_shape(lab_plan *plan, const lab_settings *settings, locus_error *error);
void lab_plan_free(lab_plan *plan);

/* FOLDER/run.json is written, or, where it is there, compared: the first difference that changes
 * what is learned is refused. *found: it was there. */
locus_status lab_plan_write(const lab_plan *plan, const char *folder, locus_error *error);
locus_status lab_plan_compare(const lab_plan *plan, const char *folder, int *found,
                              locus_error *error);

/* FOLDER/NAME, where it is there (*found), begins with the lines `wanted`; the first line in which
 * they differ is refused. */
locus_status lab_lines_compare(const char *folder, const char *name, const char *wanted, int *found,
                               locus_error *error);

/* All ranks of `crew` have the same settings, text and kernels. Collective. */
locus_status lab_plan_agree(const lab_plan *plan, const lab_crew *crew, locus_error *error);

#endif
