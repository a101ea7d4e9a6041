/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/tile.h"

#include <math.h>
#include <string.h>

#include "attention/few.h"
#include "attention/relative.h"
#include "core/random.h"
#include "core/tensor.h"

/* Returns 1 if causal and window let every pair of the tile through. */
static int find_whole(const locus_call *call, locus_tile *tile)
{
    const int64_t rows = tile->rows;
    const int32_t columns = (int32_t)tile->columns;
    if (tile->delta_00 - (columns - 1) < call->least || tile->delta_00 + rows - 1 > call->most)
        return 0;
    memset(tile->from, 0, (size_t)rows * sizeof *tile->from);
    for (int64_t i = 0; i < rows; i++) tile->to[i] = columns;
    return 1;
}

/* Which columns causal and window let through, row by row. Returns the end of the last. */
static int64_t find_columns(const locus_head *head, locus_tile *tile)
{
    const locus_call *call = &head->plan->call;
    int64_t end = 0;
    for (int64_t i = 0; i < tile->rows; i++) {
        /* least <= delta_00 + i - j <= most */
        const int64_t from = locus_most(0, tile->delta_00 + i - call->most);
        const int64_t to = locus_least(tile->columns, tile->delta_00 + i - call->least + 1);
        tile->from[i] = (int32_t)locus_least(from, tile->columns);
        tile->to[i] = (int32_t)locus_most(to, tile->from[i]);
        if (to > from) end = locus_most(end, to);
    }
    return end;
}

/* How many of the first `end` columns key_mask lets through. Returns the end of the last. */
static int64_t find_keys(const locus_head *head, const locus_tile *tile, int64_t end, int64_t *seen)
{
    const locus_tensor *mask = &head->in->key_mask;
    const uint8_t *keys =
        (const uint8_t *)mask->data + locus_offset(mask, head->b, tile->key, 0, 0);
    int64_t past = 0;
    *seen = 0;
    for (int64_t j = 0; j < end; j++) {
        if (keys[j * mask->stride[1]] == 0) continue;
        (*seen)++;
        past = j + 1;
    }
    return past;
}

/* Let the tile end with the panel of its last column that is seen. */
static void cut_columns(locus_tile *tile, int64_t end)
{
    tile->columns = locus_least(tile->columns, locus_ceil_div(end, LOCUS_PANEL) * LOCUS_PANEL);
    tile->whole = 1;
    for (int64_t i = 0; i < tile->rows; i++) {
        tile->from[i] = (int32_t)locus_least(tile->from[i], tile->columns);
        tile->to[i] = (int32_t)locus_least(tile->to[i], tile->columns);
        tile->whole &= tile->from[i] == 0 && tile->to[i] == tile->columns;
    }
}

int locus_tile_begin(const locus_head *head, const locus_rows *rows, int64_t key_tile,
                     locus_tile *tile)
{
    tile->rows = rows->count;
    tile->query = rows->first;
    tile->key = key_tile * head->geometry->keys;
    tile->columns = locus_least(head->geometry->keys, head->plan->call.Tk - tile->key);
    tile->delta_00 = rows->position - tile->key;
    tile->last = key_tile + 1 == rows->tile_to;
    tile->skips_reset = 0;
    tile->key_masked = 0;
    tile->ragged = 0;
    tile->whole = find_whole(&head->plan->call, tile);
    if (tile->whole && !locus_present(&head->in->key_mask)) return 1;
    int64_t end = find_columns(head, tile);
    if (end > 0 && locus_present(&head->in->key_mask)) {
        int64_t seen;
        end = find_keys(head, tile, end, &seen);
        cut_columns(tile, end);
        tile->key_masked = seen < tile->columns;
        return end > 0;
    }
    cut_columns(tile, end);
    return end > 0;
}

/* ---- the position tile ---- */

/* Where row 0 of the tile reads the bias; row i reads it i floats before. */
static const float *bias_slice(const locus_head *head, const locus_tile *tile)
{
    return head->bias != NULL ? head->bias + head->plan->call.most - tile->delta_00 : NULL;
}

