/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_LAYOUT_H
#define LOCUS_MPI_LAYOUT_H

/* Which rank holds which rows, which pairs of rows meet. Pure arithmetic: every rank knows the
 * layout of all, so both sides of a message know whether it is sent. */

#include <stdint.h>

/* The rows of queries, or of keys. */
typedef struct ring_side {
    int64_t rows;     /* of all ranks                                                   */
    int64_t *first;   /* [ranks + 1] contiguous: the first row of each rank             */
    int64_t *offsets; /* [sequences + 1] of a ragged batch                              */
} ring_side;

typedef struct ring_layout {
    uint32_t kind; /* LOCUS_MPI_CONTIGUOUS or LOCUS_MPI_ZIGZAG */
    int ranks, rank;
    int64_t sequences;    /* of a ragged batch; 0: not ragged                           */
    int64_t query_offset; /* of each sequence; LOCUS_UNSET: its keys - its queries      */
    int64_t low, high;    /* causal and window: low <= m - n <= high                    */
    int64_t block_rows;   /* of a piece of keys and of a block of queries               */
    ring_side q, k;
} ring_layout;

/* Rows of one rank that follow each other in one sequence. */
typedef struct ring_run {
    int64_t sequence;
    int64_t row; /* the first, in its sequence            */
    int64_t count;
    int64_t local; /* the first, among the rows of the rank */
} ring_run;

int64_t ring_rows_held(const ring_layout *layout, const ring_side *side, int rank);

/* The run of rows of `rank` that begins at its row `local` and ends before `end`, at most. */
ring_run ring_run_at(const ring_layout *layout, const ring_side *side, int rank, int64_t local,
                     int64_t end);

/* The position of the first query of a run of its sequence. */
int64_t ring_query_position(const ring_layout *layout, const ring_run *queries);

/* 1 when causal and window let some pair of the two through. */
int ring_runs_meet(const ring_layout *layout, const ring_run *queries, const ring_run *keys);

/* Pieces of the keys of a rank, and the rows of one. */
int64_t ring_piece_count(const ring_layout *layout, int rank);
int64_t ring_piece_rows(const ring_layout *layout, int rank, int64_t piece);

/* 1 when some query of `rank` sees some key of that piece of `owner`. */
int ring_piece_needed(const ring_layout *layout, int owner, int64_t piece, int rank);

#endif
