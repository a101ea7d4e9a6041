/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_PIECE_H
#define LOCUS_MPI_PIECE_H

/* A piece of the keys of a rank, as it travels: its rows of k, v, key_mask and k_positions, dense,
 * one after the other, in the types that the tensors have; and the gradients of its k and v, in
 * float. */

#include "mpi/plan.h"

typedef struct ring_piece {
    locus_tensor k, v, key_mask, k_positions;
    size_t bytes;
} ring_piece;

/* `rows` rows in `memory`, which may be NULL to ask for the size. */
ring_piece ring_piece_of(const locus_mpi_plan *plan, int64_t rows, void *memory);
ring_piece ring_piece_gradients(const locus_mpi_plan *plan, int64_t rows, void *memory);

/* Rows of this rank into `memory`; returns the piece. */
ring_piece ring_piece_pack(const locus_mpi_plan *plan, const locus_tensors *in, int64_t piece,
                           void *memory);

#endif
