/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_STRIP_H
#define LOCUS_ATTENTION_STRIP_H

/* Strips: the products of a band's rows with a range of table entries.
 *
 *        entries →   low ........ high
 *     row i of a     [ products of row i with the entries ]      rolls along with the keys:
 *     strip               ↑ index[0 - i] .. index[columns-1 - i]  only new entries are computed
 *
 * Reading a score from a strip is a look-up; adding a weight to one is a fold (fold.h). Beyond a
 * clip the range is one entry, and costs nothing. */

#include "attention/band.h"

/* Columns are entries first .. end - 1. */
typedef struct locus_strip {
    float *data;
    int64_t row_stride;
    int64_t first, end;
} locus_strip;

/* Floats for the strips of all bands of a tile; and empty strips in that room. */
int64_t locus_strips_floats(const locus_plan *plan, const locus_geometry *geometry);
void locus_strips_begin(const head_context *head, float *data, locus_strip strips[MAX_BANDS]);

static inline int64_t locus_panel_start(int64_t entry) { return entry / LOCUS_PANEL * LOCUS_PANEL; }

/* Let the strip begin with entry `first`: the columns that it holds from there on move to the
 * front. */
void locus_strip_roll(const locus_kernels *kernels, locus_strip *strip, int64_t first,
                      int64_t rows);

/* How many entries are to be computed next, behind the last of the strip, until it holds entry
 * `high`; 0: none. And that they were. */
int64_t locus_strip_missing(const locus_plan *plan, const locus_strip *strip, int64_t high);
void locus_strip_grow(locus_strip *strip, int64_t count);

/* Let the product of a segment add the strip: where entries are consecutive it is read in place,
 * each row one float before the row above; one single entry is the shift of its row; a mixture is
 * expanded by distance in `room`, LOCUS_STRIP_ROOM floats. */
enum {
    EXPANDED_STRIDE = BAND_ROWS + LOCUS_PANEL + LOCUS_LANES,
    LOCUS_STRIP_ROOM = BAND_ROWS * EXPANDED_STRIDE + BAND_ROWS
};
void locus_strip_add(const locus_plan *plan, const locus_band *segment, const locus_strip *strip,
                     float *room, locus_product_tile *product);

/* Multiply row i of a tile in its strip. */
void locus_strips_scale(const head_context *head, const locus_strip *strips, int64_t i,
                        float factor);

#endif
