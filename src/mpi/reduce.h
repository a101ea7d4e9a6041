/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_REDUCE_H
#define LOCUS_MPI_REDUCE_H

/* Sums over the ranks in an order that depends on their number alone: a tree in which rank r adds
 * what r + 1, r + 2, r + 4, ... have, as far as they belong to it. MPI_Allreduce promises no order. */

#include "mpi/agree.h"
#include "mpi/plan.h"

enum { REDUCE_FLOATS = 1 << 18 }; /* of one message */

/* Collective: data[count] becomes the sum on every rank; `room` has REDUCE_FLOATS floats, or count
 * if that is less. */
void ring_reduce(const locus_mpi_plan *plan, float *data, int64_t count, float *room,
                 ring_verdict *verdict, locus_mpi_traffic *traffic);

#endif
