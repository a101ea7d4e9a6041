/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/packed.h"

#include <string.h>

#include "attention/counted.h"
#include "attention/decays.h"
#include "attention/gates.h"
#include "attention/key_side.h"
#include "attention/late_bias.h"
#include "attention/placed.h"

void locus_packed_carve(const locus_plan *plan, const locus_geometry *g, int rolls_tables,
                        locus_arena *arena, locus_scores *scores)
{
    const locus_call *call = &plan->call;
    const int key_side = locus_key_side_table(plan, &plan->shapes) != NULL;
    const int positions = locus_present(&plan->shapes.pos_q);
    locus_scores_carve(plan, g, arena, scores);
    scores->entry_panels =
        locus_take_optional(arena, rolls_tables,
                            locus_panel_floats(MAX_TILE_KEYS, max_i64(plan->key_width, call->Dv)));
    scores->key_strip = locus_take_optional(arena, key_side && plan->place_axes == 0,
                                            key_side ? locus_key_strip_floats(plan, g) : 0);
    scores->key_band = locus_take_optional(arena, key_side, locus_key_band_floats(g));
    scores->pos_scores = locus_take_optional(arena, positions && plan->has_reset,
                                             (g->rows + LOCUS_LANES) * g->stride);
    scores->zeros = locus_take_optional(arena, positions, g->keys);
}

/* ---- strips ---- */

/* Of a band's rows, the last one first so that entries ascend, the entries that they use; those
 * that the next key tiles will use count, too. */
static void find_row_reach(const locus_plan *plan, const locus_band *band, int32_t *from,
                           int32_t *to)
{
    const int32_t *reversed = band->origin - (band->rows - 1);
    for (int64_t i = 0; i < band->rows; i++) {
        from[i] = reversed[i];
        to[i] = band->last ? reversed[i + band->columns - 1] + 1 : (int32_t)plan->row_count;
    }
}

/* The panels that begin with entry `first`. */
static const float *panels_at(const head_context *head, const locus_table_product *p, int64_t first,
                              int64_t count)
{
    if (p->panels != NULL) return p->panels + locus_panel_at(first, p->width);
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, p->table, head->h, &stride);
    head->plan->kernels->pack(p->entry_panels, entries + first * stride, stride, count, p->width,
                              p->scale);
    return p->entry_panels;
}

void locus_packed_strip(const head_context *head, const locus_band *band,
                        const locus_table_product *p, locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    const int64_t last = band->rows - 1;
    int32_t from[BAND_ROWS], to[BAND_ROWS];
    find_row_reach(plan, band, from, to);
    locus_strip_roll(plan->kernels, strip, locus_panel_start(band->low), band->rows);
    for (int64_t count; (count = locus_strip_missing(plan, strip, band->high)) > 0;) {
        const locus_product_tile product = {.c = strip->data + last * strip->row_stride +
                                                 (strip->end - strip->first),
                                            .c_stride = -strip->row_stride,
                                            .a = p->rows + (band->first + last) * p->row_stride,
                                            .a_stride = -p->row_stride,
                                            .panels = panels_at(head, p, strip->end, count),
                                            .rows = band->rows,
                                            .inner = p->width,
                                            .columns = count,
                                            .from = from,
                                            .to = to,
                                            .before = strip->end};
        plan->kernels->product(&product);
        locus_strip_grow(strip, count);
    }
}

/* All of them, for given positions. */
static void placed_strip(const head_context *head, const locus_band *band,
                         const locus_table_product *p, locus_strip *strip)
{
    const locus_plan *plan = head->plan;
    if (strip->end > 0) return;
    for (int64_t count; (count = locus_strip_missing(plan, strip, plan->row_count - 1)) > 0;) {
        const locus_product_tile product = {.c = strip->data + strip->end,
                                            .c_stride = strip->row_stride,
                                            .a = p->rows + band->first * p->row_stride,
                                            .a_stride = p->row_stride,
                                            .panels = panels_at(head, p, strip->end, count),
                                            .rows = band->rows,
                                            .inner = p->width,
                                            .columns = count};
        plan->kernels->product(&product);
        locus_strip_grow(strip, count);
    }
    locus_placed_expand(plan, strip, band->rows);
}

