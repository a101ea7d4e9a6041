/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/relative.h"

#include <string.h>

#include "core/tensor.h"

/* Entries low .. high; origin[j - i] is the entry of pair (i, j). */
typedef struct stretch {
    int64_t low, high;
    const int32_t *origin;
} stretch;

/* z = most - delta, and delta of pair (i, j) is delta_00 + i - j. */
static stretch stretch_of(const locus_plan *plan, int64_t delta_00, int64_t rows, int64_t columns)
{
    const int64_t z_00 = plan->call.most - delta_00, last = plan->span - 1;
    const int64_t z_low = locus_least(locus_most(z_00 - (rows - 1), 0), last);
    const int64_t z_high = locus_least(locus_most(z_00 + columns - 1, 0), last);
    return (stretch){plan->index[z_low], plan->index[z_high], plan->index + z_00};
}

static stretch band_stretch(const locus_plan *plan, const locus_band *band)
{
    return stretch_of(plan, band->delta_00, band->rows, band->columns);
}

locus_band locus_band_at(const locus_tile *tile, int64_t number)
{
    const int64_t first = number * BAND_ROWS;
    return (locus_band){first, locus_least(BAND_ROWS, tile->rows - first), tile->columns,
                        tile->delta_00 + first};
}

/* ---- room ---- */

int64_t locus_strip_width(const locus_plan *plan, int64_t rows, int64_t keys)
{
    const int64_t all = locus_ceil_div(plan->row_count, LOCUS_PANEL) * LOCUS_PANEL;
    const int64_t near = locus_ceil_div(rows + keys, LOCUS_PANEL) * LOCUS_PANEL;
    return locus_least(all, plan->table_steps ? near : all) + 2 * LOCUS_PANEL;
}

int64_t locus_strips_floats(const locus_plan *plan, const locus_geometry *geometry)
{
    const int64_t bands = locus_ceil_div(geometry->rows, BAND_ROWS);
    return bands * BAND_ROWS * locus_strip_width(plan, BAND_ROWS, geometry->keys);
}

void locus_strips_begin(const locus_head *head, float *data, locus_strips *strips)
{
    const locus_geometry *g = head->geometry;
    const int64_t width =
        head->plan->index != NULL ? locus_strip_width(head->plan, BAND_ROWS, g->keys) : 0;
    for (int64_t b = 0; b < locus_ceil_div(g->rows, BAND_ROWS); b++)
        strips->band[b] = (locus_strip){data + b * BAND_ROWS * width, width, 0, 0};
}

locus_strip locus_key_strip(const locus_head *head, float *data)
{
    const locus_geometry *g = head->geometry;
    return (locus_strip){data, locus_strip_width(head->plan, g->rows, g->keys), 0, 0};
}

/* ---- products ---- */

/* Move the columns from entry `first` on to the front. */
static void roll(locus_strip *strip, int64_t first, int64_t rows)
{
    const int64_t kept = strip->end - first, shift = first - strip->first;
    if (kept <= 0 || shift < 0) {
        strip->end = first;
    } else if (shift > 0) {
        for (int64_t r = 0; r < rows; r++)
            memmove(strip->data + r * strip->width, strip->data + r * strip->width + shift,
                    (size_t)kept * sizeof *strip->data);
    }
    strip->first = first;
}

static int64_t panel_start(int64_t entry) { return entry / LOCUS_PANEL * LOCUS_PANEL; }

/* to[r][c] = factor A_r . entry c, for `count` entries from the pointer on: few rows read them
 * as they lie, more rows read them packed. Panels that are given carry the factor. */
static void entry_products(const locus_head *head, float *to, int64_t to_row, const float *A,
                           int64_t a_row, int64_t rows, const float *entries, int64_t stride,
                           const float *panels, float factor, int64_t count, int64_t width)
{
    const locus_kernels *kernels = head->plan->kernels;
    if (head->unpacked && rows < LOCUS_LANES) {
        kernels->dots(to, to_row, A, a_row, entries, stride, rows, width, count, NULL, 0);
        for (int64_t r = 0; factor != 1.0f && r < rows; r++)
            kernels->scale(to + r * to_row, to + r * to_row, factor, count);
        return;
    }
    if (panels == NULL) {
        kernels->pack(head->worker->entry_panels, entries, stride, count, width);
        if (factor != 1.0f)
            kernels->scale(head->worker->entry_panels, head->worker->entry_panels, factor,
                           locus_panel_floats(count, width));
        panels = head->worker->entry_panels;
    }
    const locus_product_tile product = {.c = to,
                                        .c_row = to_row,
                                        .a = A,
                                        .a_row = a_row,
                                        .panels = panels,
                                        .rows = rows,
                                        .inner = width,
                                        .columns = count};
    kernels->product(&product);
}

