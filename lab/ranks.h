/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_RANKS_H
#define LOCUS_LAB_RANKS_H

/* Mean reciprocal rank beyond the trained length, as Kazemnejad et al. 2023 compare schemes. A
 * contest is a task and a seed; a scheme's score in it is the mean over all lengths beyond L of
 * exact match (copy, reverse, recall, addition), bits per byte (text) or loss (masked). Equal
 * scores share a rank. A run below 95 % exact match at L, or without a value beyond it, is not
 * ranked and counts as 0. Variants take no part. */

#include "lab/results.h"

enum { LAB_BOOTSTRAPS = 2000 };

typedef struct lab_rank {
    int32_t scheme;
    double mean, low, high; /* 90 % of the bootstraps, over tasks and seeds, lie between */
    size_t contests;        /* in which it was ranked                                    */
} lab_rank;

typedef struct lab_ranks {
    lab_rank *each; /* best first */
    size_t count, contests;
} lab_ranks;

lab_ranks *lab_ranks_new(const lab_results *results); /* NULL: no memory */
void lab_ranks_free(lab_ranks *ranks);

#endif
