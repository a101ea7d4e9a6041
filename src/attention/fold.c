/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/fold.h"

#include "attention/placed.h"

#include <string.h>

void locus_fold_begin(const head_context *head, float *room, locus_flush flush, void *context,
                      locus_fold *fold)
{
    fold->flush = flush;
    fold->context = context;
    locus_strips_begin(head, room, fold->strips);
}

/* Vectors of distances begin at multiples of LOCUS_LANES, wherever the rows of a tile or the
 * distances of a plan do: the sum of a row depends on neither. `ascending` is minus a distance. */
static int64_t vector_start(int64_t ascending)
{
    const int64_t down = ascending >= 0 ? ascending : ascending - (LOCUS_LANES - 1);
    return down / LOCUS_LANES * LOCUS_LANES;
}

/* Hand on the columns below entry `first`, keep the rest, and have zeros up to `end`. */
static void advance(const head_context *head, const locus_band *band, const locus_fold *fold,
                    locus_strip *strip, int64_t first, int64_t end)
{
    const int64_t done = min_i64(min_i64(first, strip->end), head->plan->row_count);
    if (done > strip->first) fold->flush(fold->context, head, band, strip, done - strip->first);
    locus_strip_roll(head->plan->kernels, strip, first, band->rows);
    for (int64_t r = 0; end > strip->end && r < band->rows; r++)
        memset(strip->data + r * strip->row_stride + (strip->end - first), 0,
               (size_t)(end - strip->end) * sizeof *strip->data);
    strip->end = max_i64(strip->end, end);
}

/* The pairs of a band whose distances have numbers z in [from, to); at most one of the two cuts the
 * band, and between vectors of distances. The strip holds their entries. */
static void fold_pairs(const head_context *head, const locus_band *band, const float *T,
                       int64_t from, int64_t to, const locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    const int64_t z_00 = locus_z_of(plan, band->delta_00), z_low = z_00 - (band->rows - 1);
    const int64_t high = min_i64(to, z_00 + band->columns);
    const int64_t at = plan->call.most + vector_start(z_low - plan->call.most);
    const locus_fold_tile fold = {.y = strip->data,
                                  .y_stride = strip->row_stride,
                                  .first = (int32_t)strip->first,
                                  .index = plan->index + at,
                                  .x = T + band->first * head->geometry->stride,
                                  .x_stride = head->geometry->stride,
                                  .rows = band->rows,
                                  .width = band->columns,
                                  .start = z_00 - at,
                                  .skip_from = from > z_low ? INT64_MIN : high - at,
                                  .skip_to = from > z_low ? from - at : INT64_MAX};
    plan->kernels->fold(&fold);
}

static void fold_range(const head_context *head, const locus_band *band, const float *T,
                       int64_t from, int64_t to, const locus_fold *fold, locus_strip *strip)
{
    const int32_t *index = head->plan->index;
    const int64_t z_00 = locus_z_of(head->plan, band->delta_00);
    const int64_t low = max_i64(from, z_00 - (band->rows - 1));
    const int64_t high = min_i64(to, z_00 + band->columns);
    if (low >= high) return;
    advance(head, band, fold, strip, index[low], index[high - 1] + 1);
    fold_pairs(head, band, T, from, to, strip);
}

/* A row that uses one entry with all columns needs its sum alone. Such rows are the first ones,
 * whose columns lie far behind, and the last, whose columns lie far before. Returns the others. */
static locus_band fold_row_sums(const locus_band *band, const float *sums, const locus_strip *strip)
{
    const int32_t *first = band->origin, *last = band->origin + band->columns - 1;
    int64_t from = 0, to = band->rows;
    for (; from < to && first[-from] == last[-from]; from++)
        strip->data[from * strip->row_stride + first[-from] - strip->first] += sums[from];
    for (; to > from && first[1 - to] == last[1 - to]; to--)
        strip->data[(to - 1) * strip->row_stride + first[1 - to] - strip->first] += sums[to - 1];
    locus_band rest = *band;
    rest.first += from;
    rest.delta_00 += from;
    rest.rows = to - from;
    return rest;
}

