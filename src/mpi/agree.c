/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/agree.h"

#include <stdio.h>

#include "core/error.h"

void ring_note(ring_verdict *verdict, locus_status status, const locus_error *error)
{
    if (status == LOCUS_OK || verdict->status != LOCUS_OK) return;
    verdict->status = status;
    verdict->error = *error;
}

void ring_note_mpi(ring_verdict *verdict, int code, const char *what)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    if (code == MPI_SUCCESS || verdict->status != LOCUS_OK) return;
    MPI_Error_string(code, text, &length);
    verdict->status = locus_fail(&verdict->error, LOCUS_ERR_IO, "%s: MPI says %.300s", what, text);
}

/* Its words, on all ranks. */
static int spread(MPI_Comm communicator, int rank, int first, ring_verdict *verdict)
{
    if (rank == first) {
        char prefix[32];
        snprintf(prefix, sizeof prefix, "rank %d", rank);
        locus_fail_in(&verdict->error, verdict->status, prefix);
    }
    return MPI_Bcast(verdict, (int)sizeof *verdict, MPI_BYTE, first, communicator);
}

locus_status ring_agree(MPI_Comm communicator, int what, ring_verdict *verdict)
{
    int rank = 0, ranks = 0;
    MPI_Comm_rank(communicator, &rank);
    MPI_Comm_size(communicator, &ranks);
    /* the first that failed, the least and (as its opposite) the greatest of what they do */
    const int mine[3] = {verdict->status == LOCUS_OK ? ranks : rank, what, -what};
    int least[3] = {ranks, what, -what};
    int code = MPI_Allreduce(mine, least, 3, MPI_INT, MPI_MIN, communicator);
    if (code == MPI_SUCCESS && least[0] < ranks)
        code = spread(communicator, rank, least[0], verdict);
    else if (least[1] != -least[2])
        verdict->status = locus_fail(&verdict->error, LOCUS_ERR_ARGUMENT,
                                     "ranks: found forward on some and backward on others");
    ring_note_mpi(verdict, code, "agreement");
    return verdict->status;
}

locus_status ring_tell(const ring_verdict *verdict, locus_error *error)
{
    if (verdict->status != LOCUS_OK && error != NULL) *error = verdict->error;
    return verdict->status;
}
