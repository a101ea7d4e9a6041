/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/strip.h"

/* Floats of one row of a strip. */
static int64_t strip_stride(const locus_plan *plan, int64_t keys)
{
    if (locus_meets_every_entry(plan)) /* every entry, or every z */
        return ceil_div(max_i64(plan->row_count, plan->table_span), LOCUS_PANEL) * LOCUS_PANEL +
               2 * LOCUS_PANEL;
    const int64_t all = ceil_div(plan->row_count, LOCUS_PANEL) * LOCUS_PANEL;
    const int64_t range = ceil_div(BAND_ROWS + keys, LOCUS_PANEL) * LOCUS_PANEL;
    return min_i64(all, plan->table_steps ? range : all) + 2 * LOCUS_PANEL;
}

int64_t locus_strips_floats(const locus_plan *plan, const locus_geometry *geometry)
{
    if (plan->index == NULL) return 0;
    const int64_t bands = ceil_div(geometry->rows, BAND_ROWS);
    return bands * BAND_ROWS * strip_stride(plan, geometry->keys);
}

void locus_strips_begin(const head_context *head, float *data, locus_strip strips[MAX_BANDS])
{
    if (head->plan->index == NULL) return;
    const locus_geometry *g = head->geometry;
    const int64_t stride = strip_stride(head->plan, g->keys);
    for (int64_t b = 0; b < ceil_div(g->rows, BAND_ROWS); b++)
        strips[b] = (locus_strip){data + b * BAND_ROWS * stride, stride, 0, 0};
}

void locus_strip_roll(const locus_kernels *kernels, locus_strip *strip, int64_t first, int64_t rows)
{
    const int64_t kept = strip->end - first, shift = first - strip->first;
    if (kept <= 0 || shift < 0)
        strip->end = first;
    else if (shift > 0)
        kernels->slide(strip->data, strip->row_stride, rows, shift, kept);
    strip->first = first;
}

int64_t locus_strip_missing(const locus_plan *plan, const locus_strip *strip, int64_t high)
{
    if (strip->end > high) return 0;
    const int64_t wanted = locus_panel_start(high - strip->end) + LOCUS_PANEL;
    return min_i64(min_i64(wanted, MAX_TILE_KEYS), plan->row_count - strip->end);
}

void locus_strip_grow(locus_strip *strip, int64_t count)
{
    strip->end += ceil_div(count, LOCUS_PANEL) * LOCUS_PANEL;
}

/* room[i][rows - 1 + j - i] = strip[i][entry(i, j)] */
static void expand(const locus_plan *plan, const locus_band *segment, const locus_strip *strip,
                   float *room)
{
    const int64_t distances = segment->rows + segment->columns - 1, before = segment->rows - 1;
    const int32_t *index = segment->origin - before;
    if (plan->table_steps) {
        plan->kernels->expand(room, EXPANDED_STRIDE, strip->data, strip->row_stride,
                              (int32_t)strip->first, index, segment->rows, distances);
        return;
    }
    for (int64_t i = 0; i < segment->rows; i++)
        for (int64_t y = 0; y < distances; y++)
            room[i * EXPANDED_STRIDE + y] =
                strip->data[i * strip->row_stride + index[y] - strip->first];
}

void locus_strip_add(const locus_plan *plan, const locus_band *segment, const locus_strip *strip,
                     float *room, locus_product_tile *product)
{
    if (locus_has_one_entry(segment)) {
        float *shift = room + LOCUS_STRIP_ROOM - BAND_ROWS;
        for (int64_t i = 0; i < segment->rows; i++)
            shift[i] = strip->data[i * strip->row_stride + (segment->low - strip->first)];
        product->shift = shift;
        return;
    }
    if (locus_is_consecutive(plan, segment)) {
        product->plus = strip->data + (segment->origin[0] - strip->first);
        product->plus_stride = strip->row_stride - 1;
        return;
    }
    expand(plan, segment, strip, room);
    product->plus = room + segment->rows - 1;
    product->plus_stride = EXPANDED_STRIDE - 1;
}

void locus_strips_scale(const head_context *head, const locus_strip *strips, int64_t i,
                        float factor)
{
    const locus_strip *strip = &strips[i / BAND_ROWS];
    float *row = strip->data + i % BAND_ROWS * strip->row_stride;
    head->plan->kernels->scale(row, row, factor, strip->end - strip->first);
}
