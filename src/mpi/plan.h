/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_PLAN_H
#define LOCUS_MPI_PLAN_H

/* A plan over ranks: who holds what, and how much memory the largest block takes. Plans of the
 * blocks themselves are made as they are met, in the workspace: all of them together would be as
 * long as the whole sequence. */

#include <locus/mpi.h>

#include "mpi/agree.h"
#include "mpi/layout.h"

struct locus_mpi_plan {
    MPI_Comm communicator; /* a duplicate; errors return */
    const locus_allocator *allocator;
    locus_config config;  /* of the whole call; its texts are static */
    locus_tensors shapes; /* of this rank; data pointers are not kept */
    ring_layout layout;
    locus_mpi_plan_info info;
    uint32_t threads;
    size_t arena_bytes;                   /* of the plan of a block       */
    size_t forward_bytes, backward_bytes; /* of the workspace of a block  */
};

/* The axis of q_positions or k_positions that counts rows. */
static inline uint32_t ring_position_axis(const locus_mpi_plan *plan, const locus_tensor *t)
{
    return t->rank - (plan->config.options.axes > 1 ? 2 : 1);
}

/* Gradients of a call, by what they belong to. */
enum { RING_ROWS, RING_KEYS, RING_PAIRS, RING_TABLE };
static inline int ring_gradient_kind(size_t index)
{
    const size_t at = offsetof(locus_tensors, q) + index * sizeof(locus_tensor);
    return at == offsetof(locus_tensors, q)            ? RING_ROWS
           : at == offsetof(locus_tensors, pos_query)  ? RING_ROWS
           : at == offsetof(locus_tensors, gate)       ? RING_ROWS
           : at == offsetof(locus_tensors, k)          ? RING_KEYS
           : at == offsetof(locus_tensors, v)          ? RING_KEYS
           : at == offsetof(locus_tensors, bias_dense) ? RING_PAIRS
                                                       : RING_TABLE;
}

#endif
