/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/relative.h"

#include <string.h>

#include "attention/few.h"
#include "attention/stretch.h"
#include "core/tensor.h"

locus_band locus_band_at(const locus_tile *tile, int64_t number)
{
    const int64_t first = number * BAND_ROWS;
    return (locus_band){first,
                        locus_least(BAND_ROWS, tile->rows - first),
                        0,
                        tile->columns,
                        tile->delta_00 + first,
                        tile->last};
}

static int is_consecutive(const locus_plan *plan, const locus_band *block)
{
    const locus_stretch s = locus_band_stretch(plan, block);
    const int64_t distances = block->rows + block->columns - 1;
    return plan->table_steps &&
           s.origin[block->columns - 1] - s.origin[1 - block->rows] == distances - 1;
}

locus_band locus_block_at(const locus_head *head, const locus_band *band, int64_t column)
{
    const locus_plan *plan = head->plan;
    const int64_t end = band->columns;
    locus_band block = *band;
    block.column = column;
    block.delta_00 -= column;
    block.columns = locus_least(LOCUS_PANEL, end - column);
    int (*const kind)(const locus_plan *, const locus_band *) =
        locus_is_far(plan, &block) ? locus_is_far : is_consecutive;
    for (locus_band more = block; kind(plan, &more);) {
        block = more;
        if (column + block.columns == end) break;
        more.columns = locus_least(block.columns + LOCUS_PANEL, end - column);
    }
    return block;
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

/* ---- products ---- */

void locus_strip_roll(const locus_kernels *kernels, locus_strip *strip, int64_t first, int64_t rows)
{
    const int64_t kept = strip->end - first, shift = first - strip->first;
    if (kept <= 0 || shift < 0)
        strip->end = first;
    else if (shift > 0)
        kernels->slide(strip->data, strip->width, rows, shift, kept);
    strip->first = first;
}

/* Of a band's rows, the last one first so that entries ascend, the entries that they meet; those that
 * the next key tiles will meet belong to them. */
static void find_row_reach(const locus_plan *plan, const locus_stretch *s, const locus_band *band,
                           int32_t *from, int32_t *to)
{
    const int32_t *reversed = s->origin - (band->rows - 1);
    for (int64_t i = 0; i < band->rows; i++) {
        from[i] = reversed[i];
        to[i] = band->last ? reversed[i + band->columns - 1] + 1 : (int32_t)plan->row_count;
    }
}

/* to[r][c] = A_r . entry c, for `count` entries from number `first` on: few rows read them as
 * they lie, more rows read them packed, and only as far as they meet them. */
static void entry_products(const locus_head *head, const locus_operand *o, float *to,
                           int64_t to_row, int64_t first, int64_t count)
{
    const locus_kernels *kernels = head->plan->kernels;
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, o->table, head->h, &stride);
    entries += first * stride;
    if (head->unpacked) {
        locus_few_dots(head, to, to_row, o->A, o->row, entries, stride, o->rows, o->width, count,
                       NULL, 0);
        return;
    }
    locus_product_tile product = {.c = to,
                                  .c_row = to_row,
                                  .a = o->A,
                                  .a_row = o->row,
                                  .panels = head->worker->entry_panels,
                                  .rows = o->rows,
                                  .inner = o->width,
                                  .columns = count,
                                  .from = o->from,
                                  .to = o->to,
                                  .before = first};
    if (o->panels != NULL)
        product.panels = o->panels + locus_panel_at(first, o->width);
    else
        kernels->pack(head->worker->entry_panels, entries, stride, count, o->width,
                      locus_panel_scale(head));
    kernels->product(&product);
}

void locus_strip_extend(const locus_head *head, const locus_operand *operand, int64_t high,
                        locus_strip *strip)
{
    while (strip->end <= high) {
        const int64_t wanted = locus_panel_start(high - strip->end) + LOCUS_PANEL;
        const int64_t count =
            locus_least(locus_least(wanted, MOST_KEYS), head->plan->row_count - strip->end);
        entry_products(head, operand, strip->data + (strip->end - strip->first), strip->width,
                       strip->end, count);
        strip->end += locus_ceil_div(count, LOCUS_PANEL) * LOCUS_PANEL;
    }
}

