/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_FOLD_H
#define LOCUS_ATTENTION_FOLD_H

/* Folds: the weights of a tile are added to the entries of their distances,
 *     strip[i][entry(i, j)] += T[i][j]
 * and the columns that the keys have left behind are handed on (flushed) at once. */

#include "attention/strip.h"

/* Takes `count` columns, from entry strip->first on, of the rows of a band. */
typedef void (*locus_flush)(void *context, const head_context *head, const locus_band *band,
                            const locus_strip *strip, int64_t count);

/* The strips of a query tile that weights are folded to. */
typedef struct locus_fold {
    locus_strip strips[MAX_BANDS];
    locus_flush flush;
    void *context;
} locus_fold;
void locus_fold_begin(const head_context *head, float *room, locus_flush flush, void *context,
                      locus_fold *fold);

/* Where pairs may use any entry: the first tile begins with zeros for every z. */
void locus_fold_begin_entries(const head_context *head, const locus_tile *tile, locus_fold *fold);

/* Fold a tile. `sums` are those of the rows of T, or NULL. */
void locus_fold_tile_weights(const head_context *head, const locus_tile *tile, const float *T,
                             const float *sums, locus_fold *fold);
/* The same without the pairs that entry_run.h takes. */
void locus_fold_outside_run(const head_context *head, const locus_tile *tile, const float *T,
                            locus_fold *fold);
/* Flush all that is left. */
void locus_fold_end(const head_context *head, int64_t rows, locus_fold *fold);

#endif
