/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of the tiles: scratch, packed keys, turned rows, clean rows. */

#include <math.h>
#include <string.h>

#include "attention/tile.h"
#include "core/tensor.h"

static int64_t most_of(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t least_of(int64_t a, int64_t b) { return a < b ? a : b; }

void locus_worker_carve(const locus_plan *plan, int backward, locus_arena *arena,
                        locus_worker *w)
{
    const locus_call *call = &plan->call;
    const int64_t D = call->D, Dv = call->Dv, wide = most_of(D, Dv);
    const int64_t keys = plan->key_tiles * BLOCK_KEYS;
    const int places = locus_present(&plan->shapes.pos_q);
    const int tables = plan->table_row != NULL;
    w->key_panels = locus_take_floats(arena, keys * D);
    w->value_panels = locus_take_floats(arena, backward ? keys * Dv : 0);
    w->place_panels = locus_take_floats(arena, places ? keys * D : 0);
    w->key_bad = locus_take(arena, keys, 1);
    w->value_bad = locus_take(arena, keys, 1);
    w->place_bad = locus_take(arena, places ? keys : 0, 1);

    w->content = locus_take_floats(arena, BLOCK_ROWS * D);
    w->position = locus_take_floats(arena, tables ? BLOCK_ROWS * D : 0);
    w->place = locus_take_floats(arena, places ? BLOCK_ROWS * D : 0);
    w->faded = locus_take_floats(arena, plan->log_gain != NULL ? BLOCK_ROWS * D : 0);
    w->out = locus_take_floats(arena, BLOCK_ROWS * Dv);
    w->top = locus_take_floats(arena, BLOCK_ROWS);
    w->sum = locus_take_floats(arena, BLOCK_ROWS);
    w->carry = locus_take_floats(arena, BLOCK_ROWS);
    w->lse = locus_take_floats(arena, BLOCK_ROWS);
    w->factor = locus_take_floats(arena, BLOCK_ROWS);
    w->delta = locus_take_floats(arena, BLOCK_ROWS);

    w->score = locus_take_floats(arena, BLOCK_ROWS * BLOCK_KEYS);
    w->grad = locus_take_floats(arena, backward ? BLOCK_ROWS * BLOCK_KEYS : 0);
    w->dropped = locus_take_floats(arena, BLOCK_ROWS * BLOCK_KEYS);
    w->strip = locus_take_floats(
        arena, tables || places ? most_of(BLOCK_ROWS, BLOCK_KEYS) * WINDOW : 0);
    w->window = locus_take_floats(arena, tables ? WINDOW * wide : 0);
    w->window_panel = locus_take_floats(arena, tables ? WINDOW * wide : 0);
    w->window_grad = locus_take_floats(arena, tables && backward ? WINDOW * wide : 0);
    for (size_t i = 0; i < sizeof w->clean / sizeof *w->clean; i++)
        w->clean[i] = locus_take_floats(arena, WINDOW * wide);
    w->rows = locus_take_floats(arena, BLOCK_KEYS * wide);
    w->gain = locus_take_floats(arena, 2 * D);
    w->content_bad = locus_take(arena, BLOCK_ROWS, 1);
    w->position_bad = locus_take(arena, BLOCK_ROWS, 1);
    w->place_row_bad = locus_take(arena, BLOCK_ROWS, 1);
    w->dout_bad = locus_take(arena, BLOCK_ROWS, 1);
    w->window_bad = locus_take(arena, WINDOW, 1);

    w->dout = locus_take_floats(arena, backward ? BLOCK_ROWS * Dv : 0);
    w->dcontent = locus_take_floats(arena, backward ? BLOCK_ROWS * D : 0);
    w->dposition = locus_take_floats(arena, backward && tables ? BLOCK_ROWS * D : 0);
    w->dplace = locus_take_floats(arena, backward && places ? BLOCK_ROWS * D : 0);
}

int locus_row_is_bad(const float *row, int64_t width)
{
    float zero = 0.0f; /* stays 0 until a NaN or an infinity makes it NaN */
    for (int64_t c = 0; c < width; c++) zero += row[c] * 0.0f;
    return zero != 0.0f;
}

void locus_turn_row(const locus_plan *plan, float *row, const float *turn, float direction)
{
    for (int64_t t = 0; t < plan->call.pairs; t++) {
        int64_t first, second;
        locus_pair_columns(&plan->call, t, &first, &second);
        const float x = row[first], y = row[second];
        const float cosine = turn[2 * t], sine = turn[2 * t + 1] * direction;
        row[first] = x * cosine - y * sine;
        row[second] = y * cosine + x * sine;
    }
}

/* Transpose rows of one key tile into its panel [width][BLOCK_KEYS], noting bad rows. */
static void pack_panel(float *panel, uint8_t *bad, const float *rows, int64_t row_stride,
                       int64_t count, int64_t width)
{
    for (int64_t j = 0; j < count; j++) {
        const float *row = rows + j * row_stride;
        bad[j] = (uint8_t)locus_row_is_bad(row, width);
        for (int64_t c = 0; c < width; c++) panel[c * BLOCK_KEYS + j] = row[c];
    }
}

static void pack_turned_keys(const locus_head *head, int64_t tile, int64_t count)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D, key = tile * BLOCK_KEYS;
    float *rows = head->worker->rows;
    for (int64_t j = 0; j < count; j++) {
        memcpy(rows + j * D, locus_f32(&head->in->k, head->b, head->kv, key + j),
               (size_t)D * sizeof *rows);
        locus_turn_row(plan, rows + j * D, plan->turn_key + 2 * plan->call.pairs * (key + j), 1.0f);
    }
    pack_panel(head->worker->key_panels + key * D, head->worker->key_bad + key, rows, D, count, D);
}