void locus_packed_placed_strips(const head_context *head, const locus_tile *tile,
                                const locus_table_product *product, locus_strip *strips)
{
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(head->plan, tile, b);
        placed_strip(head, &band, product, &strips[b]);
    }
}

/* ---- scores ---- */

/* What a segment reads of a dense bias once its product is done, in floats. An n x n array comes
 * from memory, a tile's rows far apart: without this, the tile waits for each of them. */
static locus_prefetch_rows dense_rows(const head_context *head, const locus_tile *tile,
                                      const locus_band *segment)
{
    const locus_tensor *dense = &head->in->bias_dense;
    const int64_t in_float = locus_is_half(dense) ? 2 : 1;
    return (locus_prefetch_rows){
        .rows = locus_pair_at(dense, sizeof(float) / (size_t)in_float, head->b, head->h,
                              tile->query + segment->first, tile->key + segment->column),
        .row_stride = dense->stride[2] / in_float,
        .width = ceil_div(segment->columns, in_float),
        .count = segment->rows};
}

/* The content product of a segment; what it adds is in the product already. */
static void multiply_content(const locus_scores *s, const locus_tile *tile,
                             const locus_band *segment, const float *content,
                             locus_product_tile *product)
{
    const locus_plan *plan = s->head->plan;
    const int64_t D = plan->call.D, stride = s->head->geometry->stride;
    const locus_seen wanted = locus_tile_wanted(tile, segment->first);
    product->c = s->score + segment->first * stride + segment->column;
    product->c_stride = stride;
    product->a = content + segment->first * s->queries->row_stride;
    product->a_stride = s->queries->row_stride;
    product->panels = s->keys->panels + locus_panel_at(tile->key + segment->column, D);
    product->rows = segment->rows;
    product->inner = D;
    product->columns = segment->columns;
    product->from = wanted.from;
    product->to = wanted.to;
    product->before = segment->column;
    if (locus_present(&s->head->in->bias_dense))
        locus_prefetch_take_with(s->prefetch, dense_rows(s->head, tile, segment),
                                 product->prefetch);
    else
        locus_prefetch_take(s->prefetch, product->prefetch);
    if (locus_tile_is_plain(s->head, tile) && s->max_lanes != NULL) {
        product->max_lanes = s->max_lanes + segment->first * LOCUS_LANES;
        product->max_so_far = segment->column > 0;
    }
    if (locus_tile_is_plain(s->head, tile) && s->lse != NULL) {
        product->lse = s->lse + segment->first;
        product->factor = s->factor + segment->first;
    }
    plan->kernels->product(product);
}

/* Content and tables, segment by segment. */
static void score_with_tables(locus_scores *s, const locus_tile *tile, const float *content)
{
    const head_context *head = s->head;
    const locus_plan *plan = head->plan;
    const locus_table_product rows = {.rows = s->queries->with_position,
                                      .row_stride = s->queries->position_stride,
                                      .width = plan->key_width,
                                      .table = locus_key_table(plan, head->in),
                                      .scale = locus_key_table_scale(head),
                                      .panels = s->tables->key_panels,
                                      .entry_panels = s->entry_panels};
    const int key_side = locus_key_side_table(plan, head->in) != NULL;
    locus_strip key_strip = {0};
    if (locus_meets_every_entry(plan)) {
        const locus_band whole = locus_whole_tile(plan, tile);
        locus_product_tile product = {0};
        if (rows.table != NULL) locus_packed_placed_strips(head, tile, &rows, s->key_strips);
        multiply_content(s, tile, &whole, content, &product);
        if (key_side) locus_placed_key_side_add(head, tile, s->keys, s->score);
        return;
    }
    if (key_side) key_strip = locus_key_strip_products(head, tile, s->keys, s->key_strip);
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(plan, tile, b);
        locus_strip *strip = &s->key_strips[b];
        if (rows.table != NULL) locus_packed_strip(head, &band, &rows, strip);
        for (int64_t column = 0; column < tile->columns;) {
            const locus_band segment = locus_segment_at(plan, &band, column);
            locus_product_tile product = {0};
            if (rows.table != NULL) locus_strip_add(plan, &segment, strip, s->strip_room, &product);
            if (key_side) locus_key_strip_add(head, &segment, &key_strip, s->key_band, &product);
            multiply_content(s, tile, &segment, content, &product);
            column += segment.columns;
        }
    }
}

