/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/relative.h"

#include <string.h>

#include "core/tensor.h"

int64_t locus_strip_width(const locus_plan *plan, const locus_geometry *geometry)
{
    const int64_t all = locus_ceil_div(plan->row_count, LOCUS_PANEL) * LOCUS_PANEL;
    return locus_least(all, plan->table_steps ? geometry->window : all) + 2 * LOCUS_PANEL;
}

/* z = most - delta, and delta of pair (i, j) is delta_00 + i - j. */
locus_stretch locus_tile_stretch(const locus_head *head, const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    const int64_t z_00 = plan->call.most - tile->delta_00;
    const int64_t last = plan->span - 1;
    const int64_t z_low = locus_least(locus_most(z_00 - (tile->rows - 1), 0), last);
    const int64_t z_high = locus_least(locus_most(z_00 + tile->columns - 1, 0), last);
    return (locus_stretch){plan->index[z_low], plan->index[z_high], plan->index + z_00};
}

/* Move the columns from entry `first` on to the front. */
static void roll(const locus_head *head, locus_strip *strip, int64_t first, int64_t rows)
{
    const int64_t width = locus_strip_width(head->plan, head->geometry);
    const int64_t kept = strip->end - first, shift = first - strip->first;
    if (kept <= 0 || shift < 0) {
        strip->end = first;
    } else if (shift > 0) {
        for (int64_t r = 0; r < rows; r++)
            memmove(strip->data + r * width, strip->data + r * width + shift,
                    (size_t)kept * sizeof *strip->data);
    }
    strip->first = first;
}

static int64_t panel_start(int64_t entry) { return entry / LOCUS_PANEL * LOCUS_PANEL; }

void locus_strip_products(const locus_head *head, const locus_tile *tile, const float *A,
                          int64_t a_row, int64_t rows, const locus_tensor *table, int64_t width,
                          locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    const locus_kernels *kernels = plan->kernels;
    const locus_stretch stretch = locus_tile_stretch(head, tile);
    int64_t stride;
    const float *entries = locus_table_entries(plan, table, head->h, &stride);
    roll(head, strip, panel_start(stretch.low), rows);
    while (strip->end <= stretch.high) {
        const int64_t wanted = stretch.high + 1 - strip->end;
        const int64_t count = locus_least(locus_least(wanted + LOCUS_PANEL - 1, MOST_KEYS) /
                                              LOCUS_PANEL * LOCUS_PANEL,
                                          plan->row_count - strip->end);
        kernels->pack(head->worker->entry_panels, entries + strip->end * stride, stride, count,
                      width);
        kernels->product(strip->data + (strip->end - strip->first),
                         locus_strip_width(plan, head->geometry), A, a_row,
                         head->worker->entry_panels, rows, width, count, NULL, 0, NULL);
        strip->end += locus_ceil_div(count, LOCUS_PANEL) * LOCUS_PANEL;
    }
}

const float *locus_strip_slice(const locus_head *head, const locus_tile *tile,
                               const locus_strip *strip)
{
    const locus_stretch s = locus_tile_stretch(head, tile);
    if (s.origin[tile->columns - 1] - s.origin[1 - tile->rows] != locus_window_width(tile) - 1 ||
        !head->plan->table_steps)
        return NULL;
    return strip->data + (s.origin[0] - strip->first);
}

void locus_strip_read(const locus_head *head, const locus_tile *tile, const locus_strip *strip,
                      float *T)
{
    const int64_t width = locus_strip_width(head->plan, head->geometry);
    const locus_stretch s = locus_tile_stretch(head, tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        float *to = T + i * head->geometry->keys;
        const float *row = strip->data + i * width;
        if (head->plan->table_steps)
            head->plan->kernels->lookup(to, row, (int32_t)strip->first, s.origin - i,
                                        tile->columns);
        else
            for (int64_t j = 0; j < tile->columns; j++)
                to[j] += row[s.origin[j - i] - strip->first];
    }
}

void locus_strip_read_columns(const locus_head *head, const locus_tile *tile,
                              const locus_strip *strip, float *T)
{
    const int64_t width = locus_strip_width(head->plan, head->geometry);
    const int64_t keys = head->geometry->keys;
    const locus_stretch s = locus_tile_stretch(head, tile);
    if (head->plan->table_steps) {
        head->plan->kernels->lookup_columns(T, keys, strip->data, width, (int32_t)strip->first,
                                            s.origin, tile->rows, tile->columns);
        return;
    }
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++)
            T[i * keys + j] += strip->data[j * width + s.origin[j - i] - strip->first];
}

