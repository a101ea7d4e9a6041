/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_WHOLE_H
#define LOCUS_TESTS_WHOLE_H

/* A call that every rank has whole, its results from one process, and the part of it that this rank
 * holds. */

#include <locus/mpi.h>

typedef struct whole_call {
    locus_config config;
    locus_tensors in;
    locus_results dresults; /* made up: dout, dlse */
    locus_results results;  /* of one process      */
    locus_tensors grad;
} whole_call;

/* LOCUS_OK, or what one process says of the call. */
locus_status whole_run(whole_call *call, locus_error *error);
void whole_free(whole_call *call);

/* How the rows are spread. */
typedef struct whole_spread {
    const char *name;
    uint32_t layout;
    int uneven; /* contiguous: rank 0 has nothing, the last one most of it */
    int64_t block_rows;
} whole_spread;

/* Forward and backward over the ranks: the largest error of this rank by its tolerance (5e-6 for out
 * and lse, 2e-5 for gradients), with the name of the tensor; -1: refused, with `error`. Adds the bits
 * of all results to *digest. */
double whole_compare(const whole_call *call, const whole_spread *spread, char name[32],
                     uint64_t *digest, locus_error *error);

/* The local tensors of the call, and the plan over them; NULL: refused. */
typedef struct whole_part {
    locus_tensors in, grad;
    locus_results results, dresults;
    locus_mpi_plan *plan;
    void *workspace;
    size_t workspace_bytes;
} whole_part;
locus_status whole_split(const whole_call *call, const whole_spread *spread, whole_part *part,
                         locus_error *error);
void whole_part_free(whole_part *part);

#endif
