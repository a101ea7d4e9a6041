/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/exchange.h"

#include <string.h>

#include "core/error.h"
#include "core/tensor.h"
#include "mpi/rows.h"

enum { KEYS_TAG = 1, GRADIENTS_TAG = 2 };

/* ---- which pieces, with whom ---- */

static int after(const ring_layout *l, int step) { return (l->rank + step) % l->ranks; }
static int before(const ring_layout *l, int step) { return (l->rank - step + l->ranks) % l->ranks; }

static const ring_cursor first_cursor = {1, -1};

/* The next piece of this rank that a rank after it needs. */
static int next_going(const ring_layout *l, ring_cursor *c)
{
    for (; c->step < l->ranks; *c = (ring_cursor){c->step + 1, -1})
        for (c->piece++; c->piece < ring_piece_count(l, l->rank); c->piece++)
            if (ring_piece_needed(l, l->rank, c->piece, after(l, c->step))) return 1;
    return 0;
}

/* The next piece of a rank before this one that this one needs. */
static int next_coming(const ring_layout *l, ring_cursor *c)
{
    for (; c->step < l->ranks; *c = (ring_cursor){c->step + 1, -1})
        for (c->piece++; c->piece < ring_piece_count(l, before(l, c->step)); c->piece++)
            if (ring_piece_needed(l, before(l, c->step), c->piece, l->rank)) return 1;
    return 0;
}

/* ---- one message ---- */

static void post_keys_in(ring_exchange *x)
{
    const ring_layout *l = &x->plan->layout;
    if (!next_coming(l, &x->coming)) return;
    const int owner = before(l, x->coming.step);
    const ring_piece piece =
        ring_piece_of(x->plan, ring_piece_rows(l, owner, x->coming.piece), NULL);
    ring_note_mpi(x->verdict,
                  MPI_Irecv(x->keys_in[x->buffer], (int)piece.bytes, MPI_BYTE, owner, KEYS_TAG,
                            x->plan->communicator, &x->request[KEYS_IN]),
                  "keys from another rank");
}

static void count_sent(ring_exchange *x, size_t bytes)
{
    x->traffic->messages_sent++;
    x->traffic->bytes_sent += bytes;
}

static void post_keys_out(ring_exchange *x)
{
    const ring_layout *l = &x->plan->layout;
    const double began = MPI_Wtime();
    if (!next_going(l, &x->going)) return;
    const ring_piece piece = ring_piece_pack(x->plan, x->in, x->going.piece, x->keys_out);
    ring_note_mpi(x->verdict,
                  MPI_Isend(x->keys_out, (int)piece.bytes, MPI_BYTE, after(l, x->going.step),
                            KEYS_TAG, x->plan->communicator, &x->request[KEYS_OUT]),
                  "keys to another rank");
    count_sent(x, piece.bytes);
    x->traffic->seconds_packed += MPI_Wtime() - began;
}

/* Every piece that went comes back as gradients. */
static void post_gradients_in(ring_exchange *x)
{
    const ring_layout *l = &x->plan->layout;
    if (!next_going(l, &x->returning)) return;
    const ring_piece piece =
        ring_piece_gradients(x->plan, ring_piece_rows(l, l->rank, x->returning.piece), NULL);
    ring_note_mpi(x->verdict,
                  MPI_Irecv(x->gradients_in, (int)piece.bytes, MPI_BYTE,
                            after(l, x->returning.step), GRADIENTS_TAG, x->plan->communicator,
                            &x->request[GRADIENTS_IN]),
                  "gradients from another rank");
}

static void add_rows(const locus_tensor *to, const locus_tensor *from, int64_t first)
{
    if (!locus_present(to)) return;
    const locus_tensor rows = ring_rows_of(to, 2, first, from->shape[2]);
    ring_add(&rows, from);
}

static void add_gradients(ring_exchange *x)
{
    const ring_layout *l = &x->plan->layout;
    const double began = MPI_Wtime();
    const int64_t piece = x->returning.piece;
    const ring_piece sums =
        ring_piece_gradients(x->plan, ring_piece_rows(l, l->rank, piece), x->gradients_in);
    add_rows(&x->grad->k, &sums.k, piece * l->block_rows);
    add_rows(&x->grad->v, &sums.v, piece * l->block_rows);
    x->traffic->seconds_packed += MPI_Wtime() - began;
}

/* ---- what has been completed ---- */