static void fold_band(const head_context *head, const locus_band *band, const float *T,
                      const float *sums, const locus_fold *fold, locus_strip *strip)
{
    advance(head, band, fold, strip, band->low, band->high + 1);
    const locus_band rest = sums != NULL ? fold_row_sums(band, sums, strip) : *band;
    locus_strip rows = *strip;
    rows.data += (rest.first - band->first) * strip->row_stride;
    if (rest.rows > 0) fold_pairs(head, &rest, T, INT64_MIN, INT64_MAX, &rows);
}

static void fold_one_by_one(const head_context *head, const locus_band *band, const float *T,
                            const locus_fold *fold, locus_strip *strip)
{
    const int64_t stride = head->geometry->stride;
    const float *from = T + band->first * stride;
    advance(head, band, fold, strip, band->low, band->high + 1);
    for (int64_t i = 0; i < band->rows; i++)
        for (int64_t j = 0; j < band->columns; j++)
            strip->data[i * strip->row_stride + band->origin[j - i] - strip->first] +=
                from[i * stride + j];
}

void locus_fold_begin_entries(const head_context *head, const locus_tile *tile, locus_fold *fold)
{
    const int64_t columns = max_i64(head->plan->row_count, head->plan->table_span);
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        locus_strip *strip = &fold->strips[b];
        if (strip->end > 0) continue;
        strip->end = columns;
        for (int64_t r = 0; r < BAND_ROWS; r++)
            memset(strip->data + r * strip->row_stride, 0, (size_t)columns * sizeof *strip->data);
    }
}

static void fold_placed(const head_context *head, const locus_tile *tile, const float *T,
                        locus_fold *fold)
{
    locus_fold_begin_entries(head, tile, fold);
    for (int64_t i = 0; i < tile->rows; i++)
        locus_placed_fold(head, tile, i, T + i * head->geometry->stride, fold->strips);
}

void locus_fold_tile_weights(const head_context *head, const locus_tile *tile, const float *T,
                             const float *sums, locus_fold *fold)
{
    if (head->plan->place_axes > 0) {
        fold_placed(head, tile, T, fold);
        return;
    }
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(head->plan, tile, b);
        if (head->plan->table_steps)
            fold_band(head, &band, T, sums != NULL ? sums + band.first : NULL, fold,
                      &fold->strips[b]);
        else
            fold_one_by_one(head, &band, T, fold, &fold->strips[b]);
    }
}

void locus_fold_outside_run(const head_context *head, const locus_tile *tile, const float *T,
                            locus_fold *fold)
{
    const locus_plan *plan = head->plan;
    if (plan->run_from == plan->run_to) {
        locus_fold_tile_weights(head, tile, T, NULL, fold);
        return;
    }
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(plan, tile, b);
        locus_strip *strip = &fold->strips[b];
        if (plan->run_from > 0) fold_range(head, &band, T, INT64_MIN, plan->run_from, fold, strip);
        if (plan->run_to < plan->span)
            fold_range(head, &band, T, plan->run_to, INT64_MAX, fold, strip);
    }
}

void locus_fold_end(const head_context *head, int64_t rows, locus_fold *fold)
{
    for (int64_t first = 0; first < rows; first += BAND_ROWS) {
        locus_strip *strip = &fold->strips[first / BAND_ROWS];
        const locus_band band = {.first = first, .rows = min_i64(BAND_ROWS, rows - first)};
        const int64_t end = min_i64(strip->end, head->plan->row_count);
        if (head->plan->place_axes > 0 && end > 0)
            locus_placed_gather(head->plan, strip, band.rows);
        if (end > strip->first) fold->flush(fold->context, head, &band, strip, end - strip->first);
        strip->first = strip->end = 0;
    }
}
