/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_BATCH_H
#define LOCUS_LAB_BATCH_H

#include "lab/settings.h"

/* Memory for batches of up to `tokens` tokens in all. */
locus_status lab_batch_new(train_batch *batch, int64_t tokens, locus_error *error);
void lab_batch_free(train_batch *batch);

/* The batch of training step `step`: depends on task, seed, step, batch, length, text alone; its
 * positions on the setting of that name, too. */
void lab_training_batch(const lab_plan *plan, int64_t step, train_batch *batch);

/* Test rows, the same for all schemes and seeds. */
typedef struct lab_test {
    const char *purpose;        /* of the stream: ".test", ".validation"                        */
    int64_t length;             /* n                                                            */
    int64_t first, count;       /* rows first .. first + count - 1                              */
    int64_t stride, at, memory; /* text: as in lab_draw; stride 0: one window after the other */
} lab_test;
void lab_test_batch(const lab_plan *plan, const lab_test *test, train_batch *batch);

#endif
