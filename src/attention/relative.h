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
 * Beyond a clip the stretch is one entry, and costs nothing. */

#include "attention/tile.h"

/* Columns are entries first .. end - 1; first is a multiple of LOCUS_PANEL. */
typedef struct locus_strip {
    float *data; /* [rows][locus_strip_width] */
    int64_t first, end;
} locus_strip;

/* Entries low .. high; origin[j - i] is the entry of pair (i, j). */
typedef struct locus_stretch {
    int64_t low, high;
    const int32_t *origin;
} locus_stretch;

/* Room for the columns of one strip. */
int64_t locus_strip_width(const locus_plan *plan, const locus_geometry *geometry);

locus_stretch locus_tile_stretch(const locus_head *head, const locus_tile *tile);

/* Make the strip hold factor A_r . (table entry) for the tile's stretch, r < rows. `strip`
 * starts as {data, 0, 0} and rolls with ascending stretches. */
void locus_strip_products(const locus_head *head, const locus_tile *tile, const float *A,
                          int64_t a_row, int64_t rows, const locus_tensor *table, int64_t width,
                          locus_strip *strip);

/* Where the product's epilogue can read the strip itself: its entries are consecutive over
 * the whole tile. NULL: they are not. */
const float *locus_strip_slice(const locus_head *head, const locus_tile *tile,
                               const locus_strip *strip);

/* T[i][j] += strip[i][entry(i, j)];  by columns: strip[j][entry(i, j)]. */
void locus_strip_read(const locus_head *head, const locus_tile *tile, const locus_strip *strip,
                      float *T);
void locus_strip_read_columns(const locus_head *head, const locus_tile *tile,
                              const locus_strip *strip, float *T);

/* Where folded columns go: `count` columns of `rows` rows from entry `first` on. */
typedef void (*locus_flush)(void *context, const locus_head *head, const float *columns,
                            int64_t row_stride, int64_t first, int64_t count);

/* strip[i][entry(i, j)] += T[i][j], after flushing the columns below the tile's stretch. */
void locus_strip_fold(const locus_head *head, const locus_tile *tile, const float *T,
                      locus_strip *strip, locus_flush flush, void *context);
void locus_strip_flush(const locus_head *head, locus_strip *strip, locus_flush flush,
                       void *context);

/* strip[j][entry(i, j)] = sum of T[i][j], over the tile's stretch alone. */
void locus_strip_fold_columns(const locus_head *head, const locus_tile *tile, const float *T,
                              locus_strip *strip);

/* to[r] += factor sum_c columns[r][c] entry_(first + c), over the entries that are finite;
 * bad ones are the business of locus_patch. */
void locus_add_entries(const locus_head *head, const locus_block *entries, const float *columns,
                       int64_t row_stride, int64_t rows, int64_t first, int64_t count, float *to,
                       int64_t width);

/* The entries of a table as the operand of a patch; `bad` is found by locus_entries_begin. */
locus_block locus_entries(const locus_head *head, const locus_tensor *table, const uint8_t *bad);
void locus_entries_begin(const locus_head *head, const locus_tensor *table, int64_t width,
                         uint8_t *bad);

/* Pairs by their entry, for locus_patch. */
locus_pair_view locus_by_entry(const locus_head *head, const locus_tile *tile);

#endif
