/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/tile.h"

#include <math.h>
#include <string.h>

#include "attention/places.h"
#include "core/random.h"

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
static int64_t find_columns(const head_context *head, locus_tile *tile)
{
    const locus_call *call = &head->plan->call;
    int64_t end = 0;
    for (int64_t i = 0; i < tile->rows; i++) {
        /* least <= delta_00 + i - j <= most */
        const int64_t from = max_i64(0, tile->delta_00 + i - call->most);
        const int64_t to = min_i64(tile->columns, tile->delta_00 + i - call->least + 1);
        tile->from[i] = (int32_t)min_i64(from, tile->columns);
        tile->to[i] = (int32_t)max_i64(to, tile->from[i]);
        if (to > from) end = max_i64(end, to);
    }
    return end;
}

/* How many of the first `end` columns key_mask lets through. Returns the end of the last. */
static int64_t find_keys(const head_context *head, const locus_tile *tile, int64_t end,
                         int64_t *seen)
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
    tile->columns = min_i64(tile->columns, ceil_div(end, LOCUS_PANEL) * LOCUS_PANEL);
    tile->whole = 1;
    for (int64_t i = 0; i < tile->rows; i++) {
        tile->from[i] = (int32_t)min_i64(tile->from[i], tile->columns);
        tile->to[i] = (int32_t)min_i64(tile->to[i], tile->columns);
        tile->whole &= tile->from[i] == 0 && tile->to[i] == tile->columns;
    }
}

/* Blocks ascend like what causal and window let through; else all are given what one of them
 * sees. A block that sees nothing goes with the one before. */
static void order_blocks(locus_tile *tile)
{
    int64_t low = tile->columns, high = 0;
    int ascends = 1;
    for (int64_t g = 0; g < tile->block_count; g++) {
        locus_block *block = &tile->blocks[g];
        if (block->from >= block->to) {
            block->from = g > 0 ? block[-1].from : 0;
            block->to = g > 0 ? block[-1].to : 0;
            block->shows_all = 0;
        } else {
            low = min_i64(low, block->from);
            high = max_i64(high, block->to);
        }
        if (g > 0) ascends &= block->from >= block[-1].from && block->to >= block[-1].to;
    }
    for (int64_t g = 0; !ascends && g < tile->block_count; g++) {
        tile->blocks[g].from = low;
        tile->blocks[g].to = high;
        tile->blocks[g].shows_all = 0;
    }
}

/* Blocks that see the same become one. */
static void join_blocks(locus_tile *tile)
{
    int64_t count = 0;
    for (int64_t g = 0; g < tile->block_count; g++) {
        const locus_block next = tile->blocks[g];
        locus_block *last = count > 0 ? &tile->blocks[count - 1] : NULL;
        if (last != NULL && last->from == next.from && last->to == next.to) {
            last->rows += next.rows;
            last->shows_all &= next.shows_all;
        } else {
            tile->blocks[count++] = next;
        }
    }
    tile->block_count = count;
}

/* The blocks of LOCUS_REGISTER_ROWS rows that the mask makes. Returns 0 if it hides all. */
static int find_blocks(const head_context *head, locus_tile *tile)
{
    locus_shown room[MAX_BLOCKS];
    const locus_shown *shown =
        locus_shown_at(head, tile->query, tile->rows, tile->key / head->geometry->keys, room);
    int any = 0;
    tile->block_count = ceil_div(tile->rows, LOCUS_REGISTER_ROWS);
    for (int64_t g = 0; g < tile->block_count; g++) {
        const int64_t first = g * LOCUS_REGISTER_ROWS;
        tile->blocks[g] = (locus_block){.first = first,
                                        .rows = min_i64(LOCUS_REGISTER_ROWS, tile->rows - first),
                                        .from = shown[g].from * LOCUS_PANEL,
                                        .to = min_i64(shown[g].to * LOCUS_PANEL, tile->columns),
                                        .shows_all = shown[g].all};
        any |= shown[g].to > shown[g].from;
    }
    return any;
}

/* Leave out the panels at both ends that the mask hides from a block. Sums over columns run in
 * panels, so no bit tells. Returns the end of the last column. */
