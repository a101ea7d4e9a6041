/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/piece.h"

#include "core/carve.h"
#include "core/tensor.h"
#include "mpi/rows.h"

static locus_tensor take(locus_carver *carver, const locus_tensor *t, locus_dtype dtype,
                         uint32_t axis, int64_t rows)
{
    if (!locus_present(t)) return *t;
    return ring_dense_like(t, dtype, axis, rows,
                           locus_carve(carver, ring_dense_bytes(t, dtype, axis, rows)));
}

ring_piece ring_piece_of(const locus_mpi_plan *plan, int64_t rows, void *memory)
{
    const locus_tensors *s = &plan->shapes;
    locus_carver carver = {.base = memory};
    ring_piece piece = {
        .k = take(&carver, &s->k, s->k.dtype, 2, rows),
        .v = take(&carver, &s->v, s->v.dtype, 2, rows),
        .key_mask = take(&carver, &s->key_mask, s->key_mask.dtype, 1, rows),
        .k_positions = take(&carver, &s->k_positions, s->k_positions.dtype,
                            ring_position_axis(plan, &s->k_positions), rows),
    };
    piece.bytes = carver.failed ? SIZE_MAX : (size_t)carver.used;
    return piece;
}

ring_piece ring_piece_gradients(const locus_mpi_plan *plan, int64_t rows, void *memory)
{
    const locus_tensors *s = &plan->shapes;
    locus_carver carver = {.base = memory};
    ring_piece piece = {.k = take(&carver, &s->k, LOCUS_F32, 2, rows),
                        .v = take(&carver, &s->v, LOCUS_F32, 2, rows)};
    piece.bytes = carver.failed ? SIZE_MAX : (size_t)carver.used;
    return piece;
}

static void pack(const locus_tensor *to, const locus_tensor *from, uint32_t axis, int64_t first)
{
    if (!locus_present(to)) return;
    const locus_tensor rows = ring_rows_of(from, axis, first, to->shape[axis]);
    ring_copy(to, &rows);
}

ring_piece ring_piece_pack(const locus_mpi_plan *plan, const locus_tensors *in, int64_t piece,
                           void *memory)
{
    const ring_layout *layout = &plan->layout;
    const int64_t first = piece * layout->block_rows;
    const ring_piece packed =
        ring_piece_of(plan, ring_piece_rows(layout, layout->rank, piece), memory);
    pack(&packed.k, &in->k, 2, first);
    pack(&packed.v, &in->v, 2, first);
    pack(&packed.key_mask, &in->key_mask, 1, first);
    pack(&packed.k_positions, &in->k_positions, ring_position_axis(plan, &in->k_positions), first);
    return packed;
}
