/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_CALL_H
#define LOCUS_MPI_CALL_H

/* One compute call on this rank: its workspace, and the walk over its blocks. */

#include "core/memory.h"
#include "mpi/exchange.h"

typedef struct ring_call {
    const locus_mpi_plan *plan;
    const locus_tensors *in;
    const locus_results *results;  /* of this rank                          */
    const locus_results *dresults; /* backward                              */
    const locus_tensors *grad;     /* backward: where gradients are summed  */
    ring_verdict verdict;          /* what went wrong on this rank          */

    /* the workspace */
    locus_mpi_traffic *traffic;
    ring_arena arena; /* the plan of a block  */
    void *workspace;  /* of a block           */
    ring_positions positions;
    ring_exchange exchange;
    locus_results part; /* forward: results of a block; backward: its lse_low where the caller has
                           none, all 0                                                        */
    float *low;         /* forward: lse_low of this rank, where the caller has no room for it */
    float *tables;      /* backward: gradients of tables, one after the other                 */
    int64_t table_floats;
    float *reduce_room;
} ring_call;

/* Where the caller's workspace is laid out: its first multiple of LOCUS_ALIGNMENT. */
static inline char *ring_aligned(void *workspace)
{
    return (char *)workspace + (size_t)(-(uintptr_t)workspace % LOCUS_ALIGNMENT);
}

/* Lay out the workspace at `base`, which may be NULL; the bytes it takes. */
size_t ring_call_carve(const locus_mpi_plan *plan, int backward, char *base, ring_call *call);

/* Check the workspace and lay it out. */
locus_status ring_call_begin(ring_call *call, int backward, void *workspace, size_t bytes,
                             locus_error *error);

/* Do something with a block; it notes failures in the verdict. */
typedef void (*ring_block_operation)(ring_call *call, const ring_block *block, void *context);

/* Every block that the queries of this rank form with piece `number` of `owner`, in order;
 * messages get on between blocks. */
void ring_call_blocks(ring_call *call, int owner, int64_t number, const ring_piece *piece,
                      ring_block_operation operation, void *context);

#endif
