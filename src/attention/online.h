/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_ONLINE_H
#define LOCUS_ATTENTION_ONLINE_H

/* The streaming softmax over one query tile: begin, a step per key tile in ascending order,
 * finish. Between steps, worker->top, sum and out hold the invariant of softmax_step. */

#include "attention/relative.h"

typedef struct locus_online {
    const locus_head *head;
    locus_rows rows;
    locus_strips key_strips; /* position . RK                              */
    locus_strips value_fold; /* weights by entry, to be multiplied by RV   */
    locus_block value_table;
    int out_holds; /* worker->out holds a sum, else anything */
    /* Not NULL: there is but one key tile, and it may write its rows itself; see written. */
    const locus_results *results;
    int written;
} locus_online;

/* The query tile whose row 0 is `first`. The head stays the caller's. */
void locus_online_begin(locus_online *online, const locus_head *head, int64_t first);

void locus_online_step(locus_online *online, int64_t key_tile);

/* worker->out is the sum over all keys that were seen. */
void locus_online_flush(locus_online *online);

/* The head's rows of out and lse, from top, sum and unnormalised out. */
void locus_online_write(const locus_head *head, const locus_rows *rows,
                        const locus_results *results, const float *top, const float *sum,
                        const float *out);

#endif
