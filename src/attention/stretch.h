/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_STRETCH_H
#define LOCUS_ATTENTION_STRETCH_H

/* Which entries of a relative table meet in a block of pairs. */

#include "attention/relative.h"

/* Entries low .. high; origin[j - i] is the entry of pair (i, j). */
typedef struct locus_stretch {
    int64_t low, high;
    const int32_t *origin;
} locus_stretch;

/* z = most - delta, and delta of pair (i, j) is delta_00 + i - j. */
static inline locus_stretch locus_stretch_of(const locus_plan *plan, int64_t delta_00, int64_t rows,
                                             int64_t columns)
{
    const int64_t z_00 = plan->call.most - delta_00, last = plan->span - 1;
    const int64_t z_low = locus_least(locus_most(z_00 - (rows - 1), 0), last);
    const int64_t z_high = locus_least(locus_most(z_00 + columns - 1, 0), last);
    return (locus_stretch){plan->index[z_low], plan->index[z_high], plan->index + z_00};
}
static inline locus_stretch locus_band_stretch(const locus_plan *plan, const locus_band *band)
{
    return locus_stretch_of(plan, band->delta_00, band->rows, band->columns);
}

/* All entries of the block are one. */
static inline int locus_is_far(const locus_plan *plan, const locus_band *block)
{
    const locus_stretch s = locus_band_stretch(plan, block);
    return s.origin[block->columns - 1] == s.origin[1 - block->rows];
}

static inline int64_t locus_panel_start(int64_t entry) { return entry / LOCUS_PANEL * LOCUS_PANEL; }

/* Vectors of distances begin at multiples of LOCUS_LANES, wherever the rows of a tile or the
 * distances of a plan do: the sum of a row depends on neither. `ascending` is minus a distance. */
static inline int64_t locus_vector_start(int64_t ascending)
{
    const int64_t down = ascending >= 0 ? ascending : ascending - (LOCUS_LANES - 1);
    return down / LOCUS_LANES * LOCUS_LANES;
}

/* What is multiplied by the entries of a table. Of row r, entries from[r] .. to[r] - 1 are met, both
 * ascending with r. */
typedef struct locus_operand {
    const float *A;
    int64_t row, rows, width;
    const locus_tensor *table;
    const float *panels; /* the packed table; NULL: packed here */
    const int32_t *from, *to;
} locus_operand;

/* Move the columns from entry `first` on to the front. */
void locus_strip_roll(const locus_kernels *kernels, locus_strip *strip, int64_t first,
                      int64_t rows);

/* Add columns to the strip until it holds entry `high`, as far as rows meet them. */
void locus_strip_extend(const locus_head *head, const locus_operand *operand, int64_t high,
                        locus_strip *strip);

#endif