static int64_t cut_hidden(locus_tile *tile)
{
    int64_t end = 0;
    order_blocks(tile);
    join_blocks(tile);
    for (int64_t g = 0; g < tile->block_count; g++) {
        const locus_block *block = &tile->blocks[g];
        for (int64_t i = block->first; i < block->first + block->rows; i++) {
            tile->from[i] = (int32_t)max_i64(tile->from[i], block->from);
            tile->to[i] = (int32_t)max_i64(tile->from[i], min_i64(tile->to[i], block->to));
            if (tile->to[i] > tile->from[i]) end = max_i64(end, tile->to[i]);
        }
    }
    return end;
}

/* Let the tile begin with the panel of its first column that is seen. Returns how many columns are
 * left out. */
static int64_t skip_hidden(locus_tile *tile)
{
    int64_t first = tile->columns;
    for (int64_t i = 0; i < tile->rows; i++)
        if (tile->to[i] > tile->from[i]) first = min_i64(first, tile->from[i]);
    const int64_t skipped = first / LOCUS_PANEL * LOCUS_PANEL;
    tile->key += skipped;
    tile->columns -= skipped;
    tile->delta_00 -= skipped;
    for (int64_t i = 0; i < tile->rows; i++) {
        tile->from[i] = (int32_t)max_i64(0, tile->from[i] - skipped);
        tile->to[i] = (int32_t)max_i64(tile->from[i], tile->to[i] - skipped);
    }
    for (int64_t g = 0; g < tile->block_count; g++) {
        tile->blocks[g].from = max_i64(0, tile->blocks[g].from - skipped);
        tile->blocks[g].to = max_i64(0, tile->blocks[g].to - skipped);
        tile->masked |= !tile->blocks[g].shows_all;
    }
    return skipped;
}

/* Which columns are in reach of a row, and whether a key_mask hides some. Returns the end of the
 * last. */
static int64_t find_reach(const head_context *head, locus_tile *tile)
{
    const int key_mask = locus_present(&head->in->key_mask), mask = locus_present(&head->in->mask);
    if (mask && !find_blocks(head, tile)) return 0;
    int64_t end = tile->whole ? tile->columns : find_columns(head, tile), seen = 0;
    if (end > 0 && mask) end = cut_hidden(tile);
    if (end > 0 && mask) end -= skip_hidden(tile);
    if (end > 0 && key_mask) end = find_keys(head, tile, end, &seen);
    cut_columns(tile, end);
    tile->key_masked = key_mask && seen < tile->columns;
    return end;
}

int locus_tile_begin(const head_context *head, const locus_queries *queries, int64_t key_tile,
                     locus_tile *tile)
{
    tile->rows = queries->count;
    tile->query = queries->first;
    tile->key = key_tile * head->geometry->keys;
    tile->columns = min_i64(head->geometry->keys, head->plan->call.Tk - tile->key);
    tile->delta_00 = queries->position - tile->key;
    tile->last = key_tile + 1 == queries->tile_to;
    tile->skips_reset = 0;
    tile->key_masked = 0;
    tile->masked = 0;
    tile->ragged = 0;
    tile->block_count = 1;
    tile->blocks[0] = (locus_block){0, tile->rows, 0, tile->columns, 0};
    tile->whole = find_whole(&head->plan->call, tile);
    const int masked = locus_present(&head->in->key_mask) || locus_present(&head->in->mask);
    const int64_t end = tile->whole && !masked ? tile->columns : find_reach(head, tile);
    for (int64_t g = 0; g < tile->block_count; g++) {
        locus_block *block = &tile->blocks[g];
        block->from = min_i64(block->from, tile->columns);
        block->to = min_i64(block->to, tile->columns);
    }
    return end > 0;
}

/* ---- masks ---- */

static void add_dense(const head_context *head, const locus_tile *tile, float *scores)
{
    const locus_tensor *dense = &head->in->bias_dense;
    const size_t bytes = locus_is_half(dense) ? 2 : 4;
    float some[MAX_TILE_KEYS];
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        const void *row = locus_pair_at(dense, bytes, head->b, head->h, tile->query + i, tile->key);
        float *score = scores + i * head->geometry->stride + from;
        if (bytes == sizeof *score) {
            head->plan->kernels->add_bias(score, (const float *)row + from, count);
        } else if (count > 0) {
            head->plan->kernels->widen(some, 0, (const uint16_t *)row + from, 0, dense->dtype, 1,
                                       count);
            head->plan->kernels->add_bias(score, some, count);
        }
    }
}

