/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_CHECK_H
#define LOCUS_MPI_CHECK_H

/* Arguments of one rank against each other, and against those of rank 0. */

#include "mpi/plan.h"

/* The shapes that slicing relies on; the rest is for locus_plan_new to say. After
 * layout.q.rows and layout.k.rows are known. */
locus_status ring_check_shapes(const locus_mpi_plan *plan, const locus_tensors *shapes,
                               locus_error *error);

/* The rows that the layout gives this rank. */
locus_status ring_check_layout(const locus_mpi_plan *plan, locus_error *error);

/* Collective: configuration, types and shapes are those of rank 0, but for the number of rows. */
locus_status ring_check_alike(const locus_mpi_plan *plan, const locus_tensors *shapes,
                              locus_error *error);

/* Let *results point to `copy` where the caller's struct has another size. */
locus_status ring_adopt_results(const locus_results **results, locus_results *copy,
                                const char *name, locus_error *error);

/* The tensors of a compute call. Gradients may be NULL. */
locus_status ring_check_inputs(const locus_mpi_plan *plan, const locus_tensors *in,
                               locus_error *error);
locus_status ring_check_results(const locus_mpi_plan *plan, const locus_results *results,
                                const char *prefix, int lse_required, locus_error *error);
locus_status ring_check_outputs(const locus_mpi_plan *plan, const locus_tensors *in,
                                const locus_results *results, locus_error *error);
locus_status ring_check_gradients(const locus_mpi_plan *plan, const locus_tensors *in,
                                  const locus_results *results, const locus_results *dresults,
                                  const locus_tensors *grad, locus_error *error);

#endif