/* The position part where m = 0 is cls[0], else where n = 0 it is cls[1]. */
static void reset_positions(const locus_head *head, const locus_rows *rows, const locus_tile *tile,
                            float *T, int64_t stride)
{
    const locus_tensor *cls = &head->in->cls;
    const float *at = (const float *)cls->data + head->h * cls->stride[1];
    for (int64_t i = 0; i < tile->rows; i++) {
        if (rows->position + i == 0)
            for (int64_t j = 0; j < tile->columns; j++) T[i * stride + j] = at[0];
        else if (tile->key == 0)
            T[i * stride] = at[cls->stride[0]];
    }
}

/* Keys that nobody sees may have no row in pos_k. */
static void few_places(const locus_head *head, const locus_tile *tile)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    const int64_t D = head->plan->call.D, row = head->geometry->stride;
    const int64_t known = locus_most(0, locus_least(tile->columns, pos_k->shape[1] - tile->key));
    float *places = head->worker->places;
    locus_few_dots(head, places, row, head->worker->place, D,
                   locus_f32(pos_k, head->h, tile->key, 0), pos_k->stride[1], tile->rows, D, known,
                   bias_slice(head, tile), -1);
    for (int64_t i = 0; i < tile->rows; i++)
        memset(places + i * row + known, 0, (size_t)(tile->columns - known) * sizeof *places);
}

static void product_places(const locus_head *head, const locus_tile *tile)
{
    const locus_worker *w = head->worker;
    const locus_geometry *g = head->geometry;
    const int64_t D = head->plan->call.D;
    const locus_seen wanted = locus_tile_wanted(tile, 0);
    const locus_product_tile product = {.c = w->places,
                                        .c_row = g->stride,
                                        .a = w->place,
                                        .a_row = D,
                                        .panels = w->place_panels + locus_panel_at(tile->key, D),
                                        .rows = tile->rows,
                                        .inner = D,
                                        .columns = tile->columns,
                                        .plus = bias_slice(head, tile),
                                        .plus_row = -1,
                                        .from = wanted.from,
                                        .to = wanted.to};
    head->plan->kernels->product(&product);
}

/* places = place . pos_k + bias, with the reset on the sum of the two. */
static void make_places(const locus_head *head, const locus_rows *rows, const locus_tile *tile)
{
    (head->unpacked ? few_places : product_places)(head, tile);
    if (head->plan->has_reset)
        reset_positions(head, rows, tile, head->worker->places, head->geometry->stride);
}

/* ---- masks ---- */

static const void *dense_row(const locus_tensor *t, size_t bytes, int64_t b, int64_t h, int64_t i,
                             int64_t j)
{
    const int64_t at = b * locus_broadcast_stride(t, 0) + h * locus_broadcast_stride(t, 1) +
                       i * t->stride[2] + j * t->stride[3];
    return (const char *)t->data + at * (int64_t)bytes;
}

static void add_dense(const locus_head *head, const locus_tile *tile)
{
    const locus_tensor *dense = &head->in->bias_dense;
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        const float *row =
            dense_row(dense, sizeof *row, head->b, head->h, tile->query + i, tile->key);
        float *score = head->worker->score + i * head->geometry->stride;
        head->plan->kernels->add_bias(score + from, row + from, count);
    }
}

static void hide_masked(const locus_head *head, const locus_tile *tile)
{
    const locus_tensor *mask = &head->in->mask, *key_mask = &head->in->key_mask;
    for (int64_t i = 0; i < tile->rows; i++) {
        float *score = head->worker->score + i * head->geometry->stride;
        if (locus_present(mask)) {
            const uint8_t *row = dense_row(mask, 1, head->b, head->h, tile->query + i, tile->key);
            for (int64_t j = tile->from[i]; j < tile->to[i]; j++)
                score[j] = row[j * mask->stride[3]] != 0 ? score[j] : -INFINITY;
        }
        if (tile->key_masked) {
            const uint8_t *row =
                (const uint8_t *)key_mask->data + locus_offset(key_mask, head->b, tile->key, 0, 0);
            for (int64_t j = tile->from[i]; j < tile->to[i]; j++)
                score[j] = row[j * key_mask->stride[1]] != 0 ? score[j] : -INFINITY;
        }
    }
}

