/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/call.h"

#include <string.h>

#include "core/carve.h"
#include "core/error.h"
#include "core/tensor.h"
#include "mpi/reduce.h"
#include "mpi/rows.h"

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Rows of the largest block of queries, and of the largest piece of any rank. */
static int64_t most_queries(const locus_mpi_plan *plan)
{
    return min_i64(plan->layout.block_rows, plan->shapes.q.shape[2]);
}

static int64_t most_keys(const locus_mpi_plan *plan)
{
    int64_t most = 0;
    for (int rank = 0; rank < plan->layout.ranks; rank++) {
        const int64_t rows = ring_rows_held(&plan->layout, &plan->layout.k, rank);
        if (rows > most) most = rows;
    }
    return min_i64(plan->layout.block_rows, most);
}

static void carve_exchange(const locus_mpi_plan *plan, int backward, locus_carver *c,
                           ring_exchange *x)
{
    const int64_t rows = most_keys(plan);
    const int travels = plan->layout.ranks > 1;
    const size_t keys = ring_piece_of(plan, rows, NULL).bytes;
    const size_t gradients = backward ? ring_piece_gradients(plan, rows, NULL).bytes : 0;
    x->keys_in[0] = locus_carve(c, travels ? keys : 0);
    x->keys_in[1] = locus_carve(c, keys); /* own pieces use it first */
    x->keys_out = locus_carve(c, travels ? keys : 0);
    x->gradients_out[0] = locus_carve(c, gradients);
    x->gradients_out[1] = locus_carve(c, travels ? gradients : 0);
    x->gradients_in = locus_carve(c, travels ? gradients : 0);
}

static void *carve_positions(const locus_mpi_plan *plan, const locus_tensor *t, int64_t rows,
                             locus_carver *c)
{
    if (!locus_present(t)) return NULL;
    return locus_carve(c, ring_dense_bytes(t, t->dtype, ring_position_axis(plan, t), rows));
}

static locus_results carve_part(const locus_mpi_plan *plan, int backward, locus_carver *c)
{
    const locus_tensor *q = &plan->shapes.q;
    const int64_t shape[] = {q->shape[0], q->shape[1], most_queries(plan), plan->shapes.v.shape[3]};
    const int64_t rows = shape[0] * shape[1];
    locus_results part = {.size = sizeof part};
    part.lse_low = locus_view(locus_carve_floats(c, rows, shape[2], 1), LOCUS_F32, 3, shape);
    if (backward) return part;
    part.lse = locus_view(locus_carve_floats(c, rows, shape[2], 1), LOCUS_F32, 3, shape);
    part.out = locus_view(locus_carve_floats(c, rows, shape[2], shape[3]), LOCUS_F32, 4, shape);
    return part;
}

static int64_t table_floats(const locus_mpi_plan *plan)
{
    int64_t floats = 0;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *t = locus_tensor_at_const(&plan->shapes, i);
        if (locus_present(t) && locus_is_floating(t->dtype) && ring_gradient_kind(i) == RING_TABLE)
            floats += locus_tensor_elements(t);
    }
    return floats;
}

size_t ring_call_carve(const locus_mpi_plan *plan, int backward, char *base, ring_call *call)
{
    const locus_tensor *q = &plan->shapes.q;
    locus_carver c = {.base = base};
    size_t bytes = 0;
    call->traffic = locus_carve(&c, sizeof *call->traffic);
    call->arena.base = locus_carve(&c, plan->arena_bytes);
    call->arena.room = plan->arena_bytes;
    call->workspace = locus_carve(&c, backward ? plan->backward_bytes : plan->forward_bytes);
    carve_exchange(plan, backward, &c, &call->exchange);
    call->positions.q = carve_positions(plan, &plan->shapes.q_positions, most_queries(plan), &c);
    call->positions.k = carve_positions(plan, &plan->shapes.k_positions, most_keys(plan), &c);
    call->part = carve_part(plan, backward, &c);
    if (backward) {
        call->table_floats = table_floats(plan);
        call->tables = locus_carve_floats(&c, call->table_floats, 1, 1);
        call->reduce_room =
            locus_carve_floats(&c, min_i64(REDUCE_FLOATS, call->table_floats), 1, 1);
    } else {
        call->low = locus_carve_floats(&c, q->shape[0], q->shape[1], q->shape[2]);
    }
    return locus_carved_bytes(&c, &bytes) ? bytes + LOCUS_ALIGNMENT : SIZE_MAX;
}

locus_status ring_call_begin(ring_call *call, int backward, void *workspace, size_t bytes,
                             locus_error *error)
{
    const locus_mpi_plan *plan = call->plan;
    const size_t needed = ring_call_carve(plan, backward, NULL, call);
    LOCUS_TRY(locus_check_memory("workspace", workspace, bytes, needed, error));
    ring_call_carve(plan, backward, ring_aligned(workspace), call);
    *call->traffic = (locus_mpi_traffic){.size = sizeof *call->traffic};
    call->exchange.plan = plan;
    call->exchange.in = call->in;
    call->exchange.grad = call->grad;
    call->exchange.verdict = &call->verdict;
    call->exchange.traffic = call->traffic;
    return LOCUS_OK;
}

void ring_call_blocks(ring_call *call, int owner, int64_t number, const ring_piece *piece,
                      ring_block_operation operation, void *context)
{
    const ring_layout *l = &call->plan->layout;
    const int64_t first = number * l->block_rows, past = first + piece->k.shape[2];
    const int64_t queries = call->plan->shapes.q.shape[2];
    ring_block block = {.piece = piece};
    for (int64_t m = 0; m < queries; m += block.q.count) {
        block.q = ring_run_at(l, &l->q, l->rank, m, min_i64(m + l->block_rows, queries));
        for (int64_t n = first; n < past; n += block.k.count) {
            block.k = ring_run_at(l, &l->k, owner, n, past);
            block.key = n - first;
            if (!ring_runs_meet(l, &block.q, &block.k)) continue;
            if (call->verdict.status == LOCUS_OK) operation(call, &block, context);
            ring_exchange_progress(&call->exchange);
        }
    }
}