/* pos_scores = pos_q . pos_k + bias */
static void multiply_positions(const locus_scores *s, const locus_tile *tile)
{
    const locus_plan *plan = s->head->plan;
    const int64_t D = plan->call.D;
    const locus_seen wanted = locus_tile_wanted(tile, 0);
    const locus_product_tile product = {
        .c = s->pos_scores,
        .c_stride = s->head->geometry->stride,
        .a = s->queries->pos_q_rows,
        .a_stride = D,
        .panels = s->tables->pos_k_panels + locus_panel_at(tile->key, D),
        .rows = tile->rows,
        .inner = D,
        .columns = tile->columns,
        .plus = plan->place_axes > 0 ? NULL : locus_tile_bias(plan, s->bias, tile),
        .plus_stride = -1,
        .from = wanted.from,
        .to = wanted.to};
    plan->kernels->product(&product);
}

/* Content, bias, and the position part of TUPE: in the same product, unless some of it is to be
 * replaced. */
static void score_without_tables(locus_scores *s, const locus_tile *tile, const float *content)
{
    const locus_plan *plan = s->head->plan;
    const int64_t D = plan->call.D;
    const float *bias =
        plan->place_axes > 0 || plan->late_bias ? NULL : locus_tile_bias(plan, s->bias, tile);
    locus_product_tile product = {.plus = bias, .plus_stride = -1};
    const int positions = locus_present(&s->head->in->pos_q);
    if (positions && plan->has_reset) {
        multiply_positions(s, tile);
        locus_reset_positions(s, tile);
        product.plus = s->pos_scores;
        product.plus_stride = s->head->geometry->stride;
    } else if (positions) {
        product.also_a = s->queries->pos_q_rows;
        product.also_a_stride = D;
        product.also_panels = s->tables->pos_k_panels + locus_panel_at(tile->key, D);
        if (product.plus == NULL) { /* which a second product needs */
            memset(s->zeros, 0, (size_t)tile->columns * sizeof *s->zeros);
            product.plus = s->zeros;
            product.plus_stride = 0;
        }
    }
    const locus_band whole = locus_whole_tile(plan, tile);
    multiply_content(s, tile, &whole, content, &product);
}

static int packed_scores(locus_scores *s, const locus_tile *tile)
{
    const float *content = locus_content_rows(s, tile);
    if (s->steep)
        locus_steep_scores(s, tile);
    else if (s->head->plan->index != NULL)
        score_with_tables(s, tile, content);
    else
        score_without_tables(s, tile, content);
    if (s->head->plan->counts) locus_add_counted(s, tile);
    if (s->head->plan->late_bias)
        locus_add_late_bias(s, tile, locus_tile_bias(s->head->plan, s->bias, tile));
    if (!s->steep && locus_tile_is_plain(s->head, tile)) return 1;
    locus_tile_cap(s->head, tile, s->score, s->cap_slopes);
    if (s->head->plan->has_log_gate) locus_add_gates(s, tile);
    locus_tile_mask(s->head, tile, s->score);
    return 0;
}

/* ---- values ---- */

static locus_operand packed_values(const locus_scores *s, const locus_tile *tile, float *room)
{
    return locus_value_operand(s->head, s->keys, tile->key, tile->columns, room);
}

static void packed_add_values(const locus_scores *s, const locus_tile *tile,
                              const locus_operand *values, float *out, const float *rescale)
{
    const locus_kernels *kernels = s->head->plan->kernels;
    const int64_t Dv = s->head->plan->call.Dv, stride = s->head->geometry->stride;
    for (int64_t i = 0, rows; i < tile->rows; i += rows) {
        int64_t from, to;
        rows = locus_rows_alike(tile, i, &from, &to);
        const float *weights = s->score + i * stride + from;
        const float *seen = values->clean + from * values->clean_stride;
        if (rescale != NULL)
            kernels->gemm_rescale(out + i * Dv, Dv, weights, stride, seen, values->clean_stride,
                                  rows, to - from, Dv, rescale + i);
        else
            kernels->gemm(out + i * Dv, Dv, weights, stride, 1, seen, values->clean_stride, rows,
                          to - from, Dv, 0);
    }
}

const locus_path locus_packed = {packed_scores, packed_values, packed_add_values};