/* Roll the strip to the stretch and compute the columns that are new. */
static void extend(const locus_head *head, stretch s, const float *A, int64_t a_row, int64_t rows,
                   const locus_tensor *table, const float *panels, float factor, int64_t width,
                   locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    int64_t stride;
    const float *entries = locus_table_entries(plan, table, head->h, &stride);
    roll(strip, panel_start(s.low), rows);
    while (strip->end <= s.high) {
        const int64_t wanted = panel_start(s.high - strip->end) + LOCUS_PANEL;
        const int64_t count =
            locus_least(locus_least(wanted, MOST_KEYS), plan->row_count - strip->end);
        entry_products(head, strip->data + (strip->end - strip->first), strip->width, A, a_row,
                       rows, entries + strip->end * stride, stride,
                       panels != NULL ? panels + locus_panel_at(strip->end, width) : NULL, factor,
                       count, width);
        strip->end += locus_ceil_div(count, LOCUS_PANEL) * LOCUS_PANEL;
    }
}

void locus_strips_products(const locus_head *head, const locus_tile *tile, const float *A,
                           const locus_tensor *table, const float *panels, int64_t width,
                           locus_strips *strips)
{
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(tile, b);
        extend(head, band_stretch(head->plan, &band), A + band.first * width, width, band.rows,
               table, panels, 1.0f, width, &strips->band[b]);
    }
}

const float *locus_strip_slice(const locus_head *head, const locus_band *band,
                               const locus_strip *strip)
{
    const stretch s = band_stretch(head->plan, band);
    const int64_t distances = band->rows + band->columns - 1;
    if (!head->plan->table_steps ||
        s.origin[band->columns - 1] - s.origin[1 - band->rows] != distances - 1)
        return NULL;
    return strip->data + (s.origin[0] - strip->first);
}

void locus_strip_read(const locus_head *head, const locus_band *band, const locus_strip *strip,
                      float *T)
{
    const stretch s = band_stretch(head->plan, band);
    for (int64_t i = 0; i < band->rows; i++) {
        float *to = T + (band->first + i) * head->geometry->stride;
        const float *row = strip->data + i * strip->width;
        if (head->plan->table_steps)
            head->plan->kernels->lookup(to, row, (int32_t)strip->first, s.origin - i,
                                        band->columns);
        else
            for (int64_t j = 0; j < band->columns; j++)
                to[j] += row[s.origin[j - i] - strip->first];
    }
}

void locus_add_by_keys(const locus_head *head, const locus_tile *tile, const locus_tensor *table,
                       float *T)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *k = &head->in->k;
    const int64_t row = head->geometry->stride, D = plan->call.D;
    const stretch s = stretch_of(plan, tile->delta_00, tile->rows, tile->columns);
    locus_strip strip = locus_key_strip(head, head->worker->key_strip);
    extend(head, s, locus_f32(k, head->b, head->kv, tile->key), k->stride[2], tile->columns, table,
           head->worker->query_table_panels, (float)plan->call.scale, D, &strip);
    if (plan->table_steps) {
        plan->kernels->lookup_columns(T, row, strip.data, strip.width, (int32_t)strip.first,
                                      s.origin, tile->rows, tile->columns);
        return;
    }
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++)
            T[i * row + j] += strip.data[j * strip.width + s.origin[j - i] - strip.first];
}

/* ---- folds ---- */

/* Hand on the columns below entry `first`, keep the rest, and have zeros up to `end`. */
static void advance(const locus_head *head, const locus_band *band, locus_strip *strip,
                    int64_t first, int64_t end, locus_flush flush, void *context)
{
    const int64_t done = locus_least(locus_least(first, strip->end), head->plan->row_count);
    if (done > strip->first) flush(context, head, band, strip, done - strip->first);
    roll(strip, first, band->rows);
    for (int64_t r = 0; end > strip->end && r < band->rows; r++)
        memset(strip->data + r * strip->width + (strip->end - first), 0,
               (size_t)(end - strip->end) * sizeof *strip->data);
    strip->end = locus_most(strip->end, end);
}

static void fold_band(const locus_head *head, const locus_band *band, const float *T,
                      locus_strip *strip, locus_flush flush, void *context)
{
    const stretch s = band_stretch(head->plan, band);
    advance(head, band, strip, s.low, s.high + 1, flush, context);
    for (int64_t i = 0; i < band->rows; i++) {
        float *row = strip->data + i * strip->width;
        const float *from = T + (band->first + i) * head->geometry->stride;
        if (head->plan->table_steps)
            head->plan->kernels->fold(row, (int32_t)strip->first, s.origin - i, from,
                                      band->columns);
        else
            for (int64_t j = 0; j < band->columns; j++)
                row[s.origin[j - i] - strip->first] += from[j];
    }
}

