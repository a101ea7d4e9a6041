/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_CREW_H
#define LOCUS_LAB_CREW_H

/* Processes that work together, as the lab sees them: messages and nothing else, so that it needs
 * no MPI (cli/mpi/crew.c has that). A message that cannot be delivered ends the whole job there. A
 * crew of NULL is one process. */

#include <locus/status.h>

#include <stddef.h>

typedef struct lab_crew {
    int rank, ranks;
    void *context;
    void (*send)(void *context, int to, const void *data, size_t bytes);
    void (*receive)(void *context, int from, void *data, size_t bytes);
    void (*broadcast)(void *context, void *data, size_t bytes); /* of rank 0, to all */
    /* 1: a message has come from any rank but this one, and is in `data`; 0: there is none. */
    int (*poll)(void *context, int *from, void *data, size_t bytes);
} lab_crew;

/* Does this process speak and write files? */
int lab_crew_leads(const lab_crew *crew);

/* The first failure in the order of ranks, on all of them; that of another rank than 0 begins with
 * its number. Collective. */
locus_status lab_crew_agree(const lab_crew *crew, locus_status status, locus_error *error);

/* What rank 0 says, on all of them: for what only it does. Collective. */
locus_status lab_crew_follow(const lab_crew *crew, locus_status status, locus_error *error);

#endif
