/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/relative.h"

#include <string.h>

#include "attention/few.h"
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
    return (locus_band){first,
                        locus_least(BAND_ROWS, tile->rows - first),
                        0,
                        tile->columns,
                        tile->delta_00 + first,
                        tile->last};
}

/* All entries of the block are one. */
static int is_far(const locus_plan *plan, const locus_band *block)
{
    const stretch s = band_stretch(plan, block);
    return s.origin[block->columns - 1] == s.origin[1 - block->rows];
}

static int is_consecutive(const locus_plan *plan, const locus_band *block)
{
    const stretch s = band_stretch(plan, block);
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
        is_far(plan, &block) ? is_far : is_consecutive;
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

locus_strip locus_key_strip(const locus_head *head, float *data)
{
    const locus_geometry *g = head->geometry;
    return (locus_strip){data, locus_strip_width(head->plan, g->rows, g->keys), 0, 0};
}

/* ---- products ---- */

/* Move the columns from entry `first` on to the front. */
static void roll(const locus_kernels *kernels, locus_strip *strip, int64_t first, int64_t rows)
{
    const int64_t kept = strip->end - first, shift = first - strip->first;
    if (kept <= 0 || shift < 0)
        strip->end = first;
    else if (shift > 0)
        kernels->slide(strip->data, strip->width, rows, shift, kept);
    strip->first = first;
}

static int64_t panel_start(int64_t entry) { return entry / LOCUS_PANEL * LOCUS_PANEL; }

/* Of key j of a tile, the entries first + from[j] .. first + to[j] - 1 that its rows meet. */
static void find_key_reach(int32_t *from, int32_t *to, const stretch *s, int64_t rows, int64_t keys,
                           int64_t first)
{
    for (int64_t j = 0; j < keys; j++) {
        from[j] = (int32_t)(s->origin[j - (rows - 1)] - first);
        to[j] = (int32_t)(s->origin[j] - first + 1);
    }
}

/* The same of a band's rows, the last one first so that entries ascend; what the next key tiles
 * will meet belongs to it. */
static void find_row_reach(int32_t *from, int32_t *to, const stretch *s, const locus_band *band,
                           int64_t first, int64_t end)
{
    const int32_t *reversed = s->origin - (band->rows - 1);
    for (int64_t i = 0; i < band->rows; i++) {
        from[i] = (int32_t)(reversed[i] - first);
        to[i] = (int32_t)((band->last ? reversed[i + band->columns - 1] + 1 : end) - first);
    }
}

/* What is multiplied by the entries of a table. */
typedef struct operand {
    const float *A;
    int64_t row, rows, width;
    const locus_tensor *table;
    const float *panels;      /* the packed table; NULL: packed here */
    const int32_t *from, *to; /* which entries are wanted, row by row */
} operand;

/* to[r][c] = A_r . entry c, for `count` entries from number `first` on: few rows read them as
 * they lie, more rows read them packed, and only as far as they are wanted. */
static void entry_products(const locus_head *head, const operand *o, float *to, int64_t to_row,
                           int64_t first, int64_t count)
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
                                  .to = o->to};
    if (o->panels != NULL)
        product.panels = o->panels + locus_panel_at(first, o->width);
    else
        kernels->pack(head->worker->entry_panels, entries, stride, count, o->width);
    kernels->product(&product);
}

/* How many entries to compute next, to reach entry `high`. */
static int64_t next_entries(const locus_plan *plan, const locus_strip *strip, int64_t high)
{
    const int64_t wanted = panel_start(high - strip->end) + LOCUS_PANEL;
    return locus_least(locus_least(wanted, MOST_KEYS), plan->row_count - strip->end);
}

void locus_strip_products(const locus_head *head, const locus_band *band, const float *A,
                          const locus_tensor *table, const float *panels, int64_t width,
                          locus_strip *strip)
{
    const stretch s = band_stretch(head->plan, band);
    int32_t from[BAND_ROWS], to[BAND_ROWS];
    const int64_t last = head->unpacked ? 0 : band->rows - 1; /* backwards, as find_row_reach */
    const int64_t backwards = head->unpacked ? 1 : -1;
    const operand o = {A + (band->first + last) * width,
                       backwards * width,
                       band->rows,
                       width,
                       table,
                       panels,
                       from,
                       to};
    roll(head->plan->kernels, strip, panel_start(s.low), band->rows);
    while (strip->end <= s.high) {
        const int64_t count = next_entries(head->plan, strip, s.high);
        find_row_reach(from, to, &s, band, strip->end, strip->end + count);
        entry_products(head, &o, strip->data + last * strip->width + (strip->end - strip->first),
                       backwards * strip->width, strip->end, count);
        strip->end += locus_ceil_div(count, LOCUS_PANEL) * LOCUS_PANEL;
    }
}

/* expanded[i][rows - 1 + j - i] = strip[i][entry(i, j)] */
static locus_slice expand(const locus_head *head, const locus_band *block, const stretch *s,
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
    const stretch s = band_stretch(head->plan, block);
    float *shift = head->worker->shift;
    if (is_far(head->plan, block)) {
        for (int64_t i = 0; i < block->rows; i++)
            shift[i] = strip->data[i * strip->width + (s.low - strip->first)];
        return (locus_slice){NULL, 0, shift};
    }
    if (is_consecutive(head->plan, block))
        return (locus_slice){strip->data + (s.origin[0] - strip->first), strip->width - 1, NULL};
    return expand(head, block, &s, strip);
}

