/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_POOL_H
#define LOCUS_LAB_POOL_H

/* Runs side by side, a process each: one core computes one run faster than two share it, and a
 * run that fails takes no other with it. */

#include "lab/profile.h"

typedef struct lab_pool {
    const lab_job *jobs;
    size_t count;
    uint32_t side_by_side; /* processes that this one starts */
    const char *folder;    /* runs are made below it         */
    int lock;              /* of the folder: not for those processes; -1: none */
    const lab_crew *crew;  /* its other ranks take runs, too; NULL: there are none */
} lab_pool;

/* Train all jobs, longest waiting first. A run that fails ends the pool once those at work have
 * ended; its line is in `error`. Rank 0 of the crew calls this, */
locus_status lab_pool_run(const lab_pool *plan, const lab_onlooker *onlooker, lab_outcome *outcome,
                          locus_error *error);

/* and every other rank this, which trains what rank 0 hands out until that has nothing left.
 * `interrupted`: save and end, as there. */
void lab_pool_serve(const lab_pool *plan, const volatile sig_atomic_t *interrupted);

#endif