static int is_seen(const locus_head *head, const locus_tile *tile, int64_t i, int64_t j)
{
    const locus_tensors *in = head->in;
    const int64_t q = tile->query + i, k = tile->key + j;
    if (j < tile->from[i] || j >= tile->to[i]) return 0;
    if (tile->skips_reset && (k == 0 || tile->delta_00 + i + tile->key == 0)) return 0;
    if (locus_present(&in->key_mask) && locus_get(&in->key_mask, head->b, k, 0, 0) == 0.0) return 0;
    if (locus_present(&in->mask) &&
        *(const uint8_t *)dense_row(&in->mask, 1, head->b, head->h, q, k) == 0)
        return 0;
    return !locus_present(&in->bias_dense) ||
           *(const float *)dense_row(&in->bias_dense, sizeof(float), head->b, head->h, q, k) !=
               -INFINITY;
}

/* ---- the tile ---- */

/* content times the gain from the tile's keys to the row. */
static const float *fade_content(const locus_head *head, const locus_rows *rows,
                                 const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    locus_worker *w = head->worker;
    const int64_t D = plan->call.D;
    if (!locus_tile_fades(plan, rows, tile)) return rows->content;
    for (int64_t i = 0; i < tile->rows; i++) {
        const float *gain = locus_row_gain(plan, rows, tile, i);
        plan->kernels->fade(w->faded + i * D, rows->content + i * rows->row, gain, D, 0);
    }
    return w->faded;
}

/* 1 when some pair of the tile is hidden. */
static int hides_some(const locus_head *head, const locus_tile *tile)
{
    return !tile->whole || tile->key_masked || locus_present(&head->in->mask);
}

/* The content product of one block, with what can be added on the way: the products of places, and
 * the bias or the tables. */
static void score_block(const locus_head *head, const locus_tile *tile, const locus_band *block,
                        const float *content, int64_t content_row, locus_slice plus, int places,
                        const locus_finish *finish)
{
    const locus_worker *w = head->worker;
    const int64_t D = head->plan->call.D, row = head->geometry->stride;
    const locus_seen wanted = locus_tile_wanted(tile, block->first);
    locus_product_tile product = {.c = w->score + block->first * row + block->column,
                                  .c_row = row,
                                  .a = content + block->first * content_row,
                                  .a_row = content_row,
                                  .panels =
                                      w->key_panels + locus_panel_at(tile->key + block->column, D),
                                  .rows = block->rows,
                                  .inner = D,
                                  .columns = block->columns,
                                  .plus = plus.data,
                                  .plus_row = plus.row,
                                  .shift = plus.shift,
                                  .from = wanted.from,
                                  .to = wanted.to,
                                  .before = block->column};
    if (places) {
        product.also_a = w->place + block->first * D;
        product.also_a_row = D;
        product.also_panels = w->place_panels + locus_panel_at(tile->key + block->column, D);
    }
    locus_ahead_take(&head->worker->progress->look, product.ahead);
    if (finish != NULL && finish->greatest != NULL) {
        product.greatest = finish->greatest + block->first * LOCUS_LANES;
        product.greatest_so_far = block->column > 0;
    }
    if (finish != NULL && finish->top != NULL) {
        product.top = finish->top + block->first;
        product.factor = finish->factor + block->first;
    }
    head->plan->kernels->product(&product);
}

/* The same with keys as they lie. */
static void score_few(const locus_head *head, const locus_tile *tile, const locus_band *block,
                      const float *content, locus_slice plus)
{
    const int64_t D = head->plan->call.D, row = head->geometry->stride;
    float *score = head->worker->score + block->first * row + block->column;
    locus_few_content(head, score, content + block->first * D, tile->key + block->column,
                      block->rows, block->columns, plus.data, plus.row);
    for (int64_t i = 0; plus.shift != NULL && i < block->rows; i++)
        for (int64_t j = 0; j < block->columns; j++) score[i * row + j] += plus.shift[i];
}

/* Content and tables, block by block. */
static void score_with_tables(const locus_head *head, const locus_rows *rows,
                              const locus_tile *tile, const float *content,
                              const locus_finish *finish)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const locus_tensor *key_table = locus_key_table(plan, head->in);
    const locus_tensor *query_table = locus_query_table(plan, head->in);
    locus_strip by_keys = {0};
    if (query_table != NULL && !head->unpacked)
        by_keys = locus_products_by_keys(head, tile, query_table);
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(tile, b);
        locus_strip *strip = &head->key_strips->band[b];
        if (key_table != NULL)
            locus_strip_products(head, &band, rows->by_position, rows->row, key_table,
                                 w->key_table_panels, plan->call.D, strip);
        for (int64_t column = 0; column < tile->columns;) {
            const locus_band block = locus_block_at(head, &band, column);
            locus_slice plus = {NULL, 0, NULL};
            if (key_table != NULL) plus = locus_strip_slice(head, &block, strip);
            if (by_keys.data != NULL) plus = locus_slice_by_keys(head, &block, &by_keys, plus);
            if (head->unpacked)
                score_few(head, tile, &block, content, plus);
            else
                score_block(head, tile, &block, content, rows->row, plus, 0, finish);
            column += block.columns;
        }
    }
}

