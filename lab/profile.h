/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_PROFILE_H
#define LOCUS_LAB_PROFILE_H

/* Which runs a comparison has. */

#include "lab/lab.h"

enum { LAB_VARIANT = 64, LAB_MOST_JOBS = 4096 };

/* One run of a comparison. */
typedef struct lab_job {
    lab_settings settings;
    char variant[LAB_VARIANT]; /* the scheme, and behind a '+' what varies: its folder */
    double work;               /* relative to other jobs */
} lab_job;

/* The runs of `comparison`, task by task; freed with locus_release. */
locus_status lab_jobs_new(lab_job **jobs, size_t *count, const lab_comparison *comparison,
                          locus_error *error);

/* "copy/t5/seed1" */
void lab_job_name(const lab_job *job, char *name, size_t capacity);

#endif
