/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/band.h"

/* The entries of its distances; z = most - delta, and delta of pair (i, j) is delta_00 + i - j. */
static void find_entries(const locus_plan *plan, locus_band *part)
{
    if (plan->index == NULL || locus_meets_every_entry(plan)) return;
    const int64_t z_00 = locus_z_of(plan, part->delta_00), last = plan->span - 1;
    const int64_t z_low = min_i64(max_i64(z_00 - (part->rows - 1), 0), last);
    const int64_t z_high = min_i64(max_i64(z_00 + part->columns - 1, 0), last);
    part->low = plan->index[z_low];
    part->high = plan->index[z_high];
    part->origin = plan->index + z_00;
}

static locus_band part_of(const locus_plan *plan, const locus_tile *tile, int64_t first,
                          int64_t rows)
{
    locus_band band = {.first = first,
                       .rows = rows,
                       .columns = tile->columns,
                       .delta_00 = tile->delta_00 + first,
                       .last = tile->last};
    find_entries(plan, &band);
    return band;
}

locus_band locus_band_at(const locus_plan *plan, const locus_tile *tile, int64_t number)
{
    const int64_t first = number * BAND_ROWS;
    return part_of(plan, tile, first, min_i64(BAND_ROWS, tile->rows - first));
}

locus_band locus_whole_tile(const locus_plan *plan, const locus_tile *tile)
{
    return part_of(plan, tile, 0, tile->rows);
}

locus_band locus_segment_at(const locus_plan *plan, const locus_band *band, int64_t column)
{
    const int64_t end = band->columns;
    locus_band segment = *band;
    segment.column = column;
    segment.delta_00 -= column;
    segment.columns = min_i64(LOCUS_PANEL, end - column);
    find_entries(plan, &segment);
    const int one_entry = locus_has_one_entry(&segment);
    for (locus_band more = segment;
         one_entry ? locus_has_one_entry(&more) : locus_is_consecutive(plan, &more);) {
        segment = more;
        if (column + segment.columns == end) break;
        more.columns = min_i64(segment.columns + LOCUS_PANEL, end - column);
        find_entries(plan, &more);
    }
    return segment;
}