void locus_strip_products(const locus_head *head, const locus_band *band, const float *A,
                          int64_t row, const locus_tensor *table, const float *panels,
                          int64_t width, locus_strip *strip)
{
    const locus_stretch s = locus_band_stretch(head->plan, band);
    int32_t from[BAND_ROWS], to[BAND_ROWS];
    locus_operand rows = {A + band->first * row, row, band->rows, width, table, panels, from, to};
    locus_strip_roll(head->plan->kernels, strip, locus_panel_start(s.low), band->rows);
    locus_strip ordered = *strip;
    if (!head->unpacked) { /* the last row first, as find_row_reach has it */
        find_row_reach(head->plan, &s, band, from, to);
        rows.A += (band->rows - 1) * row;
        rows.row = -row;
        ordered.data += (band->rows - 1) * strip->width;
        ordered.width = -strip->width;
    }
    locus_strip_extend(head, &rows, s.high, &ordered);
    strip->end = ordered.end;
}

/* expanded[i][rows - 1 + j - i] = strip[i][entry(i, j)] */
static locus_slice expand(const locus_head *head, const locus_band *block, const locus_stretch *s,
                          const locus_strip *strip)
{
    const int64_t distances = block->rows + block->columns - 1, before = block->rows - 1;
    const int32_t *index = s->origin - before;
    float *to = head->worker->expanded;
    if (head->plan->table_steps)
        head->plan->kernels->expand(to, EXPANDED_WIDTH, strip->data, strip->width,
                                    (int32_t)strip->first, index, block->rows, distances);
    else
        for (int64_t i = 0; i < block->rows; i++)
            for (int64_t y = 0; y < distances; y++)
                to[i * EXPANDED_WIDTH + y] =
                    strip->data[i * strip->width + index[y] - strip->first];
    return (locus_slice){to + before, EXPANDED_WIDTH - 1, NULL};
}

locus_slice locus_strip_slice(const locus_head *head, const locus_band *block,
                              const locus_strip *strip)
{
    const locus_stretch s = locus_band_stretch(head->plan, block);
    float *shift = head->worker->shift;
    if (locus_is_far(head->plan, block)) {
        for (int64_t i = 0; i < block->rows; i++)
            shift[i] = strip->data[i * strip->width + (s.low - strip->first)];
        return (locus_slice){NULL, 0, shift};
    }
    if (is_consecutive(head->plan, block))
        return (locus_slice){strip->data + (s.origin[0] - strip->first), strip->width - 1, NULL};
    return expand(head, block, &s, strip);
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
                        float scale, float *panels)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->pack(panels, entries, stride, head->plan->row_count, width, scale);
}

locus_block locus_entries(const locus_head *head, const locus_tensor *table, const uint8_t *bad)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    locus_block block = {entries, entries, stride, stride, bad, 0, 0};
    block.any_bad = memchr(bad, 1, (size_t)head->plan->row_count) != NULL;
    return block;
}

void locus_add_entries(const locus_head *head, const locus_block *entries,
                       const locus_weights *weights, int64_t rows, int64_t count, float *to,
                       int64_t to_row, int64_t width)
{
    const locus_weights *w = weights;
    for (int64_t c = 0; c < count;) {
        int64_t end = count; /* of the finite entries from c on */
        if (entries->any_bad)
            for (end = c; end < count && !entries->bad[w->first + end];) end++;
        if (end > c)
            head->plan->kernels->gemm(to, to_row, w->data + c * w->column, w->row, w->column,
                                      entries->raw + (w->first + c) * entries->raw_row,
                                      entries->raw_row, rows, end - c, width, 1);
        c = end + 1;
    }
}

locus_pair_view locus_by_entry(const locus_head *head, const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    return (locus_pair_view){0, -1, 1, plan->index + plan->call.most - tile->delta_00};
}
