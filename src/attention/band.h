/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_BAND_H
#define LOCUS_ATTENTION_BAND_H

/* Bands and segments: parts of a tile, and the entries of a relative table that their pairs use.
 *
 * The pair (i, j) uses entry index[j - i], ascending with j and descending with i, so the entries
 * of a tile are a range, and the ranges of successive key tiles move upwards and overlap. Tiles
 * with many rows are cut into bands, because the range grows with the rows; bands are cut into
 * segments of columns whose pairs are all of one kind: consecutive entries, one single entry
 * (beyond a clip), or a mixture. */

#include "attention/tile.h"

enum { MAX_BANDS = MAX_TILE_ROWS / BAND_ROWS };

typedef struct locus_band {
    int64_t first, rows;     /* rows of the tile               */
    int64_t column, columns; /* and its columns                */
    int64_t delta_00;        /* distance of the first pair     */
    int last;                /* the tile is the last of its rows */
    /* entries low .. high; origin[j - i] is that of pair (i, j). Of schemes with tables. */
    int64_t low, high;
    const int32_t *origin;
} locus_band;

static inline int64_t locus_bands(const locus_tile *tile)
{
    return ceil_div(tile->rows, BAND_ROWS);
}
/* All columns of the rows of band `number`, or of all rows. */
locus_band locus_band_at(const locus_plan *plan, const locus_tile *tile, int64_t number);
locus_band locus_whole_tile(const locus_plan *plan, const locus_tile *tile);

/* The segment of a band from `column` on: as many panels as are of one kind; of a mixture, one. */
locus_band locus_segment_at(const locus_plan *plan, const locus_band *band, int64_t column);

static inline int locus_has_one_entry(const locus_band *part)
{
    return part->origin[part->columns - 1] == part->origin[1 - part->rows];
}
static inline int locus_is_consecutive(const locus_plan *plan, const locus_band *part)
{
    const int64_t distances = part->rows + part->columns - 1;
    return plan->table_steps &&
           part->origin[part->columns - 1] - part->origin[1 - part->rows] == distances - 1;
}

#endif