/* ---- folds ---- */

/* Hand on the columns below entry `first`, keep the rest, and have zeros up to `end`. */
static void advance(const locus_head *head, locus_strip *strip, int64_t rows, int64_t first,
                    int64_t end, locus_flush flush, void *context)
{
    const int64_t width = locus_strip_width(head->plan, head->geometry);
    const int64_t done = locus_least(locus_least(first, strip->end), head->plan->row_count);
    if (done > strip->first)
        flush(context, head, strip->data, width, strip->first, done - strip->first);
    roll(head, strip, first, rows);
    for (int64_t r = 0; end > strip->end && r < rows; r++)
        memset(strip->data + r * width + (strip->end - first), 0,
               (size_t)(end - strip->end) * sizeof *strip->data);
    strip->end = locus_most(strip->end, end);
}

void locus_strip_fold(const locus_head *head, const locus_tile *tile, const float *T,
                      locus_strip *strip, locus_flush flush, void *context)
{
    const int64_t width = locus_strip_width(head->plan, head->geometry);
    const locus_stretch s = locus_tile_stretch(head, tile);
    advance(head, strip, tile->rows, panel_start(s.low), panel_start(s.high) + LOCUS_PANEL, flush,
            context);
    for (int64_t i = 0; i < tile->rows; i++) {
        float *row = strip->data + i * width;
        const float *from = T + i * head->geometry->keys;
        if (head->plan->table_steps)
            head->plan->kernels->fold(row, (int32_t)strip->first, s.origin - i, from,
                                      tile->columns);
        else
            for (int64_t j = 0; j < tile->columns; j++)
                row[s.origin[j - i] - strip->first] += from[j];
    }
}

void locus_strip_flush(const locus_head *head, locus_strip *strip, locus_flush flush, void *context)
{
    const int64_t end = locus_least(strip->end, head->plan->row_count);
    if (end > strip->first)
        flush(context, head, strip->data, locus_strip_width(head->plan, head->geometry),
              strip->first, end - strip->first);
    strip->first = strip->end = 0;
}

void locus_strip_fold_columns(const locus_head *head, const locus_tile *tile, const float *T,
                              locus_strip *strip)
{
    const int64_t width = locus_strip_width(head->plan, head->geometry);
    const locus_stretch s = locus_tile_stretch(head, tile);
    strip->first = s.low;
    strip->end = s.high + 1;
    for (int64_t j = 0; j < tile->columns; j++)
        memset(strip->data + j * width, 0,
               (size_t)(strip->end - strip->first) * sizeof *strip->data);
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++)
            strip->data[j * width + s.origin[j - i] - strip->first] +=
                T[i * head->geometry->keys + j];
}

/* ---- entries as operands ---- */

void locus_entries_begin(const locus_head *head, const locus_tensor *table, int64_t width,
                         uint8_t *bad)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->bad_rows(bad, entries, stride, head->plan->row_count, width);
}

locus_block locus_entries(const locus_head *head, const locus_tensor *table, const uint8_t *bad)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    locus_block block = {entries, entries, stride, stride, bad, 0};
    for (int64_t a = 0; a < head->plan->row_count && !block.any_bad; a++) block.any_bad = bad[a];
    return block;
}

void locus_add_entries(const locus_head *head, const locus_block *entries, const float *columns,
                       int64_t row_stride, int64_t rows, int64_t first, int64_t count, float *to,
                       int64_t width)
{
    for (int64_t c = 0; c < count;) {
        int64_t end = c; /* the stretch of finite entries from c on */
        while (end < count && !(entries->any_bad && entries->bad[first + end])) end++;
        if (end > c)
            head->plan->kernels->gemm(to, width, columns + c, row_stride, 1,
                                      entries->raw + (first + c) * entries->raw_row,
                                      entries->raw_row, rows, end - c, width, 1);
        c = end + 1;
    }
}

locus_pair_view locus_by_entry(const locus_head *head, const locus_tile *tile)
{
    return (locus_pair_view){0, -1, 1, locus_tile_stretch(head, tile).origin};
}