locus_strip locus_products_by_keys(const locus_head *head, const locus_tile *tile,
                                   const locus_tensor *table)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *k = &head->in->k;
    int32_t from[MOST_KEYS], to[MOST_KEYS];
    const stretch s = stretch_of(plan, tile->delta_00, tile->rows, tile->columns);
    const operand o = {locus_f32(k, head->b, head->kv, tile->key),
                       k->stride[2],
                       tile->columns,
                       plan->call.D,
                       table,
                       head->worker->query_table_panels,
                       from,
                       to};
    locus_strip strip = locus_key_strip(head, head->worker->key_strip);
    strip.first = strip.end = panel_start(s.low);
    while (strip.end <= s.high) {
        const int64_t count = next_entries(plan, &strip, s.high);
        find_key_reach(from, to, &s, tile->rows, tile->columns, strip.end);
        entry_products(head, &o, strip.data + (strip.end - strip.first), strip.width, strip.end,
                       count);
        strip.end += locus_ceil_div(count, LOCUS_PANEL) * LOCUS_PANEL;
    }
    return strip;
}

locus_slice locus_slice_by_keys(const locus_head *head, const locus_band *block,
                                const locus_strip *strip, locus_slice plus)
{
    const locus_plan *plan = head->plan;
    const stretch s = band_stretch(plan, block);
    const locus_slice slice = {head->worker->places, head->geometry->stride, NULL};
    const locus_column_table table = {strip->data + block->column * strip->width, strip->width,
                                      (int32_t)strip->first, s.origin, (float)plan->call.scale};
    float *to = head->worker->places;
    if (is_far(plan, block)) {
        for (int64_t j = 0; j < block->columns; j++)
            to[j] = table.factor * table.data[j * table.row + (s.low - strip->first)];
        return (locus_slice){to, 0, plus.shift};
    }
    if (plan->table_steps) {
        plan->kernels->read_columns(to, slice.row, &table, plus.data, plus.row, block->rows,
                                    block->columns);
        return slice;
    }
    for (int64_t i = 0; i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++)
            to[i * slice.row + j] =
                table.factor * table.data[j * table.row + s.origin[j - i] - table.first] +
                (plus.data != NULL ? plus.data[i * plus.row + j] : 0.0f);
    return slice;
}

/* ---- folds ---- */

/* Hand on the columns below entry `first`, keep the rest, and have zeros up to `end`. */
static void advance(const locus_head *head, const locus_band *band, locus_strip *strip,
                    int64_t first, int64_t end, locus_flush flush, void *context)
{
    const int64_t done = locus_least(locus_least(first, strip->end), head->plan->row_count);
    if (done > strip->first) flush(context, head, band, strip, done - strip->first);
    roll(head->plan->kernels, strip, first, band->rows);
    for (int64_t r = 0; end > strip->end && r < band->rows; r++)
        memset(strip->data + r * strip->width + (strip->end - first), 0,
               (size_t)(end - strip->end) * sizeof *strip->data);
    strip->end = locus_most(strip->end, end);
}

/* Vectors of distances begin at multiples of LOCUS_LANES, wherever the rows of a tile or the
 * distances of a plan do: the sum of a row depends on neither. `ascending` is minus a distance. */
static int64_t vector_start(int64_t ascending)
{
    const int64_t down = ascending >= 0 ? ascending : ascending - (LOCUS_LANES - 1);
    return down / LOCUS_LANES * LOCUS_LANES;
}

static void fold_band(const locus_head *head, const locus_band *band, const float *T,
                      locus_strip *strip, locus_flush flush, void *context)
{
    const locus_plan *plan = head->plan;
    const stretch s = band_stretch(plan, band);
    const int64_t stride = head->geometry->stride;
    advance(head, band, strip, panel_start(s.low), panel_start(s.high) + LOCUS_PANEL, flush,
            context);
    const float *from = T + band->first * stride;
    if (!plan->table_steps) {
        for (int64_t i = 0; i < band->rows; i++)
            for (int64_t j = 0; j < band->columns; j++)
                strip->data[i * strip->width + s.origin[j - i] - strip->first] +=
                    from[i * stride + j];
        return;
    }
    const int64_t at = vector_start(-band->delta_00 - (band->rows - 1));
    const locus_fold_tile fold = {.y = strip->data,
                                  .y_row = strip->width,
                                  .first = (int32_t)strip->first,
                                  .index = plan->index + plan->call.most + at,
                                  .x = from,
                                  .x_row = stride,
                                  .rows = band->rows,
                                  .width = band->columns,
                                  .start = -band->delta_00 - at,
                                  .slope = -1};
    plan->kernels->fold(&fold);
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

/* Keys as rows, LOCUS_LANES of them at a time, and queries backwards, so that entries ascend:
 * flipped[k][r] = T[rows - 1 - r][j + k]. */
static void fold_flipped(const locus_head *head, const locus_tile *tile, const float *T,
                         const locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    const int64_t stride = head->geometry->stride, last = tile->rows - 1;
    const int64_t flipped_row = head->geometry->rows + LOCUS_LANES;
    float *flipped = head->worker->flipped;
    for (int64_t j = 0; j < tile->columns; j += LOCUS_LANES) {
        const int64_t count = locus_least(LOCUS_LANES, tile->columns - j);
        const int64_t first = j - last - tile->delta_00, at = vector_start(first);
        const locus_fold_tile fold = {.y = strip->data + j * strip->width,
                                      .y_row = strip->width,
                                      .first = (int32_t)strip->first,
                                      .index = plan->index + plan->call.most + at,
                                      .x = flipped,
                                      .x_row = flipped_row,
                                      .rows = count,
                                      .width = tile->rows,
                                      .start = first - at,
                                      .slope = 1};
        plan->kernels->transpose(flipped, flipped_row, T + last * stride + j, -stride, tile->rows,
                                 count);
        plan->kernels->fold(&fold);
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
        fold_flipped(head, tile, T, &strip);
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
                        float *panels)
{
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->pack(panels, entries, stride, head->plan->row_count, width);
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