/* Keys that nobody sees may have no row in pos_k: they count as bad, which keeps them out. */
static void pack_places(const locus_head *head, int64_t key, int64_t count)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    locus_worker *w = head->worker;
    const int64_t D = head->plan->call.D;
    const int64_t known = least_of(count, most_of(0, pos_k->shape[1] - key));
    pack_panel(w->place_panels + key * D, w->place_bad + key,
               locus_f32(pos_k, head->h, key, 0), pos_k->stride[1], known, D);
    for (int64_t j = known; j < count; j++) w->place_bad[key + j] = 1;
}

void locus_head_pack(const locus_head *head, int64_t key_from, int64_t key_to, int values)
{
    const locus_plan *plan = head->plan;
    const locus_call *call = &plan->call;
    const locus_tensors *in = head->in;
    locus_worker *w = head->worker;
    for (int64_t tile = key_from; tile < key_to; tile++) {
        const int64_t key = tile * BLOCK_KEYS, count = least_of(BLOCK_KEYS, call->Tk - key);
        if (plan->turn_key != NULL)
            pack_turned_keys(head, tile, count);
        else
            pack_panel(w->key_panels + key * call->D, w->key_bad + key,
                       locus_f32(&in->k, head->b, head->kv, key), in->k.stride[2], count,
                       call->D);
        if (values)
            pack_panel(w->value_panels + key * call->Dv, w->value_bad + key,
                       locus_f32(&in->v, head->b, head->kv, key), in->v.stride[2], count,
                       call->Dv);
        else
            for (int64_t j = 0; j < count; j++)
                w->value_bad[key + j] = (uint8_t)locus_row_is_bad(
                    locus_f32(&in->v, head->b, head->kv, key + j), call->Dv);
        if (locus_present(&in->pos_k)) pack_places(head, key, count);
    }
}

/* to = factor (row + shift), shift may be NULL. */
static void load_row(float *to, const float *row, const float *shift, float factor, int64_t width)
{
    for (int64_t c = 0; c < width; c++)
        to[c] = factor * (shift != NULL ? row[c] + shift[c] : row[c]);
}

static const float *head_row(const locus_tensor *t, int64_t h)
{
    return locus_present(t) ? (const float *)t->data + h * t->stride[0] : NULL;
}

