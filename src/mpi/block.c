/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/block.h"

#include "core/memory.h"
#include "core/tensor.h"
#include "mpi/rows.h"

static locus_tensor pairs_of(const locus_tensor *t, const ring_block *block)
{
    const locus_tensor rows = ring_rows_of(t, 2, block->q.local, block->q.count);
    return ring_rows_of(&rows, 3, block->k.row, block->k.count);
}

/* Integer tensors have to be dense, which rows of [B,T] are not. */
static locus_tensor positions_of(const locus_mpi_plan *plan, const locus_tensor *t, int64_t first,
                                 int64_t count, void *memory)
{
    if (!locus_present(t)) return *t;
    const uint32_t axis = ring_position_axis(plan, t);
    const locus_tensor rows = ring_rows_of(t, axis, first, count);
    const locus_tensor dense = ring_dense_like(t, t->dtype, axis, count, memory);
    if (rows.data != NULL) ring_copy(&dense, &rows); /* else a plan is measured */
    return dense;
}

locus_tensors ring_block_inputs(const locus_mpi_plan *plan, const locus_tensors *in,
                                const ring_block *block, const ring_positions *positions)
{
    const ring_run *q = &block->q, *k = &block->k;
    const ring_piece *piece = block->piece;
    locus_tensors some = *in;
    some.q = ring_rows_of(&in->q, 2, q->local, q->count);
    some.pos_query = ring_rows_of(&in->pos_query, 2, q->local, q->count);
    some.gate = ring_rows_of(&in->gate, 2, q->local, q->count);
    some.k = ring_rows_of(&piece->k, 2, block->key, k->count);
    some.v = ring_rows_of(&piece->v, 2, block->key, k->count);
    some.key_mask = ring_rows_of(&piece->key_mask, 1, block->key, k->count);
    some.q_positions = positions_of(plan, &in->q_positions, q->local, q->count, positions->q);
    some.k_positions = positions_of(plan, &piece->k_positions, block->key, k->count, positions->k);
    some.mask = pairs_of(&in->mask, block);
    some.bias_dense = pairs_of(&in->bias_dense, block);
    some.sink = some.q_offsets = some.k_offsets = (locus_tensor){0};
    return some;
}

locus_results ring_block_results(const locus_results *results, const ring_run *queries)
{
    return (locus_results){
        .size = sizeof *results,
        .out = ring_rows_of(&results->out, 2, queries->local, queries->count),
        .lse = ring_rows_of(&results->lse, 2, queries->local, queries->count),
        .lse_low = ring_rows_of(&results->lse_low, 2, queries->local, queries->count),
    };
}

/* ---- memory of its plan ---- */

static void *arena_allocate(void *context, size_t bytes)
{
    ring_arena *arena = context;
    const size_t at = arena->used;
    arena->used += bytes; /* a multiple of LOCUS_ALIGNMENT */
    if (arena->base == NULL) return locus_allocate(NULL, bytes, 1);
    return arena->used <= arena->room ? arena->base + at : NULL;
}

static void arena_release(void *context, void *memory)
{
    const ring_arena *arena = context;
    if (arena->base == NULL) locus_release(NULL, memory);
}

locus_status ring_block_plan(const locus_mpi_plan *plan, const ring_block *block,
                             const locus_tensors *some, ring_arena *arena, locus_plan **made,
                             locus_error *error)
{
    locus_config config = plan->config;
    config.query_offset = ring_query_position(&plan->layout, &block->q);
    config.key_offset = block->k.row;
    config.first_query = block->q.row;
    config.first_batch = block->q.sequence;
    arena->allocator = (locus_allocator){arena_allocate, arena_release, arena};
    arena->used = 0;
    config.allocator = &arena->allocator;
    return locus_plan_new(made, &config, some, error);
}
