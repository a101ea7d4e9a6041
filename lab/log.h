/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_LOG_H
#define LOCUS_LAB_LOG_H

/* FOLDER/log.jsonl: a line per step and a line per validation, in the order in which they
 * happened. Everything but `seconds` has the same bits in every repetition. */

#include <locus/status.h>

typedef struct lab_log {
    int file; /* descriptor; -1: not open */
    int code; /* of the first line that could not be written; 0: none */
    char path[1024];
    int64_t steps;       /* lines of steps so far                    */
    double validation;   /* the last one; below 0: none              */
    double seconds;      /* of all steps                             */
    int64_t steps_to_99; /* the first step whose validation was 0.99 or more; 0: none */
} lab_log;

/* Open and count what is there: whole lines of steps 1, 2, .. */
locus_status lab_log_open(lab_log *log, const char *folder, locus_error *error);

/* Cut everything behind `step` off. */
locus_status lab_log_cut(lab_log *log, int64_t step, locus_error *error);

typedef struct lab_log_step {
    int64_t step, tokens;
    double loss, rate, norm, seconds;
} lab_log_step;
void lab_log_add(lab_log *log, const lab_log_step *step);
void lab_log_validate(lab_log *log, int64_t step, double validation);

/* On the disk, all of it; failures of the lines before show here. */
locus_status lab_log_sync(lab_log *log, locus_error *error);
void lab_log_close(lab_log *log);

#endif