static void load_query_row(const locus_head *head, const locus_rows *rows, int64_t i)
{
    const locus_plan *plan = head->plan;
    const locus_tensors *in = head->in;
    locus_worker *w = head->worker;
    const int64_t D = plan->call.D;
    const float factor = (float)plan->call.scale;
    const float *q = locus_f32(&in->q, head->b, head->h, rows->first + i);
    load_row(w->content + i * D, q, head_row(&in->u, head->h), factor, D);
    if (plan->turn_query != NULL)
        locus_turn_row(plan, w->content + i * D,
                       plan->turn_query + 2 * plan->call.pairs * (rows->first + i), 1.0f);
    w->content_bad[i] = (uint8_t)locus_row_is_bad(w->content + i * D, D);
    if (plan->table_row != NULL) {
        load_row(w->position + i * D, q, head_row(&in->w, head->h), factor, D);
        w->position_bad[i] = (uint8_t)locus_row_is_bad(w->position + i * D, D);
    }
    if (locus_present(&in->pos_q)) {
        const int64_t m = rows->position + i;
        if (m >= 0 && m < in->pos_q.shape[1])
            load_row(w->place + i * D, locus_f32(&in->pos_q, head->h, m, 0), NULL, factor, D);
        else /* a row that sees no key */
            memset(w->place + i * D, 0, (size_t)D * sizeof *w->place);
        w->place_row_bad[i] = (uint8_t)locus_row_is_bad(w->place + i * D, D);
    }
}

void locus_rows_begin(const locus_head *head, int64_t first, locus_rows *rows)
{
    const locus_call *call = &head->plan->call;
    rows->first = first;
    rows->count = least_of(BLOCK_ROWS, call->Tq - first);
    rows->position = call->query_offset + first;
    /* keys with least <= m - n <= most for some row of the tile */
    const int64_t low = most_of(0, rows->position - call->most);
    const int64_t high = least_of(call->Tk - 1, rows->position + rows->count - 1 - call->least);
    const int empty = head->plan->span == 0 || low > high;
    rows->tile_from = empty ? 0 : low / BLOCK_KEYS;
    rows->tile_to = empty ? 0 : high / BLOCK_KEYS + 1;
    for (int64_t i = 0; i < rows->count; i++) load_query_row(head, rows, i);
}

/* ---- clean rows ---- */

locus_block locus_block_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                           const uint8_t *bad, float *room)
{
    locus_block block = {rows, rows, row_stride, row_stride, bad, 0};
    for (int64_t r = 0; r < count; r++) block.any_bad |= bad[r];
    if (!block.any_bad) return block;
    for (int64_t r = 0; r < count; r++) {
        if (bad[r])
            memset(room + r * width, 0, (size_t)width * sizeof *room);
        else
            memcpy(room + r * width, rows + r * row_stride, (size_t)width * sizeof *room);
    }
    block.clean = room;
    block.clean_row = width;
    return block;
}

locus_block locus_key_block(const locus_head *head, const locus_tile *tile, float *room)
{
    const int64_t D = head->plan->call.D;
    const uint8_t *bad = head->worker->key_bad + tile->key;
    if (head->plan->turn_key == NULL)
        return locus_block_of(locus_f32(&head->in->k, head->b, head->kv, tile->key),
                              head->in->k.stride[2], tile->columns, D, bad, room);
    const float *panel = head->worker->key_panels + tile->key * D;
    float *rows = head->worker->rows;
    for (int64_t c = 0; c < D; c++)
        for (int64_t j = 0; j < tile->columns; j++) rows[j * D + c] = panel[c * BLOCK_KEYS + j];
    return locus_block_of(rows, D, tile->columns, D, bad, room);
}

locus_block locus_value_block(const locus_head *head, const locus_tile *tile, float *room)
{
    return locus_block_of(locus_f32(&head->in->v, head->b, head->kv, tile->key),
                          head->in->v.stride[2], tile->columns, head->plan->call.Dv,
                          head->worker->value_bad + tile->key, room);
}

locus_block locus_place_block(const locus_head *head, const locus_tile *tile, float *room)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    return locus_block_of(locus_f32(pos_k, head->h, tile->key, 0), pos_k->stride[1],
                          tile->columns, head->plan->call.D,
                          head->worker->place_bad + tile->key, room);
}
