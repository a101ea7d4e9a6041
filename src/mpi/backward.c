/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/error.h"
#include "core/tensor.h"
#include "mpi/call.h"
#include "mpi/check.h"
#include "mpi/reduce.h"
#include "mpi/rows.h"

/* P = e^(s - lse) with the lse of all keys, dS = P (dA - dout . out) with the out of all keys: a block
 * needs nothing of the others but these two. Every gradient is added to what is there. */

/* ---- where gradients are summed ---- */

/* Those of tables in scratch of this rank, for the ranks to add up; those of rows in place. */
static locus_tensors begin_gradients(ring_call *call, const locus_tensors *grad, int accumulate)
{
    locus_tensors sums = *grad;
    float *at = call->tables;
    memset(call->tables, 0, (size_t)call->table_floats * sizeof *call->tables);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        locus_tensor *t = locus_tensor_at(&sums, i);
        const locus_tensor *input = locus_tensor_at_const(&call->plan->shapes, i);
        if (!locus_present(input) || !locus_is_floating(input->dtype)) continue;
        if (ring_gradient_kind(i) != RING_TABLE) {
            if (locus_present(t) && !accumulate) ring_zero(t);
            continue;
        }
        if (locus_present(t)) *t = locus_view(at, LOCUS_F32, t->rank, t->shape);
        at += locus_tensor_elements(input);
    }
    return sums;
}

static void end_gradients(const locus_tensors *sums, const locus_tensors *grad, int accumulate)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(grad, i);
        if (!locus_present(t) || ring_gradient_kind(i) != RING_TABLE) continue;
        if (accumulate)
            ring_add(t, locus_tensor_at_const(sums, i));
        else
            ring_copy(t, locus_tensor_at_const(sums, i));
    }
}

/* ---- a block ---- */

static locus_results results_of(const ring_call *call, const ring_run *queries)
{
    locus_results rows = ring_block_results(call->results, queries);
    const locus_tensor *low = &call->part.lse_low;
    if (!locus_present(&rows.lse_low))
        rows.lse_low = ring_dense_like(low, LOCUS_F32, 2, queries->count, low->data);
    return rows;
}

/* The gradients that the block adds to; `keys` are those of its piece. */
static locus_tensors gradients_of(const ring_call *call, const ring_block *block,
                                  const ring_piece *keys)
{
    const ring_run *q = &block->q, *k = &block->k;
    locus_tensors some = *call->grad;
    some.q = ring_rows_of(&some.q, 2, q->local, q->count);
    some.pos_query = ring_rows_of(&some.pos_query, 2, q->local, q->count);
    some.gate = ring_rows_of(&some.gate, 2, q->local, q->count);
    some.k = ring_rows_of(&keys->k, 2, block->key, k->count);
    some.v = ring_rows_of(&keys->v, 2, block->key, k->count);
    some.bias_dense = ring_rows_of(&some.bias_dense, 2, q->local, q->count);
    some.bias_dense = ring_rows_of(&some.bias_dense, 3, k->row, k->count);
    return some;
}

static void differentiate(ring_call *call, const ring_block *block, const locus_tensors *some,
                          const locus_tensors *grad)
{
    const locus_mpi_plan *plan = call->plan;
    const locus_results rows = results_of(call, &block->q);
    const locus_results drows = ring_block_results(call->dresults, &block->q);
    locus_plan *made = NULL;
    locus_error error;
    locus_status status = ring_block_plan(plan, block, some, &call->arena, &made, &error);
    if (status == LOCUS_OK)
        status = locus_backward(made, some, &rows, &drows, grad, LOCUS_ACCUMULATE, call->workspace,
                                plan->backward_bytes, &error);
    locus_plan_free(made);
    ring_note(&call->verdict, status, &error);
}

static void differentiate_block(ring_call *call, const ring_block *block, void *context)
{
    const locus_tensors some = ring_block_inputs(call->plan, call->in, block, &call->positions);
    locus_tensors grad = gradients_of(call, block, context);
    grad.sink = (locus_tensor){0};
    differentiate(call, block, &some, &grad);
}

/* The sink is a key of its own, which every query sees once: blocks without keys. */
static void differentiate_sink(ring_call *call)
{
    const ring_layout *l = &call->plan->layout;
    const int64_t queries = call->plan->shapes.q.shape[2];
    const ring_piece none = ring_piece_of(call->plan, 0, call->exchange.keys_in[1]);
    ring_block block = {.piece = &none};
    if (!locus_present(&call->grad->sink)) return;
    for (int64_t m = 0; m < queries; m += block.q.count) {
        const int64_t left = queries - m;
        block.q =
            ring_run_at(l, &l->q, l->rank, m, m + (left < l->block_rows ? left : l->block_rows));
        locus_tensors some = ring_block_inputs(call->plan, call->in, &block, &call->positions);
        const locus_tensors grad = {.size = sizeof grad, .sink = call->grad->sink};
        some.sink = call->in->sink;
        differentiate(call, &block, &some, &grad);
    }
}

/* ---- pieces ---- */

