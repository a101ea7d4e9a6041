/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_BLOCK_H
#define LOCUS_MPI_BLOCK_H

/* One run of queries against one run of keys: a call of its own, at its place in the whole. */

#include "mpi/piece.h"

typedef struct ring_block {
    ring_run q, k;
    const ring_piece *piece; /* that holds the keys                  */
    int64_t key;             /* the row of the piece that k begins at */
} ring_block;

/* Memory for the plan of one block at a time. With base NULL it is malloc's, and counted. */
typedef struct ring_arena {
    locus_allocator allocator; /* of ring_block_plan */
    char *base;
    size_t used, room;
} ring_arena;

/* Scratch for dense positions of a block. */
typedef struct ring_positions {
    void *q, *k;
} ring_positions;

/* The inputs of the block: rows of `in`, keys of the piece. The sink belongs to no block. */
locus_tensors ring_block_inputs(const locus_mpi_plan *plan, const locus_tensors *in,
                                const ring_block *block, const ring_positions *positions);

/* Its rows of results that have the rows of this rank. */
locus_results ring_block_results(const locus_results *results, const ring_run *queries);

/* Its plan, for the tensors that ring_block_inputs gave. */
locus_status ring_block_plan(const locus_mpi_plan *plan, const ring_block *block,
                             const locus_tensors *some, ring_arena *arena, locus_plan **made,
                             locus_error *error);

#endif
