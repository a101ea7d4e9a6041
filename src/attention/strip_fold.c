/* SPDX-License-Identifier: Apache-2.0 */
/* Folds: weights go to the entries of their distances, see relative.h. */

#include <string.h>

#include "attention/relative.h"
#include "attention/stretch.h"

/* Hand on the columns below entry `first`, keep the rest, and have zeros up to `end`. */
static void advance(const locus_head *head, const locus_band *band, locus_strip *strip,
                    int64_t first, int64_t end, locus_flush flush, void *context)
{
    const int64_t done = locus_least(locus_least(first, strip->end), head->plan->row_count);
    if (done > strip->first) flush(context, head, band, strip, done - strip->first);
    locus_strip_roll(head->plan->kernels, strip, first, band->rows);
    for (int64_t r = 0; end > strip->end && r < band->rows; r++)
        memset(strip->data + r * strip->width + (strip->end - first), 0,
               (size_t)(end - strip->end) * sizeof *strip->data);
    strip->end = locus_most(strip->end, end);
}

/* The pairs of a band whose distances have numbers z in [from, to); at most one of the two cuts the
 * band, and between vectors of distances. The strip holds their entries. */
static void fold_pairs(const locus_head *head, const locus_band *band, const float *T, int64_t from,
                       int64_t to, const locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    const int64_t z_00 = plan->call.most - band->delta_00, z_low = z_00 - (band->rows - 1);
    const int64_t high = locus_least(to, z_00 + band->columns);
    const int64_t at = plan->call.most + locus_vector_start(z_low - plan->call.most);
    const locus_fold_tile fold = {.y = strip->data,
                                  .y_row = strip->width,
                                  .first = (int32_t)strip->first,
                                  .index = plan->index + at,
                                  .x = T + band->first * head->geometry->stride,
                                  .x_row = head->geometry->stride,
                                  .rows = band->rows,
                                  .width = band->columns,
                                  .start = z_00 - at,
                                  .skip_from = from > z_low ? INT64_MIN : high - at,
                                  .skip_to = from > z_low ? from - at : INT64_MAX};
    plan->kernels->fold(&fold);
}

static void fold_range(const locus_head *head, const locus_band *band, const float *T, int64_t from,
                       int64_t to, locus_strip *strip, locus_flush flush, void *context)
{
    const int32_t *index = head->plan->index;
    const int64_t z_00 = head->plan->call.most - band->delta_00;
    const int64_t low = locus_most(from, z_00 - (band->rows - 1));
    const int64_t high = locus_least(to, z_00 + band->columns);
    if (low >= high) return;
    advance(head, band, strip, index[low], index[high - 1] + 1, flush, context);
    fold_pairs(head, band, T, from, to, strip);
}

/* A row that meets one entry with all columns needs its sum alone. Such rows are the first ones,
 * whose columns lie far behind, and the last, whose columns lie far before. */
static void fold_band(const locus_head *head, const locus_band *band, const float *T,
                      const float *sums, locus_strip *strip, locus_flush flush, void *context)
{
    const locus_stretch s = locus_band_stretch(head->plan, band);
    locus_band rest = *band;
    advance(head, band, strip, s.low, s.high + 1, flush, context);
    if (sums != NULL) {
        const int32_t *first = s.origin, *last = s.origin + band->columns - 1;
        int64_t from = 0, to = band->rows;
        for (; from < to && first[-from] == last[-from]; from++)
            strip->data[from * strip->width + first[-from] - strip->first] += sums[from];
        for (; to > from && first[1 - to] == last[1 - to]; to--)
            strip->data[(to - 1) * strip->width + first[1 - to] - strip->first] += sums[to - 1];
        rest.first += from;
        rest.delta_00 += from;
        rest.rows = to - from;
    }
    locus_strip rows = *strip;
    rows.data += (rest.first - band->first) * strip->width;
    if (rest.rows > 0) fold_pairs(head, &rest, T, INT64_MIN, INT64_MAX, &rows);
}

static void fold_one_by_one(const locus_head *head, const locus_band *band, const float *T,
                            locus_strip *strip, locus_flush flush, void *context)
{
    const locus_stretch s = locus_band_stretch(head->plan, band);
    const int64_t stride = head->geometry->stride;
    const float *from = T + band->first * stride;
    advance(head, band, strip, s.low, s.high + 1, flush, context);
    for (int64_t i = 0; i < band->rows; i++)
        for (int64_t j = 0; j < band->columns; j++)
            strip->data[i * strip->width + s.origin[j - i] - strip->first] += from[i * stride + j];
}

void locus_strips_fold(const locus_head *head, const locus_tile *tile, const float *T,
                       const float *sums, locus_strips *strips, locus_flush flush, void *context)
{
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(tile, b);
        if (head->plan->table_steps)
            fold_band(head, &band, T, sums != NULL ? sums + band.first : NULL, &strips->band[b],
                      flush, context);
        else
            fold_one_by_one(head, &band, T, &strips->band[b], flush, context);
    }
}

void locus_strips_fold_far(const locus_head *head, const locus_tile *tile, const float *T,
                           locus_strips *strips, locus_flush flush, void *context)
{
    const locus_plan *plan = head->plan;
    if (plan->near_from == plan->near_to) {
        locus_strips_fold(head, tile, T, NULL, strips, flush, context);
        return;
    }
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(tile, b);
        if (plan->near_from > 0)
            fold_range(head, &band, T, INT64_MIN, plan->near_from, &strips->band[b], flush,
                       context);
        if (plan->near_to < plan->span)
            fold_range(head, &band, T, plan->near_to, INT64_MAX, &strips->band[b], flush, context);
    }
}

void locus_strips_flush(const locus_head *head, int64_t rows, locus_strips *strips,
                        locus_flush flush, void *context)
{
    for (int64_t first = 0; first < rows; first += BAND_ROWS) {
        locus_strip *strip = &strips->band[first / BAND_ROWS];
        const locus_band band = {first, locus_least(BAND_ROWS, rows - first), 0, 0, 0, 1};
        const int64_t end = locus_least(strip->end, head->plan->row_count);
        if (end > strip->first) flush(context, head, &band, strip, end - strip->first);
        strip->first = strip->end = 0;
    }
}

void locus_strips_scale(const locus_head *head, locus_strips *strips, int64_t i, float factor)
{
    const locus_strip *strip = &strips->band[i / BAND_ROWS];
    float *row = strip->data + i % BAND_ROWS * strip->width;
    head->plan->kernels->scale(row, row, factor, strip->end - strip->first);
}
