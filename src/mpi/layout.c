/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/layout.h"

#include <locus/mpi.h>

static int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }

/* Row 0 of chunk `number` of `chunks` that are as even as can be. */
static int64_t chunk_first(int64_t rows, int64_t chunks, int64_t number)
{
    return rows / chunks * number + rows % chunks * number / chunks;
}

static locus_mpi_rows chunk_of(int64_t rows, int64_t chunks, int64_t number)
{
    const int64_t first = chunk_first(rows, chunks, number);
    return (locus_mpi_rows){first, chunk_first(rows, chunks, number + 1) - first};
}

int locus_mpi_layout(uint32_t layout, int64_t rows, int ranks, int rank, locus_mpi_rows held[2])
{
    if (layout == LOCUS_MPI_CONTIGUOUS) {
        held[0] = chunk_of(rows, ranks, rank);
        return 1;
    }
    held[0] = chunk_of(rows, 2 * ranks, rank);
    held[1] = chunk_of(rows, 2 * ranks, 2 * ranks - 1 - rank);
    return 2;
}

static int runs_held(const ring_layout *layout, const ring_side *side, int rank,
                     locus_mpi_rows held[2])
{
    if (layout->kind != LOCUS_MPI_CONTIGUOUS)
        return locus_mpi_layout(layout->kind, side->rows, layout->ranks, rank, held);
    held[0] = (locus_mpi_rows){side->first[rank], side->first[rank + 1] - side->first[rank]};
    return 1;
}

int64_t ring_rows_held(const ring_layout *layout, const ring_side *side, int rank)
{
    locus_mpi_rows held[2];
    int64_t rows = 0;
    for (int i = runs_held(layout, side, rank, held); i-- > 0;) rows += held[i].count;
    return rows;
}

/* The sequence that row `row` belongs to: the last that begins at or before it. */
static int64_t sequence_of(const ring_layout *layout, const ring_side *side, int64_t row)
{
    int64_t low = 0, high = layout->sequences;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (side->offsets[middle] <= row)
            low = middle;
        else
            high = middle;
    }
    return low;
}

ring_run ring_run_at(const ring_layout *layout, const ring_side *side, int rank, int64_t local,
                     int64_t end)
{
    locus_mpi_rows held[2];
    const int runs = runs_held(layout, side, rank, held);
    int64_t inside = local;
    const int second = runs > 1 && inside >= held[0].count;
    if (second) inside -= held[0].count;
    const locus_mpi_rows *chunk = &held[second];
    ring_run run = {.row = chunk->first + inside,
                    .count = min_i64(chunk->count - inside, end - local),
                    .local = local};
    if (layout->sequences == 0) return run;
    run.sequence = sequence_of(layout, side, run.row);
    run.count = min_i64(run.count, side->offsets[run.sequence + 1] - run.row);
    run.row -= side->offsets[run.sequence];
    return run;
}

static int64_t sequence_rows(const ring_layout *layout, const ring_side *side, int64_t sequence)
{
    return layout->sequences == 0 ? side->rows
                                  : side->offsets[sequence + 1] - side->offsets[sequence];
}

int64_t ring_query_position(const ring_layout *layout, const ring_run *queries)
{
    const int64_t s = queries->sequence;
    const int64_t offset =
        layout->query_offset != LOCUS_UNSET
            ? layout->query_offset
            : sequence_rows(layout, &layout->k, s) - sequence_rows(layout, &layout->q, s);
    return offset + queries->row;
}

int ring_runs_meet(const ring_layout *layout, const ring_run *queries, const ring_run *keys)
{
    const int64_t first = ring_query_position(layout, queries);
    const int64_t least = first - (keys->row + keys->count - 1);
    const int64_t most = first + queries->count - 1 - keys->row;
    return queries->sequence == keys->sequence && least <= layout->high && most >= layout->low;
}

int64_t ring_piece_count(const ring_layout *layout, int rank)
{
    const int64_t rows = ring_rows_held(layout, &layout->k, rank);
    return (rows + layout->block_rows - 1) / layout->block_rows;
}

int64_t ring_piece_rows(const ring_layout *layout, int rank, int64_t piece)
{
    const int64_t rows = ring_rows_held(layout, &layout->k, rank);
    return min_i64(layout->block_rows, rows - piece * layout->block_rows);
}

int ring_piece_needed(const ring_layout *layout, int owner, int64_t piece, int rank)
{
    const int64_t from = piece * layout->block_rows;
    const int64_t to = from + ring_piece_rows(layout, owner, piece);
    const int64_t queries = ring_rows_held(layout, &layout->q, rank);
    ring_run k, q;
    for (int64_t n = from; n < to; n += k.count) {
        k = ring_run_at(layout, &layout->k, owner, n, to);
        for (int64_t m = 0; m < queries; m += q.count) {
            q = ring_run_at(layout, &layout->q, rank, m, queries);
            if (ring_runs_meet(layout, &q, &k)) return 1;
        }
    }
    return 0;
}