static void check_received(ring_exchange *x, const MPI_Status *status, size_t expected)
{
    int bytes = 0;
    locus_error error;
    MPI_Get_count(status, MPI_BYTE, &bytes);
    x->traffic->messages_received++;
    x->traffic->bytes_received += (uint64_t)bytes;
    if ((size_t)bytes != expected)
        ring_note(x->verdict,
                  locus_fail(&error, LOCUS_ERR_IO,
                             "message from rank %d: found %d bytes, expected %zu",
                             status->MPI_SOURCE, bytes, expected),
                  &error);
}

static size_t bytes_of(const ring_exchange *x, int request)
{
    const ring_layout *l = &x->plan->layout;
    if (request == KEYS_IN)
        return ring_piece_of(x->plan,
                             ring_piece_rows(l, before(l, x->coming.step), x->coming.piece), NULL)
            .bytes;
    return ring_piece_gradients(x->plan, ring_piece_rows(l, l->rank, x->returning.piece), NULL)
        .bytes;
}

static void complete(ring_exchange *x, int request, const MPI_Status *status, int code)
{
    ring_note_mpi(x->verdict, code, "a message of another rank");
    x->request[request] = MPI_REQUEST_NULL;
    if (request == KEYS_IN || request == GRADIENTS_IN)
        check_received(x, status, bytes_of(x, request));
    if (request == KEYS_OUT) post_keys_out(x);
    if (request == GRADIENTS_IN) {
        add_gradients(x);
        post_gradients_in(x);
    }
}

static int any_left(const ring_exchange *x)
{
    for (int i = 0; i < RING_REQUESTS; i++)
        if (x->request[i] != MPI_REQUEST_NULL) return 1;
    return 0;
}

void ring_exchange_progress(ring_exchange *x)
{
    for (;;) {
        int index = MPI_UNDEFINED, done = 0;
        MPI_Status status;
        const int code = MPI_Testany(RING_REQUESTS, x->request, &index, &done, &status);
        if (!done || index == MPI_UNDEFINED) return;
        complete(x, index, &status, code);
    }
}

/* Complete one message, whichever is first. */
static void wait_for_one(ring_exchange *x)
{
    int index = MPI_UNDEFINED;
    MPI_Status status;
    const double began = MPI_Wtime();
    const int code = MPI_Waitany(RING_REQUESTS, x->request, &index, &status);
    x->traffic->seconds_waited += MPI_Wtime() - began;
    if (index != MPI_UNDEFINED) complete(x, index, &status, code);
}

static void wait_for(ring_exchange *x, int request)
{
    while (x->request[request] != MPI_REQUEST_NULL) wait_for_one(x);
}

/* ---- a call ---- */

void ring_exchange_begin(ring_exchange *x)
{
    for (int i = 0; i < RING_REQUESTS; i++) x->request[i] = MPI_REQUEST_NULL;
    x->coming = x->going = x->returning = first_cursor;
    x->buffer = x->spare = 0;
    post_keys_in(x);
    post_keys_out(x);
}

int ring_exchange_next(ring_exchange *x, int *owner, int64_t *number, ring_piece *piece)
{
    const ring_layout *l = &x->plan->layout;
    wait_for(x, KEYS_IN);
    if (x->coming.step >= l->ranks) return 0;
    x->at_hand = x->coming;
    *owner = before(l, x->at_hand.step);
    *number = x->at_hand.piece;
    *piece = ring_piece_of(x->plan, ring_piece_rows(l, *owner, *number), x->keys_in[x->buffer]);
    x->buffer = 1 - x->buffer;
    post_keys_in(x);
    return 1;
}

ring_piece ring_exchange_gradients(ring_exchange *x, int64_t rows)
{
    wait_for(x, GRADIENTS_OUT + x->spare);
    const ring_piece piece = ring_piece_gradients(x->plan, rows, x->gradients_out[x->spare]);
    memset(x->gradients_out[x->spare], 0, piece.bytes);
    return piece;
}

void ring_exchange_return(ring_exchange *x, const ring_piece *gradients)
{
    const ring_layout *l = &x->plan->layout;
    ring_note_mpi(x->verdict,
                  MPI_Isend(x->gradients_out[x->spare], (int)gradients->bytes, MPI_BYTE,
                            before(l, x->at_hand.step), GRADIENTS_TAG, x->plan->communicator,
                            &x->request[GRADIENTS_OUT + x->spare]),
                  "gradients to another rank");
    count_sent(x, gradients->bytes);
    x->spare = 1 - x->spare;
}

void ring_exchange_collect(ring_exchange *x) { post_gradients_in(x); }

void ring_exchange_end(ring_exchange *x)
{
    while (any_left(x)) wait_for_one(x);
}