/* score[j] = -inf where row[j] is 0; eight ones in a row are passed over at once. */
static void hide_pairs(float *score, const uint8_t *row, int64_t stride, int64_t from, int64_t to)
{
    static const uint8_t ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    for (int64_t j = from; j < to;) {
        if (stride == 1 && to - j >= 8 && memcmp(row + j, ones, sizeof ones) == 0) {
            j += 8;
            continue;
        }
        for (const int64_t end = min_i64(j + 8, to); j < end; j++)
            score[j] = row[j * stride] != 0 ? score[j] : -INFINITY;
    }
}

static void hide_block(const head_context *head, const locus_tile *tile, const locus_block *block,
                       float *scores)
{
    const locus_tensor *mask = &head->in->mask;
    for (int64_t i = block->first; i < block->first + block->rows; i++)
        hide_pairs(scores + i * head->geometry->stride,
                   locus_pair_at(mask, 1, head->b, head->h, tile->query + i, tile->key),
                   mask->stride[3], tile->from[i], tile->to[i]);
}

static void hide_masked(const head_context *head, const locus_tile *tile, float *scores)
{
    const locus_tensor *key_mask = &head->in->key_mask;
    for (int64_t g = 0; tile->masked && g < tile->block_count; g++)
        if (!tile->blocks[g].shows_all) hide_block(head, tile, &tile->blocks[g], scores);
    for (int64_t i = 0; tile->key_masked && i < tile->rows; i++) {
        const uint8_t *row =
            (const uint8_t *)key_mask->data + locus_offset(key_mask, head->b, tile->key, 0, 0);
        hide_pairs(scores + i * head->geometry->stride, row, key_mask->stride[1], tile->from[i],
                   tile->to[i]);
    }
}

int locus_tile_sees(const head_context *head, const locus_tile *tile, int64_t i, int64_t j)
{
    const locus_tensors *in = head->in;
    const int64_t q = tile->query + i, k = tile->key + j;
    if (j < tile->from[i] || j >= tile->to[i]) return 0;
    if (tile->skips_reset && (locus_position_row(head->plan, k) == 0 ||
                              locus_position_row(head->plan, tile->delta_00 + i + tile->key) == 0))
        return 0;
    if (locus_present(&in->key_mask) && locus_get(&in->key_mask, head->b, k, 0, 0) == 0.0) return 0;
    if (locus_present(&in->mask) &&
        *(const uint8_t *)locus_pair_at(&in->mask, 1, head->b, head->h, q, k) == 0)
        return 0;
    const locus_tensor *dense = &in->bias_dense;
    return !locus_present(dense) ||
           locus_get(dense, dense->shape[0] == 1 ? 0 : head->b, dense->shape[1] == 1 ? 0 : head->h,
                     q, k) != (double)-INFINITY;
}

int locus_tile_is_plain(const head_context *head, const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    return tile->whole && !tile->key_masked && !tile->masked && !plan->late_bias && !plan->counts &&
           !plan->has_log_gate && plan->call.softcap == 0.0 &&
           !locus_present(&head->in->bias_dense);
}

void locus_tile_cap(const head_context *head, const locus_tile *tile, float *scores, float *slopes)
{
    const int64_t stride = head->geometry->stride;
    const float cap = (float)head->plan->call.softcap;
    if (cap == 0.0f) return;
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t at = i * stride + tile->from[i];
        head->plan->kernels->cap(scores + at, slopes != NULL ? slopes + at : NULL,
                                 tile->to[i] - tile->from[i], cap);
    }
}

void locus_tile_uncap(const head_context *head, const locus_tile *tile, const float *slopes,
                      float *grad)
{
    const int64_t stride = head->geometry->stride;
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t at = i * stride + tile->from[i];
        head->plan->kernels->cap_grad(grad + at, slopes + at, tile->to[i] - tile->from[i]);
    }
}

void locus_tile_mask(const head_context *head, const locus_tile *tile, float *scores)
{
    if (locus_present(&head->in->bias_dense)) add_dense(head, tile, scores);
    if (tile->key_masked || tile->masked) hide_masked(head, tile, scores);
}

