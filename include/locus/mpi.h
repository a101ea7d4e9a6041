/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_H
#define LOCUS_MPI_H

/* Attention over the ranks of an MPI communicator, for sequences that one machine cannot hold: the
 * library liblocus_mpi, which needs MPI; liblocus does not.
 *
 * Every rank holds its rows of q and the same or other rows of k and v. Blocks of keys and values
 * go round the ranks, while each rank works on the block that it has; results of the blocks are
 * joined by lse. Tables (bias, rel_k, sink, ...) are whole on every rank, with the same values.
 *
 * locus_mpi_plan_new, locus_mpi_plan_free, locus_mpi_forward and locus_mpi_backward are collective:
 * every rank of the communicator calls them, in the same order, with a plan. They agree on failures: if one rank is refused, all return the status of the
 * first of them, with its message, and no rank waits for another. Results have the same bits from
 * run to run for the same number of ranks; another number joins other blocks, which shows in the
 * last digits. MPI is called from the calling thread only (MPI_THREAD_FUNNELED is enough). */

#include <mpi.h>

#include <locus/attention.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which rows of q, k and v a rank holds, of the N rows of all ranks together. */
enum {
    LOCUS_MPI_CONTIGUOUS = 0, /* rank after rank, any number each, none too                    */
    LOCUS_MPI_ZIGZAG = 1,     /* 2 P chunks; rank r has chunks r and 2 P - 1 - r, one after the
                                 other: all ranks have as many pairs below the diagonal        */
};

typedef struct locus_mpi_options {
    uint32_t size;      /* sizeof(locus_mpi_options) as the caller compiled it               */
    uint32_t layout;    /* LOCUS_MPI_*                                                       */
    int64_t block_rows; /* rows of a message, and of the queries that meet it at a time; 0: chosen.
                            Larger ones cost memory, smaller ones time                        */
    uint64_t reserved[4]; /* 0 */
} locus_mpi_options;

/* Rows first .. first + count - 1 of the whole. This struct never grows. */
typedef struct locus_mpi_rows {
    int64_t first, count;
} locus_mpi_rows;

/* The rows that `rank` of `ranks` holds of `rows`, in the order in which it holds them. LOCUS_MPI_ZIGZAG
 * has no other; LOCUS_MPI_CONTIGUOUS may have any, these are as even as can be. Returns how many
 * runs there are, at most 2. */
LOCUS_API int locus_mpi_layout(uint32_t layout, int64_t rows, int ranks, int rank,
                               locus_mpi_rows held[2]);

typedef struct locus_mpi_plan locus_mpi_plan;

/* Like locus_plan_new. `shapes` are the tensors of this rank: rows of q, k, v, key_mask,
 * q_positions, k_positions are those that it holds; mask and bias_dense have its rows and the keys
 * of all ranks; everything else is whole. q_offsets and k_offsets count the rows of all ranks.
 * Positions, query_offset and dropout are those of the whole call, so dropout drops the same pairs
 * on any number of ranks. `options` may be NULL. The communicator is duplicated, which
 * locus_mpi_plan_free undoes: both are collective. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_mpi_plan_new(
    locus_mpi_plan **plan, MPI_Comm communicator, const locus_config *config,
    const locus_mpi_options *options, const locus_tensors *shapes, locus_error *error);
LOCUS_API void locus_mpi_plan_free(locus_mpi_plan *plan); /* NULL is allowed */

typedef struct locus_mpi_plan_info {
    uint32_t size; /* sizeof(locus_mpi_plan_info) as the caller compiled it */
    int32_t ranks, rank;
    uint32_t layout;
    int64_t queries, keys;                /* of all ranks                                      */
    int64_t block_rows;                   /* of a message                                      */
    int64_t blocks;                       /* of pairs in reach that this rank computes         */
    int64_t pieces_sent, pieces_received; /* messages of keys and values of a forward call    */
    uint64_t piece_bytes;                 /* of the largest of them                            */
} locus_mpi_plan_info;
LOCUS_API void locus_mpi_plan_describe(const locus_mpi_plan *plan, locus_mpi_plan_info *info);

/* Bytes of workspace on this rank: O(rows of a rank), never n^2. */
LOCUS_API size_t locus_mpi_forward_workspace(const locus_mpi_plan *plan);
LOCUS_API size_t locus_mpi_backward_workspace(const locus_mpi_plan *plan);

/* locus_forward and locus_backward over the ranks; out, lse, dout and gradients of rows are those of
 * this rank, gradients of tables are summed over all ranks, in an order that depends on their number
 * alone, and are the same on every rank. Backward is as exact as one process where it is given
 * results.lse_low, without it as exact as lse. Inputs and dout may be F16 or BF16 and travel so; out,
 * lse and gradients are F32, and so are the gradients of k and v that travel. With LOCUS_ACCUMULATE, tables are added to what this
 * rank has there. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_mpi_forward(const locus_mpi_plan *plan,
                                                          const locus_tensors *in,
                                                          const locus_results *results,
                                                          void *workspace, size_t workspace_bytes,
                                                          locus_error *error);
LOCUS_API LOCUS_MUST_CHECK locus_status locus_mpi_backward(
    const locus_mpi_plan *plan, const locus_tensors *in, const locus_results *results,
    const locus_results *dresults, const locus_tensors *grad, uint32_t flags, void *workspace,
    size_t workspace_bytes, locus_error *error);

/* What the last call in `workspace` did on this rank. */
typedef struct locus_mpi_traffic {
    uint32_t size; /* sizeof(locus_mpi_traffic) as the caller compiled it      */
    uint32_t reserved;
    uint64_t messages_sent, bytes_sent, messages_received, bytes_received;
    double seconds;        /* of the call                                         */
    double seconds_waited; /* of these, for a message that had not come or gone   */
    double seconds_packed; /* of these, to pack, add up and join                  */
} locus_mpi_traffic;
LOCUS_API void locus_mpi_last_traffic(const locus_mpi_plan *plan, const void *workspace,
                                      locus_mpi_traffic *traffic);

#ifdef __cplusplus
}
#endif
#endif
