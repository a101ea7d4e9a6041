/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_RUN_LOG_H
#define LOCUS_LAB_RUN_LOG_H

#include "lab/results.h"

/* Fill the learning curve, the validations and the last step of `run` from a log.jsonl: a line per
 * step, flat objects of numbers. A last line without an end is left out: the run was stopped. */
locus_status lab_log_read(lab_run *run, const char *path, locus_error *error);

#endif
