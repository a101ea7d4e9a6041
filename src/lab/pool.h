/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_POOL_H
#define LOCUS_LAB_POOL_H

/* Runs side by side, a process each: one core computes one run faster than two share it, and a
 * run that fails takes no other with it. */

#include "lab/profile.h"

/* Train jobs[count] below `folder`, `side_by_side` at a time. A run that fails ends the pool once
 * those at work have ended; its line is in `error`. */
locus_status lab_pool_run(const lab_job *jobs, size_t count, uint32_t side_by_side,
                          const char *folder, const lab_onlooker *onlooker, lab_outcome *outcome,
                          locus_error *error);

#endif
