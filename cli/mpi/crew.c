/* SPDX-License-Identifier: Apache-2.0 */
/* The messages of the lab over MPI. Ranks may wait long, for one that validates or for a free core,
 * so nobody spins for more than a moment. Errors of MPI end the job, as is MPI's default. */
#define _POSIX_C_SOURCE 200809L
#include "cli/mpi/crew.h"

#include <mpi.h>
#include <sched.h>
#include <time.h>

enum { TAG = 7, PATIENCE = 2000, NAP_NANOSECONDS = 200000, PIECE_BYTES = 1 << 20 };

static void wait_for(MPI_Request *request)
{
    const struct timespec nap = {.tv_nsec = NAP_NANOSECONDS};
    int done = 0;
    for (int tries = 0;; tries++) {
        MPI_Test(request, &done, MPI_STATUS_IGNORE);
        if (done) return;
        if (tries < PATIENCE)
            sched_yield();
        else
            nanosleep(&nap, NULL);
    }
}

/* Of a message that is still to go: MPI counts in ints. */
static int piece_of(size_t bytes) { return bytes < PIECE_BYTES ? (int)bytes : PIECE_BYTES; }

static void crew_send(void *context, int to, const void *data, size_t bytes)
{
    (void)context;
    for (size_t at = 0; at < bytes; at += (size_t)piece_of(bytes - at)) {
        MPI_Request request;
        MPI_Isend((const char *)data + at, piece_of(bytes - at), MPI_BYTE, to, TAG, MPI_COMM_WORLD,
                  &request);
        wait_for(&request);
    }
}

static void crew_receive(void *context, int from, void *data, size_t bytes)
{
    (void)context;
    for (size_t at = 0; at < bytes; at += (size_t)piece_of(bytes - at)) {
        MPI_Request request;
        MPI_Irecv((char *)data + at, piece_of(bytes - at), MPI_BYTE, from, TAG, MPI_COMM_WORLD,
                  &request);
        wait_for(&request);
    }
}

static void crew_broadcast(void *context, void *data, size_t bytes)
{
    (void)context;
    for (size_t at = 0; at < bytes; at += (size_t)piece_of(bytes - at)) {
        MPI_Request request;
        MPI_Ibcast((char *)data + at, piece_of(bytes - at), MPI_BYTE, 0, MPI_COMM_WORLD, &request);
        wait_for(&request);
    }
}

static int crew_poll(void *context, int *from, void *data, size_t bytes)
{
    MPI_Status status;
    int found = 0;
    (void)context;
    MPI_Iprobe(MPI_ANY_SOURCE, TAG, MPI_COMM_WORLD, &found, &status);
    if (!found) return 0;
    *from = status.MPI_SOURCE;
    MPI_Recv(data, (int)bytes, MPI_BYTE, *from, TAG, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return 1;
}

lab_crew mpi_crew(void)
{
    lab_crew crew = {
        .send = crew_send, .receive = crew_receive, .broadcast = crew_broadcast, .poll = crew_poll};
    MPI_Comm_rank(MPI_COMM_WORLD, &crew.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &crew.ranks);
    return crew;
}
