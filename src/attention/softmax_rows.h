/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_SOFTMAX_ROWS_H
#define LOCUS_ATTENTION_SOFTMAX_ROWS_H

/* The state of a streaming softmax, a number per query row. */

#include "attention/tile.h"

typedef struct locus_softmax_rows {
    float *max, *sum;    /* of the keys so far                                      */
    float *rescale;      /* of the last step: what the sums before it are multiplied by */
    float *tile_sum;     /* of the last step                                        */
    float *max_lanes;    /* [rows][LOCUS_LANES] whose maximum is that of the tile's row */
    float *lse, *factor; /* of the end: max + ln sum, 1 / sum                       */
} locus_softmax_rows;

void locus_softmax_rows_carve(const locus_geometry *geometry, locus_arena *arena,
                              locus_softmax_rows *rows);

/* No key yet; with_sink: the head's sink, e^sink without a value, is in the sum already. */
void locus_softmax_rows_begin(const head_context *head, int with_sink, int64_t count,
                              locus_softmax_rows *rows);

/* scores become e^(s - max); `has_max`: max_lanes hold those of the tile. */
void locus_softmax_rows_step(const head_context *head, const locus_tile *tile, float *scores,
                             int has_max, locus_softmax_rows *rows);

#endif