void locus_strips_fold(const locus_head *head, const locus_tile *tile, const float *T,
                       locus_strips *strips, locus_flush flush, void *context)
{
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(tile, b);
        fold_band(head, &band, T, &strips->band[b], flush, context);
    }
}

void locus_strips_flush(const locus_head *head, int64_t rows, locus_strips *strips,
                        locus_flush flush, void *context)
{
    for (int64_t first = 0; first < rows; first += BAND_ROWS) {
        locus_strip *strip = &strips->band[first / BAND_ROWS];
        const locus_band band = {first, locus_least(BAND_ROWS, rows - first), 0, 0};
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

/* Keys as rows, LOCUS_LANES of them at a time, and queries backwards, so that entries ascend:
 * flipped[k][r] = T[rows - 1 - r][j + k]. */
static void fold_flipped(const locus_head *head, const locus_tile *tile, const float *T,
                         const stretch *s, const locus_strip *strip)
{
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t stride = head->geometry->stride, last = tile->rows - 1;
    const int64_t flipped_row = head->geometry->rows + LOCUS_LANES;
    float *flipped = head->worker->flipped;
    for (int64_t j = 0; j < tile->columns; j += LOCUS_LANES) {
        const int64_t count = locus_least(LOCUS_LANES, tile->columns - j);
        kernels->transpose(flipped, flipped_row, T + last * stride + j, -stride, tile->rows, count);
        for (int64_t k = 0; k < count; k++)
            kernels->fold(strip->data + (j + k) * strip->width, (int32_t)strip->first,
                          s->origin + j + k - last, flipped + k * flipped_row, tile->rows);
    }
}

locus_strip locus_fold_by_keys(const locus_head *head, const locus_tile *tile, const float *T,
                               float factor)
{
    const stretch s = stretch_of(head->plan, tile->delta_00, tile->rows, tile->columns);
    locus_strip strip = locus_key_strip(head, head->worker->key_strip);
    strip.first = s.low;
    strip.end = s.high + 1;
    for (int64_t j = 0; j < tile->columns; j++)
        memset(strip.data + j * strip.width, 0,
               (size_t)(strip.end - strip.first) * sizeof *strip.data);
    if (head->plan->table_steps)
        fold_flipped(head, tile, T, &s, &strip);
    else
        for (int64_t i = 0; i < tile->rows; i++)
            for (int64_t j = 0; j < tile->columns; j++)
                strip.data[j * strip.width + s.origin[j - i] - strip.first] +=
                    T[i * head->geometry->stride + j];
    for (int64_t j = 0; j < tile->columns; j++) {
        float *row = strip.data + j * strip.width;
        head->plan->kernels->scale(row, row, factor, strip.end - strip.first);
    }
    return strip;
}

/* ---- entries as operands ---- */

void locus_entries_begin(const locus_head *head, const locus_tensor *table, int64_t width,
                         uint8_t *bad)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->bad_rows(bad, entries, stride, head->plan->row_count, width);
}

void locus_entries_pack(const locus_head *head, const locus_tensor *table, int64_t width,
                        float factor, float *panels)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->pack(panels, entries, stride, head->plan->row_count, width);
    if (factor != 1.0f)
        head->plan->kernels->scale(panels, panels, factor,
                                   locus_panel_floats(head->plan->row_count, width));
}

locus_block locus_entries(const locus_head *head, const locus_tensor *table, const uint8_t *bad)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    locus_block block = {entries, entries, stride, stride, bad, 0};
    block.any_bad = memchr(bad, 1, (size_t)head->plan->row_count) != NULL;
    return block;
}

void locus_add_entries(const locus_head *head, const locus_block *entries, const locus_strip *strip,
                       int64_t rows, int64_t count, float *to, int64_t to_row, int64_t width)
{
    for (int64_t c = 0; c < count;) {
        int64_t end = count; /* of the finite entries from c on */
        if (entries->any_bad)
            for (end = c; end < count && !entries->bad[strip->first + end];) end++;
        if (end > c)
            head->plan->kernels->gemm(to, to_row, strip->data + c, strip->width, 1,
                                      entries->raw + (strip->first + c) * entries->raw_row,
                                      entries->raw_row, rows, end - c, width, 1);
        c = end + 1;
    }
}

locus_pair_view locus_by_entry(const locus_head *head, const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    return (locus_pair_view){0, -1, 1, plan->index + plan->call.most - tile->delta_00};
}