int locus_tile_scores(const locus_head *head, const locus_rows *rows, const locus_tile *tile,
                      const locus_finish *finish)
{
    const locus_worker *w = head->worker;
    const locus_tensor *query_table = locus_query_table(head->plan, head->in);
    const int places = locus_present(&head->in->pos_q);
    const int more = locus_present(&head->in->bias_dense) || hides_some(head, tile);
    const int finished = !more && !head->unpacked;
    const float *content = fade_content(head, rows, tile);
    if (!finished) finish = NULL;
    if (head->plan->index != NULL) {
        score_with_tables(head, rows, tile, content, finish);
    } else {
        const locus_band all = locus_whole_band(tile);
        locus_slice plus = {bias_slice(head, tile), -1, NULL};
        const int apart = places && (head->unpacked || head->plan->has_reset);
        if (apart) {
            make_places(head, rows, tile);
            plus = (locus_slice){w->places, head->geometry->stride, NULL};
        } else if (places && plus.data == NULL)
            plus = (locus_slice){w->zeros, 0, NULL};
        if (head->unpacked)
            score_few(head, tile, &all, content, plus);
        else
            score_block(head, tile, &all, content, rows->row, plus, places && !apart, finish);
    }
    if (head->unpacked && query_table != NULL) locus_few_by_keys(head, tile, query_table, w->score);
    if (locus_present(&head->in->bias_dense)) add_dense(head, tile);
    if (tile->key_masked || locus_present(&head->in->mask)) hide_masked(head, tile);
    return finished;
}

void locus_tile_drop(const locus_head *head, const locus_tile *tile, const float *in, float *out,
                     float *also)
{
    const locus_call *call = &head->plan->call;
    const locus_dropout rule = {.key = {(uint32_t)call->dropout_seed,
                                        (uint32_t)(call->dropout_seed >> 32)},
                                .row = (uint32_t)tile->query,
                                .head = (uint32_t)head->h,
                                .batch = (uint32_t)head->b,
                                .threshold = locus_dropout_threshold(call->dropout),
                                .factor = (float)(1.0 / (1.0 - call->dropout))};
    head->plan->kernels->drop(out, in, also, head->geometry->stride, tile->rows, tile->key,
                              tile->columns, &rule);
}

static int64_t number_of(const locus_pair_view *view, int64_t i, int64_t j)
{
    const int64_t number = view->origin + i * view->row + j * view->column;
    return view->index != NULL ? view->index[number] : number;
}

/* 1: the pair was dropped; a weight of 0 alone may also be an underflow. */
static int is_dropped(const locus_head *head, const locus_tile *tile, int64_t i, int64_t j)
{
    const locus_call *call = &head->plan->call;
    return call->dropout > 0.0 &&
           !locus_dropout_keeps(call->dropout_seed, locus_dropout_threshold(call->dropout),
                                (uint32_t)head->b, (uint32_t)head->h, (uint32_t)(tile->query + i),
                                (uint32_t)(tile->key + j));
}

void locus_patch(const locus_head *head, const locus_tile *tile, const float *T, float *to,
                 int64_t to_row, locus_pair_view to_view, const locus_block *from,
                 locus_pair_view from_view, int64_t width)
{
    if (!from->any_bad) return;
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) {
            const int64_t f = number_of(&from_view, i, j);
            if (!from->bad[f] || !is_seen(head, tile, i, j)) continue;
            const int64_t t = number_of(&to_view, i, j);
            const float weight = T[i * head->geometry->stride + j];
            if (from->of_weights && weight == 0.0f && is_dropped(head, tile, i, j)) continue;
            for (int64_t c = 0; c < width; c++)
                to[t * to_row + c] += weight * from->raw[f * from->raw_row + c];
        }
}
