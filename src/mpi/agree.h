/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_AGREE_H
#define LOCUS_MPI_AGREE_H

/* One answer on all ranks. */

#include <mpi.h>

#include <locus/status.h>

/* What this rank has found so far. */
typedef struct ring_verdict {
    locus_status status;
    locus_error error;
} ring_verdict;

/* Keep the first failure. */
void ring_note(ring_verdict *verdict, locus_status status, const locus_error *error);

/* The same for what MPI returned: `what` failed. */
void ring_note_mpi(ring_verdict *verdict, int code, const char *what);

/* What the ranks are about to do. */
enum { RING_PLAN, RING_FORWARD, RING_BACKWARD, RING_END };

/* Collective: *verdict becomes that of the first rank that failed, its number before its words; a
 * failure, too, where the ranks do not do the same. */
locus_status ring_agree(MPI_Comm communicator, int what, ring_verdict *verdict);

/* Hand it to the caller. */
locus_status ring_tell(const ring_verdict *verdict, locus_error *error);

#endif
