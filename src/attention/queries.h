/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_QUERIES_H
#define LOCUS_ATTENTION_QUERIES_H

/* The rows of one query tile as products read them. */

#include "attention/arena.h"
#include "attention/operand.h"

typedef struct locus_queries {
    int64_t first, count;       /* query rows first .. first + count - 1 */
    int64_t position;           /* of row 0 */
    int64_t tile_from, tile_to; /* key tiles with a pair in reach */
    /* What is multiplied with the keys, turned q + u, and with the key table, q + w, times
     * locus_row_scale, or pos_query: rows of the rooms below, or q and pos_query in place. */
    const float *content, *with_position;
    int64_t row_stride;      /* of content                                       */
    int64_t position_stride; /* of with_position: rows of plan->key_width floats */
    /* rooms, NULL where the scheme or the pass does not use them */
    float *content_rows;  /* [rows][D]                           */
    float *position_rows; /* [rows][key_width]                   */
    float *pos_q_rows;    /* [rows][D] scale pos_q               */
    float *norms;         /* [rows] c |q|, and sums of gates less the least lse: gate_skip.h */
    double *lead;
    uint8_t *content_bad, *position_bad, *pos_bad; /* [rows] backward                     */
} locus_queries;

void locus_queries_carve(const locus_plan *plan, const locus_geometry *geometry, int finds_bad,
                         locus_arena *arena, locus_queries *queries);

/* The query tile from row `first` on: which key tiles it reaches. Then its loads. */
void locus_queries_reach(const head_context *head, int64_t first, locus_queries *queries);
void locus_queries_load(const head_context *head, locus_queries *queries);

/* The bad rows, for sums over queries; loaded with the scale in query rows. */
void locus_queries_find_bad(const head_context *head, locus_queries *queries);

/* xPos: the factors between the gain block of row i and that of the keys from `key` on, [D]. */
const float *locus_row_gain(const locus_plan *plan, const locus_queries *queries, int64_t i,
                            int64_t key);

/* 1 when some row lies in another gain block than the keys from `key` on: else every gain is 1. */
int locus_rows_have_gain(const locus_plan *plan, const locus_queries *queries, int64_t key);

#endif
