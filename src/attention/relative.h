/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_RELATIVE_H
#define LOCUS_ATTENTION_RELATIVE_H

/* Relative tables. The pair (i, j) of a tile uses entry index[j - i], ascending with j and
 * descending with i, so the entries that meet in a tile are a stretch, and the stretches of
 * successive key tiles move upwards and overlap:
 *
 *        entries →   low ........ high
 *     row i of a     [ products of row i with the entries ]      rolls along with the keys:
 *     strip               ↑ index[0 - i] .. index[columns-1 - i]  only new entries are computed
 *
 * Reading a score from the strip is a look-up; adding a weight to it is a fold, and the
 * folded columns that the keys have left behind are multiplied by their table rows at once.
 * Beyond a clip the stretch is one entry, and costs nothing. Tiles with many rows are cut
 * into bands with a strip each, because a stretch grows with the rows. */

#include "attention/tile.h"

enum {
    BAND_ROWS = 48,
    MOST_BANDS = MOST_ROWS / BAND_ROWS,
    EXPANDED_WIDTH = BAND_ROWS + LOCUS_PANEL + LOCUS_LANES
};

/* Columns are entries first .. end - 1 of rows that are `width` floats apart. */
typedef struct locus_strip {
    float *data;
    int64_t width, first, end;
} locus_strip;

typedef struct locus_strips {
    locus_strip band[MOST_BANDS];
} locus_strips;

/* Rows first .. first + rows - 1 and columns column .. column + columns - 1 of a tile. delta_00
 * is the distance of its first pair. */
typedef struct locus_band {
    int64_t first, rows, column, columns, delta_00;
    int last; /* the tile is the last of its rows */
} locus_band;
locus_band locus_band_at(const locus_tile *tile, int64_t number); /* all columns */
static inline locus_band locus_whole_band(const locus_tile *tile)
{
    return (locus_band){0, tile->rows, 0, tile->columns, tile->delta_00, tile->last};
}
static inline int64_t locus_bands(const locus_tile *tile)
{
    return locus_ceil_div(tile->rows, BAND_ROWS);
}

/* Floats for one row of a strip over rows x keys pairs, and for all strips of a tile. */
int64_t locus_strip_width(const locus_plan *plan, int64_t rows, int64_t keys);
int64_t locus_strips_floats(const locus_plan *plan, const locus_geometry *geometry);

/* Empty strips for the bands of a tile. */
void locus_strips_begin(const locus_head *head, float *data, locus_strips *strips);

/* Make the strip hold A_i . (table entry) for the stretch of the band, whose rows of A come
 * first, `row` apart. A has `width` columns. `panels`: the packed table, or NULL. */
void locus_strip_products(const locus_head *head, const locus_band *band, const float *A,
                          int64_t row, const locus_tensor *table, const float *panels,
                          int64_t width, locus_strip *strip);

/* What the epilogue of a product adds to pair (i, j): data[i * row + j] + shift[i], where
 * data and shift may be NULL. */
typedef struct locus_slice {
    const float *data;
    int64_t row;
    const float *shift;
} locus_slice;

/* The part of a band from `column` on whose pairs are all of one kind: entries consecutive, or
 * one entry for all. Where they are mixed, one panel of columns. */
locus_band locus_block_at(const locus_head *head, const locus_band *band, int64_t column);

/* The strip of a block's band by pairs. Where entries are consecutive the strip is read as it lies: row i
 * one place before row i - 1. Where all is one entry, it is the shift of its row. Else it is
 * expanded by distance into worker->expanded, and then read like the first. */
locus_slice locus_strip_slice(const locus_head *head, const locus_band *band,
                              const locus_strip *strip);

/* The products of the tile's keys with the entries that they meet in it, a row for each entry:
 * strip.data[(entry - first) * width + key]. */
int64_t locus_key_strip_floats(const locus_plan *plan, const locus_geometry *geometry);
locus_strip locus_products_by_keys(const locus_head *head, const locus_tile *tile,
                                   const locus_tensor *table);
/* plus + scale k_j . entry(i, j) of a band, in worker->places. */
locus_slice locus_slice_by_keys(const locus_head *head, const locus_band *band,
                                const locus_strip *strip, locus_slice plus);

/* Where folded columns go: `count` columns, from entry `first` on, of tile rows
 * band->first .. */
typedef void (*locus_flush)(void *context, const locus_head *head, const locus_band *band,
                            const locus_strip *strip, int64_t count);

/* strip[i][entry(i, j)] += T[i][j], after flushing the columns below each band's stretch. `sums`
 * are those of the rows of T, or NULL. */
void locus_strips_fold(const locus_head *head, const locus_tile *tile, const float *T,
                       const float *sums, locus_strips *strips, locus_flush flush, void *context);
/* The same without the pairs that near.h takes. */
void locus_strips_fold_far(const locus_head *head, const locus_tile *tile, const float *T,
                           locus_strips *strips, locus_flush flush, void *context);
void locus_strips_flush(const locus_head *head, int64_t rows, locus_strips *strips,
                        locus_flush flush, void *context);

/* Multiply the row of every strip that belongs to tile row i. */
void locus_strips_scale(const locus_head *head, locus_strips *strips, int64_t i, float factor);

/* The gradients T of a tile's scores through a table on the key side, times the scale:
 *     to_keys[j] += sum_i T[i][j] entry(i, j)      to_entries[entry(i, j)] += T[i][j] k_j
 * either may be NULL. The patches need no scale: a pair that sees a non-finite entry has a
 * non-finite T. */
typedef struct locus_sums {
    float *data;
    int64_t row; /* stride */
} locus_sums;
void locus_spread_by_keys(const locus_head *head, const locus_tile *tile, const float *T,
                          const locus_block *keys, locus_sums to_keys, locus_sums to_entries);

/* to[r] += sum_c weight[r][c] entry_(first + c), over the entries that are finite; bad ones are
 * the business of locus_patch. */
typedef struct locus_weights {
    const float *data;
    int64_t row, column; /* strides */
    int64_t first;
} locus_weights;
void locus_add_entries(const locus_head *head, const locus_block *entries,
                       const locus_weights *weights, int64_t rows, int64_t count, float *to,
                       int64_t to_row, int64_t width);
static inline locus_weights locus_strip_weights(const locus_strip *strip)
{
    return (locus_weights){strip->data, strip->width, 1, strip->first};
}

/* The entries of a table as the operand of a patch; `bad` is found by locus_entries_begin. */
locus_block locus_entries(const locus_head *head, const locus_tensor *table, const uint8_t *bad);
void locus_entries_begin(const locus_head *head, const locus_tensor *table, int64_t width,
                         uint8_t *bad);

/* Pack a whole table, times the scale. */
void locus_entries_pack(const locus_head *head, const locus_tensor *table, int64_t width,
                        float scale, float *panels);

/* Pairs by their entry, for locus_patch. */
locus_pair_view locus_by_entry(const locus_head *head, const locus_tile *tile);

#endif
