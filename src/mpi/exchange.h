/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_EXCHANGE_H
#define LOCUS_MPI_EXCHANGE_H

/* The messages of a call. In step s every rank works on keys of the rank s before it and sends its
 * own to the rank s after it: a ring of P - 1 steps in which each piece comes from its owner, so no
 * rank keeps a block for another, and pieces that a rank does not need are not sent. One piece comes
 * and one goes while the piece at hand is worked on. In backward the gradients of a piece go back to
 * its owner, who adds them up in the order of steps and pieces.
 *
 * No rank waits in a circle: messages are ordered by (step, piece) on both sides, and the least that
 * is under way can always go on. */

#include "mpi/block.h"

enum { KEYS_IN, KEYS_OUT, GRADIENTS_IN, GRADIENTS_OUT, RING_REQUESTS = GRADIENTS_OUT + 2 };

/* Pieces that come or go, in their order. */
typedef struct ring_cursor {
    int step;
    int64_t piece;
} ring_cursor;

typedef struct ring_exchange {
    const locus_mpi_plan *plan;
    const locus_tensors *in;
    const locus_tensors *grad; /* to which gradients that come are added; backward only */
    ring_verdict *verdict;
    locus_mpi_traffic *traffic;
    char *keys_in[2], *keys_out;           /* messages of keys                         */
    char *gradients_in, *gradients_out[2]; /* of gradients                             */
    MPI_Request request[RING_REQUESTS];
    ring_cursor coming, going, returning; /* the message of each request               */
    ring_cursor at_hand;                  /* the piece that ring_exchange_next gave     */
    int buffer;                           /* of keys_in, that it goes to               */
    int spare;                            /* of gradients_out                          */
} ring_exchange;

/* Start the first messages. Everything above `request` is set. */
void ring_exchange_begin(ring_exchange *x);

/* Let messages get on; does not wait. */
void ring_exchange_progress(ring_exchange *x);

/* The next piece of another rank, which stays until the one after it is asked for. 0: no more. */
int ring_exchange_next(ring_exchange *x, int *owner, int64_t *number, ring_piece *piece);

/* Room for the gradients of the piece at hand, zeroed; then send them to its owner. */
ring_piece ring_exchange_gradients(ring_exchange *x, int64_t rows);
void ring_exchange_return(ring_exchange *x, const ring_piece *gradients);

/* From here on, take gradients that come back and add them. */
void ring_exchange_collect(ring_exchange *x);

/* Wait until all has gone and come. */
void ring_exchange_end(ring_exchange *x);

#endif