static void add_own(const ring_call *call, const ring_piece *sums, int64_t number)
{
    const int64_t first = number * call->plan->layout.block_rows;
    const locus_tensor *const to[] = {&call->grad->k, &call->grad->v};
    const locus_tensor *const from[] = {&sums->k, &sums->v};
    for (size_t i = 0; i < 2; i++) {
        if (!locus_present(to[i])) continue;
        const locus_tensor rows = ring_rows_of(to[i], 2, first, from[i]->shape[2]);
        ring_add(&rows, from[i]);
    }
}

/* What the queries of this rank give to one of its own pieces. It is packed where no piece comes. */
static ring_piece differentiate_own(ring_call *call, int64_t number)
{
    ring_exchange *x = &call->exchange;
    const ring_piece piece =
        ring_piece_pack(call->plan, call->in, number, x->keys_in[1 - x->buffer]);
    ring_piece sums = ring_exchange_gradients(x, piece.k.shape[2]);
    ring_call_blocks(call, call->plan->layout.rank, number, &piece, differentiate_block, &sums);
    return sums;
}

static void differentiate_others(ring_call *call)
{
    ring_exchange *x = &call->exchange;
    ring_piece piece, sums;
    int owner;
    int64_t number;
    while (ring_exchange_next(x, &owner, &number, &piece)) {
        sums = ring_exchange_gradients(x, piece.k.shape[2]);
        ring_call_blocks(call, owner, number, &piece, differentiate_block, &sums);
        ring_exchange_return(x, &sums);
    }
}

/* Own pieces but the last, while the first keys come; those of others; the last own one, while the
 * last gradients come home. Each place of grad.k and grad.v is added to in a fixed order: an early
 * piece has its own sums first, the last one after all that others send. */
static void differentiate_pieces(ring_call *call)
{
    const int64_t last = ring_piece_count(&call->plan->layout, call->plan->layout.rank) - 1;
    ring_piece sums = {.bytes = 0};
    for (int64_t own = 0; own < last; own++) {
        sums = differentiate_own(call, own);
        add_own(call, &sums, own);
    }
    ring_exchange_collect(&call->exchange);
    differentiate_others(call);
    if (last >= 0) sums = differentiate_own(call, last);
    ring_exchange_end(&call->exchange);
    if (last >= 0) add_own(call, &sums, last);
}

/* ---- the call ---- */

typedef struct backward_arguments {
    const locus_tensors *in, *grad;
    const locus_results *results, *dresults;
    uint32_t flags;
    void *workspace;
    size_t bytes;
    locus_tensors own_in, own_grad; /* where the caller's have another size */
    locus_results own_results, own_dresults;
} backward_arguments;

static locus_status check_call(ring_call *call, backward_arguments *a, locus_error *error)
{
    if (a->in == NULL || a->results == NULL || a->dresults == NULL || a->grad == NULL ||
        (a->flags & ~LOCUS_ACCUMULATE) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "backward: NULL argument or unknown flag");
    LOCUS_TRY(locus_adopt_tensors(&a->in, &a->own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_tensors(&a->grad, &a->own_grad, "grad", error));
    LOCUS_TRY(ring_adopt_results(&a->results, &a->own_results, "results", error));
    LOCUS_TRY(ring_adopt_results(&a->dresults, &a->own_dresults, "dresults", error));
    call->in = a->in;
    call->results = a->results;
    call->dresults = a->dresults;
    LOCUS_TRY(ring_check_inputs(call->plan, a->in, error));
    LOCUS_TRY(ring_check_gradients(call->plan, a->in, a->results, a->dresults, a->grad, error));
    return ring_call_begin(call, 1, a->workspace, a->bytes, error);
}

static void run(ring_call *call, const locus_tensors *grad, int accumulate)
{
    const locus_mpi_plan *plan = call->plan;
    const locus_tensors sums = begin_gradients(call, grad, accumulate);
    ring_zero(&call->part.lse_low);
    call->grad = call->exchange.grad = &sums;
    ring_exchange_begin(&call->exchange);
    differentiate_sink(call);
    differentiate_pieces(call);
    ring_reduce(plan, call->tables, call->table_floats, call->reduce_room, &call->verdict,
                call->traffic);
    end_gradients(&sums, grad, accumulate);
}

locus_status locus_mpi_backward(const locus_mpi_plan *plan, const locus_tensors *in,
                                const locus_results *results, const locus_results *dresults,
                                const locus_tensors *grad, uint32_t flags, void *workspace,
                                size_t workspace_bytes, locus_error *error)
{
    backward_arguments arguments = {.in = in,
                                    .grad = grad,
                                    .results = results,
                                    .dresults = dresults,
                                    .flags = flags,
                                    .workspace = workspace,
                                    .bytes = workspace_bytes};
    locus_error text;
    if (plan == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "backward: NULL plan");
    ring_call call = {.plan = plan};
    const double began = MPI_Wtime();
    ring_note(&call.verdict, check_call(&call, &arguments, &text), &text);
    if (ring_agree(plan->communicator, RING_BACKWARD, &call.verdict) != LOCUS_OK)
        return ring_tell(&call.verdict, error);
    run(&call, arguments.grad, (flags & LOCUS_ACCUMULATE) != 0);
    ring_agree(plan->communicator, RING_END, &call.verdict);
    call.traffic->seconds = MPI_Wtime() - began;
    return ring_tell(&call.verdict, error);
}
