/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/reduce.h"

enum { TABLES_TAG = 3 };

static void reduce_some(const locus_mpi_plan *plan, float *data, int count, float *room,
                        ring_verdict *verdict, locus_mpi_traffic *traffic)
{
    const int rank = plan->layout.rank, ranks = plan->layout.ranks;
    for (int step = 1; step < ranks; step *= 2) {
        if (rank % (2 * step) == step) {
            ring_note_mpi(verdict,
                          MPI_Send(data, count, MPI_FLOAT, rank - step, TABLES_TAG,
                                   plan->communicator),
                          "gradients of tables");
            traffic->messages_sent++;
            traffic->bytes_sent += (uint64_t)count * sizeof *data;
            break;
        }
        if (rank + step >= ranks) continue;
        ring_note_mpi(verdict,
                      MPI_Recv(room, count, MPI_FLOAT, rank + step, TABLES_TAG, plan->communicator,
                               MPI_STATUS_IGNORE),
                      "gradients of tables");
        traffic->messages_received++;
        traffic->bytes_received += (uint64_t)count * sizeof *data;
        for (int i = 0; i < count; i++) data[i] += room[i];
    }
    ring_note_mpi(verdict, MPI_Bcast(data, count, MPI_FLOAT, 0, plan->communicator),
                  "gradients of tables");
}

void ring_reduce(const locus_mpi_plan *plan, float *data, int64_t count, float *room,
                 ring_verdict *verdict, locus_mpi_traffic *traffic)
{
    for (int64_t at = 0; at < count; at += REDUCE_FLOATS) {
        const int64_t left = count - at;
        const int some = (int)(left < REDUCE_FLOATS ? left : REDUCE_FLOATS);
        reduce_some(plan, data + at, some, room, verdict, traffic);
    }
}