/* The numbers that dropout has for query row m, key n and the batch entry at work. */
static uint32_t drop_row(const head_context *head, int64_t m)
{
    return (uint32_t)(head->plan->call.first_query + m);
}
static uint32_t drop_key(const head_context *head, int64_t n)
{
    return (uint32_t)(head->plan->call.key_offset + n);
}
static uint32_t drop_batch(const head_context *head)
{
    return (uint32_t)(head->plan->call.first_batch + head->b);
}

/* 1: the pair was dropped; a weight of 0 alone may also be an underflow. */
static int is_dropped(const head_context *head, const locus_tile *tile, int64_t i, int64_t j)
{
    const locus_call *call = &head->plan->call;
    return call->dropout > 0.0 &&
           !locus_dropout_keeps(call->dropout_seed, locus_dropout_threshold(call->dropout),
                                drop_batch(head), (uint32_t)head->h,
                                drop_row(head, tile->query + i), drop_key(head, tile->key + j));
}

/* What the kernel does, where key 0 of the tile is not the first of its random numbers. */
static void drop_one_by_one(const head_context *head, const locus_tile *tile, const float *in,
                            float *out, float *also, const locus_dropout *rule)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = 0; j < tile->columns; j++) {
            const int64_t at = i * head->geometry->stride + j;
            const float factor = is_dropped(head, tile, i, j) ? 0.0f : rule->factor;
            out[at] = factor == 0.0f ? 0.0f : in[at] * factor;
            if (also != NULL) also[at] = factor == 0.0f ? 0.0f : also[at] * factor;
        }
}

void locus_tile_drop(const head_context *head, const locus_tile *tile, const float *in, float *out,
                     float *also)
{
    const locus_call *call = &head->plan->call;
    const locus_dropout rule = {.key = {(uint32_t)call->dropout_seed,
                                        (uint32_t)(call->dropout_seed >> 32)},
                                .row = drop_row(head, tile->query),
                                .head = (uint32_t)head->h,
                                .batch = drop_batch(head),
                                .threshold = locus_dropout_threshold(call->dropout),
                                .factor = (float)(1.0 / (1.0 - call->dropout))};
    const uint32_t first = drop_key(head, tile->key);
    if (first % LOCUS_DROP_KEYS == 0)
        head->plan->kernels->drop(out, in, also, head->geometry->stride, tile->rows, first,
                                  tile->columns, &rule);
    else
        drop_one_by_one(head, tile, in, out, also, &rule);
}

static int64_t number_of(const head_context *head, const locus_tile *tile,
                         const locus_pair_view *view, int64_t i, int64_t j)
{
    const locus_plan *plan = head->plan;
    if (view->placed)
        return plan
            ->index[plan->places[view->axis].first +
                    locus_place_z(plan, view->axis, head->b, tile->query + i, tile->key + j)];
    const int64_t number = view->origin + i * view->row + j * view->column;
    return view->index != NULL ? view->index[number] : number;
}

static void patch(const head_context *head, const locus_tile *tile, const float *T, locus_sums to,
                  locus_pair_view to_view, const locus_operand *from, locus_pair_view from_view,
                  int64_t width)
{
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) {
            const int64_t f = number_of(head, tile, &from_view, i, j);
            if (!from->bad[f] || !locus_tile_sees(head, tile, i, j)) continue;
            float *sum = to.data + number_of(head, tile, &to_view, i, j) * to.row_stride;
            const float weight = T[i * head->geometry->stride + j];
            if (from->of_weights && weight == 0.0f && is_dropped(head, tile, i, j)) continue;
            for (int64_t c = 0; c < width; c++)
                sum[c] += weight * from->raw[f * from->raw_stride + c];
        }
}

void locus_patch(const head_context *head, const locus_tile *tile, const float *T, locus_sums to,
                 locus_pair_view to_view, const locus_operand *from, locus_pair_view from_view,
                 int64_t width)
{
    const int placed = to_view.placed || from_view.placed;
    if (!from->any_bad) return;
    for (int axis = 0; axis < (placed ? head->plan->place_axes : 1); axis++) {
        to_view.axis = from_view.axis = axis;
        patch(head, tile, T, to, to_view, from, from_view, width);
    }
}
