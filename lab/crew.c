/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/crew.h"

#include <stdio.h>

#include "core/error.h"

typedef struct verdict {
    locus_status status;
    locus_error error;
} verdict;

int lab_crew_leads(const lab_crew *crew) { return crew == NULL || crew->rank == 0; }

locus_status lab_crew_follow(const lab_crew *crew, locus_status status, locus_error *error)
{
    if (crew == NULL) return status;
    verdict v = {.status = status, .error = *error};
    crew->broadcast(crew->context, &v, sizeof v);
    if (v.status != LOCUS_OK) *error = v.error;
    return v.status;
}

/* Rank 0 hears them all. */
static locus_status hear(const lab_crew *crew, locus_status status, locus_error *error)
{
    for (int rank = 1; rank < crew->ranks; rank++) {
        verdict v;
        char prefix[32];
        crew->receive(crew->context, rank, &v, sizeof v);
        if (v.status == LOCUS_OK || status != LOCUS_OK) continue;
        status = v.status;
        *error = v.error;
        snprintf(prefix, sizeof prefix, "rank %d", rank);
        locus_fail_in(error, status, prefix);
    }
    return status;
}

locus_status lab_crew_agree(const lab_crew *crew, locus_status status, locus_error *error)
{
    if (crew == NULL) return status;
    if (crew->rank == 0) {
        status = hear(crew, status, error);
    } else {
        const verdict v = {.status = status, .error = *error};
        crew->send(crew->context, 0, &v, sizeof v);
    }
    return lab_crew_follow(crew, status, error);
}
