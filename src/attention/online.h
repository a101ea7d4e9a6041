/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_ONLINE_H
#define LOCUS_ATTENTION_ONLINE_H

/* The streaming softmax over one query tile: begin, a step per key tile in ascending order, end,
 * write. Between steps, max, sum and out hold the invariant of softmax_step. */

#include "attention/fold.h"
#include "attention/scores.h"
#include "attention/softmax_rows.h"

typedef struct locus_online {
    const head_context *head;
    const locus_path *path;
    locus_queries queries;
    locus_scores scores;
    locus_softmax_rows softmax;
    float *out;    /* [rows][Dv] */
    int out_holds; /* a sum, else anything */
    float *clean;  /* [keys][Dv] room for values */
    locus_operand value_table;
    locus_fold value_fold;    /* weights by entry, to be multiplied by the value table */
    float *fold_strips;       /* its room */
    int without_sink;         /* another split of the keys has it */
    const locus_tensor *kept; /* where the weights go; NULL: nowhere */
    /* Not NULL: there is but one key tile, which may write its rows itself; see written. */
    const locus_results *results;
    int written;
} locus_online;

/* Rooms for the query rows; those of queries and scores are the path's. */
void locus_online_carve(const locus_plan *plan, locus_arena *arena, locus_online *online);

/* The query tile whose row 0 is `first`, with the keys and tables that online->scores has. The head
 * stays the caller's. */
void locus_online_begin(locus_online *online, const head_context *head, int64_t first);

void locus_online_step(locus_online *online, int64_t key_tile);

/* out is the sum over all keys that were seen. */
void locus_online_end(locus_online *online);

/* Write its rows of out and lse, unless a tile has. */
void locus_online_write(const locus_online *online, const locus_results *results);

/* Rows `first` .. of out and lse, from the maximum, the sum and the unnormalised out of each, which
 * is lost. */
void locus_write_rows(const head_context *head, const locus_results *results, int64_t first,
                      int64_t count, const float *max, const float *sum, float *out);

#endif
