/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/tensor.h"
#include "mpi/call.h"
#include "mpi/check.h"
#include "mpi/join.h"
#include "mpi/rows.h"

/* The results of a block of so many queries, dense. */
static locus_results part_of(const ring_call *call, int64_t rows)
{
    const locus_results *p = &call->part;
    return (locus_results){.size = sizeof *p,
                           .out = ring_dense_like(&p->out, LOCUS_F32, 2, rows, p->out.data),
                           .lse = ring_dense_like(&p->lse, LOCUS_F32, 2, rows, p->lse.data),
                           .lse_low =
                               ring_dense_like(&p->lse_low, LOCUS_F32, 2, rows, p->lse_low.data)};
}

static void attend_block(ring_call *call, const ring_block *block, void *context)
{
    const locus_mpi_plan *plan = call->plan;
    const locus_tensors some = ring_block_inputs(plan, call->in, block, &call->positions);
    const locus_results part = part_of(call, block->q.count);
    const locus_results rows = ring_block_results(call->results, &block->q);
    locus_plan *made = NULL;
    locus_error error;
    (void)context;
    locus_status status = ring_block_plan(plan, block, &some, &call->arena, &made, &error);
    if (status == LOCUS_OK)
        status = locus_forward(made, &some, &part, call->workspace, plan->forward_bytes, &error);
    locus_plan_free(made);
    ring_note(&call->verdict, status, &error);
    if (status != LOCUS_OK) return;
    const double began = MPI_Wtime();
    ring_join(&rows, &part, plan->threads);
    call->traffic->seconds_packed += MPI_Wtime() - began;
}

/* Own pieces first, then those that come. */
static void attend_pieces(ring_call *call)
{
    const locus_mpi_plan *plan = call->plan;
    const int rank = plan->layout.rank;
    ring_exchange *x = &call->exchange;
    ring_piece piece;
    int owner;
    int64_t number;
    /* the other buffer waits for the first piece that comes */
    for (int64_t own = 0; own < ring_piece_count(&plan->layout, rank); own++) {
        piece = ring_piece_pack(plan, call->in, own, x->keys_in[1 - x->buffer]);
        ring_call_blocks(call, rank, own, &piece, attend_block, NULL);
    }
    while (ring_exchange_next(x, &owner, &number, &piece))
        ring_call_blocks(call, owner, number, &piece, attend_block, NULL);
}

static locus_status check_call(ring_call *call, void *workspace, size_t bytes, locus_error *error)
{
    LOCUS_TRY(ring_check_inputs(call->plan, call->in, error));
    LOCUS_TRY(ring_check_outputs(call->plan, call->in, call->results, error));
    return ring_call_begin(call, 0, workspace, bytes, error);
}

static locus_status adopt_and_check(ring_call *call, const locus_tensors *in,
                                    const locus_results *results, locus_tensors *own_in,
                                    locus_results *own_results, void *workspace, size_t bytes,
                                    locus_error *error)
{
    if (in == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "forward: NULL argument");
    LOCUS_TRY(locus_adopt_tensors(&in, own_in, "tensors", error));
    LOCUS_TRY(ring_adopt_results(&results, own_results, "results", error));
    call->in = in;
    call->results = results;
    return check_call(call, workspace, bytes, error);
}

locus_status locus_mpi_forward(const locus_mpi_plan *plan, const locus_tensors *in,
                               const locus_results *results, void *workspace,
                               size_t workspace_bytes, locus_error *error)
{
    locus_tensors own_in;
    locus_results own_results;
    locus_error text;
    if (plan == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "forward: NULL plan");
    ring_call call = {.plan = plan};
    const double began = MPI_Wtime();
    ring_note(&call.verdict,
              adopt_and_check(&call, in, results, &own_in, &own_results, workspace, workspace_bytes,
                              &text),
              &text);
    if (ring_agree(plan->communicator, RING_FORWARD, &call.verdict) != LOCUS_OK)
        return ring_tell(&call.verdict, error);
    locus_results joined = *call.results;
    if (!locus_present(&joined.lse_low))
        joined.lse_low = locus_view(call.low, LOCUS_F32, 3, joined.lse.shape);
    call.results = &joined;
    ring_join_begin(&joined, &call.in->sink);
    ring_exchange_begin(&call.exchange);
    attend_pieces(&call);
    ring_exchange_end(&call.exchange);
    ring_agree(plan->communicator, RING_END, &call.verdict);
    call.traffic->seconds = MPI_Wtime() - began;
    return ring_tell(&call.verdict, error);
}
