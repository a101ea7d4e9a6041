/* SPDX-License-Identifier: Apache-2.0 */
/* Operands of the tiles: packed keys, loaded queries, turned rows, clean rows. */

#include <math.h>
#include <string.h>

#include "attention/relative.h"
#include "core/tensor.h"

void locus_turn_rows(const locus_plan *plan, float *to, int64_t to_row, const float *rows,
                     int64_t row_stride, const float *turn, float direction, int64_t count)
{
    const int interleaved = plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED;
    plan->kernels->turn(to, to_row, rows, row_stride, turn, plan->call.pairs, interleaved,
                        direction, count, plan->call.D, (locus_ahead){0});
}

/* Forward, P meets the values again and again; backward, dS meets the keys. */
static int gathers_values(const locus_head *head)
{
    return head->packs_scale && locus_far_apart(head->in->v.stride[2], head->plan->call.Dv);
}
static int gathers_keys(const locus_head *head)
{
    return !head->packs_scale && !head->unpacked &&
           locus_far_apart(head->in->k.stride[2], head->plan->call.D);
}

static void gather(const locus_head *head, const locus_tensor *t, int64_t first, int64_t count,
                   float *to)
{
    const int64_t width = t->shape[3];
    const float *from = locus_f32(t, head->b, head->kv, first);
    for (int64_t r = 0; r < count; r++)
        memcpy(to + r * width, from + r * t->stride[2], (size_t)width * sizeof *to);
}

/* Keys [first, first + count) of the head, turned or gathered. */
static const float *copied_keys(const locus_head *head, int64_t first, int64_t count)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D;
    locus_progress *p = head->worker->progress;
    const int64_t end = p->copied_first + p->copied_count;
    if (first >= p->copied_first && first + count <= end)
        return head->worker->copied_keys + (first - p->copied_first) * D;
    if (!p->keeps_copied || first != end) {
        p->copied_first = first;
        p->copied_count = 0;
    }
    float *rows = head->worker->copied_keys + p->copied_count * D;
    p->copied_count += count;
    if (plan->turn_key == NULL)
        gather(head, &head->in->k, first, count, rows);
    else
        locus_turn_rows(plan, rows, D, locus_f32(&head->in->k, head->b, head->kv, first),
                        head->in->k.stride[2], plan->turn_key + 2 * plan->call.pairs * first, 1.0f,
                        count);
    return rows;
}

/* The keys as products and sums read them, and their stride. */
static const float *key_rows(const locus_head *head, int64_t first, int64_t count, int64_t *stride)
{
    *stride = head->plan->call.D;
    if (head->plan->turn_key != NULL || gathers_keys(head)) return copied_keys(head, first, count);
    *stride = head->in->k.stride[2];
    return locus_f32(&head->in->k, head->b, head->kv, first);
}

/* bad[r] of rows that some sum reads and some pair may not see. */
static void find_bad(const locus_head *head, int needed, uint8_t *bad, const float *rows,
                     int64_t row_stride, int64_t count, int64_t width)
{
    if (needed)
        head->plan->kernels->bad_rows(bad, rows, row_stride, count, width);
    else
        memset(bad, 0, (size_t)count);
}

static void pack_keys(const locus_head *head, int64_t first, int64_t count, int backward)
{
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t D = head->plan->call.D;
    int64_t stride;
    const float *rows = key_rows(head, first, count, &stride);
    const int by_keys = locus_query_table(head->plan, head->in) != NULL;
    if (backward)
        find_bad(head, !head->all_seen || by_keys, head->worker->key_bad + first, rows, stride,
                 count, D);
    kernels->pack(head->worker->key_panels + locus_panel_at(first, D), rows, stride, count, D,
                  locus_panel_scale(head));
}

/* Keys that nobody sees may have no row in pos_k: they count as bad, which keeps them out. */
static void pack_places(const locus_head *head, int64_t first, int64_t count)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    const locus_kernels *kernels = head->plan->kernels;
    locus_worker *w = head->worker;
    const int64_t D = head->plan->call.D;
    const int64_t known = locus_least(count, locus_most(0, pos_k->shape[1] - first));
    const float *rows = locus_f32(pos_k, head->h, first, 0);
    find_bad(head, !head->all_seen || head->plan->has_reset, w->place_bad + first, rows,
             pos_k->stride[1], known, D);
    kernels->pack(w->place_panels + locus_panel_at(first, D), rows, pos_k->stride[1], known, D,
                  1.0f);
    for (int64_t j = known; j < count; j++) w->place_bad[first + j] = 1;
}

/* The relative tables. */
static void pack_entries(const locus_head *head)
{
    const locus_tensor *key_table = locus_key_table(head->plan, head->in);
    const locus_tensor *value_table = locus_value_table(head->plan, head->in);
    const int64_t D = head->plan->call.D;
    const locus_worker *w = head->worker;
    if (value_table != NULL && w->value_table_bad != NULL)
        locus_entries_begin(head, value_table, head->plan->call.Dv, w->value_table_bad);
    if (key_table != NULL && w->key_table_panels != NULL)
        locus_entries_pack(head, key_table, D, locus_panel_scale(head), w->key_table_panels);
    if (value_table != NULL && w->value_table_panels != NULL)
        locus_entries_pack(head, value_table, head->plan->call.Dv, 1.0f, w->value_table_panels);
}

void locus_tables_pack(const locus_head *head)
{
    if (locus_present(&head->in->pos_k) && !head->unpacked)
        pack_places(head, 0, head->plan->call.Tk);
    pack_entries(head);
}

static void find_bad_entries(const locus_head *head)
{
    const locus_tensor *key_table = locus_key_table(head->plan, head->in);
    const locus_tensor *query_table = locus_query_table(head->plan, head->in);
    const int64_t D = head->plan->call.D;
    if (key_table != NULL) locus_entries_begin(head, key_table, D, head->worker->key_table_bad);
    if (query_table != NULL)
        locus_entries_begin(head, query_table, D, head->worker->query_table_bad);
}

static void find_bad_values(const locus_head *head, int64_t first, int64_t count)
{
    const locus_tensor *v = &head->in->v;
    uint8_t *bad = head->worker->value_bad + first;
    const float *rows = locus_f32(v, head->b, head->kv, first);
    find_bad(head, head->plan->hides, bad, rows, v->stride[2], count, head->plan->call.Dv);
}

void locus_head_begin(const locus_head *head)
{
    locus_ahead_begin(&head->worker->progress->look);
    head->worker->progress->copied_first = head->worker->progress->copied_count = 0;
    head->worker->progress->keeps_copied = 0;
    if (head->tables == NULL && !head->keeps_entries) pack_entries(head);
    if (locus_present(&head->in->pos_q))
        memset(head->worker->zeros, 0, (size_t)head->geometry->keys * sizeof(float));
}

void locus_head_pack(const locus_head *head, int64_t from, int64_t to, int backward)
{
    const locus_tensor *v = &head->in->v;
    const locus_kernels *kernels = head->plan->kernels;
    locus_worker *w = head->worker;
    const int64_t Dv = head->plan->call.Dv;
    locus_head_begin(head);
    w->progress->keeps_copied = locus_keeps_copied(head->plan, head->geometry, backward);
    for (int64_t first = from; first < to; first += head->geometry->keys) {
        const int64_t count = locus_least(head->geometry->keys, to - first);
        const float *rows = locus_f32(v, head->b, head->kv, first);
        if (gathers_values(head)) gather(head, v, first, count, w->gathered + first * Dv);
        pack_keys(head, first, count, backward);
        find_bad_values(head, first, count);
        if (backward)
            kernels->pack(w->value_panels + locus_panel_at(first, Dv), rows, v->stride[2], count,
                          Dv, 1.0f);
        if (locus_present(&head->in->pos_k) && head->tables == NULL)
            pack_places(head, first, count);
    }
    if (backward && !head->keeps_entries) find_bad_entries(head);
}

static const float *head_row(const locus_tensor *t, int64_t h)
{
    return locus_present(t) ? (const float *)t->data + h * t->stride[0] : NULL;
}

/* scale pos_q of the rows that have one; the others see no key. */
static void load_places(const locus_head *head, const locus_rows *rows)
{
    const locus_tensor *pos_q = &head->in->pos_q;
    const int64_t D = head->plan->call.D, count = rows->count;
    const int64_t from = locus_least(count, locus_most(0, -rows->position));
    const int64_t to = locus_most(from, locus_least(count, pos_q->shape[1] - rows->position));
    float *place = head->worker->place;
    memset(place, 0, (size_t)(from * D) * sizeof *place);
    memset(place + to * D, 0, (size_t)((count - to) * D) * sizeof *place);
    if (to > from)
        head->plan->kernels->scale_rows(place + from * D, D,
                                        locus_f32(pos_q, head->h, rows->position + from, 0),
                                        pos_q->stride[1], NULL, (float)head->plan->call.scale,
                                        to - from, D, 0);
}

void locus_rows_reach(const locus_head *head, int64_t first, locus_rows *rows)
{
    const locus_call *call = &head->plan->call;
    const int64_t keys = head->geometry->keys;
    rows->first = first;
    rows->count = locus_least(head->geometry->rows, call->Tq - first);
    rows->position = call->query_offset + first;
    /* keys with least <= m - n <= most for some row of the tile */
    const int64_t low = locus_most(0, rows->position - call->most);
    const int64_t high = locus_least(call->Tk - 1, rows->position + rows->count - 1 - call->least);
    const int empty = head->plan->span == 0 || low > high;
    rows->tile_from = empty ? 0 : low / keys;
    rows->tile_to = empty ? 0 : high / keys + 1;
}

/* to = scale (q + more) */
static void load_queries(const locus_head *head, const locus_rows *rows, const locus_tensor *more,
                         float *to)
{
    const locus_tensor *q = &head->in->q;
    const int64_t D = head->plan->call.D;
    head->plan->kernels->scale_rows(to, D, locus_f32(q, head->b, head->h, rows->first),
                                    q->stride[2], head_row(more, head->h), locus_row_scale(head),
                                    rows->count, D, 0);
}

/* content = turned (scale (q + u)) */
static void load_content(const locus_head *head, const locus_rows *rows)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *q = &head->in->q;
    const int64_t D = plan->call.D, pairs = plan->call.pairs;
    float *content = head->worker->content;
    const int as_it_lies = head->packs_scale && !locus_present(&head->in->u);
    if (plan->turn_query == NULL || !as_it_lies) load_queries(head, rows, &head->in->u, content);
    if (plan->turn_query == NULL) return;
    locus_turn_rows(plan, content, D,
                    as_it_lies ? locus_f32(q, head->b, head->h, rows->first) : content,
                    as_it_lies ? q->stride[2] : D, plan->turn_query + 2 * pairs * rows->first, 1.0f,
                    rows->count);
}

/* 1 where q will do as it lies. */
static int reads_queries(const locus_head *head)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    return head->packs_scale && plan->turn_query == NULL && !locus_present(&head->in->u) &&
           (w->position == w->content || plan->index == NULL) &&
           !locus_far_apart(head->in->q.stride[2], plan->call.D);
}

void locus_rows_load(const locus_head *head, locus_rows *rows)
{
    const locus_tensor *q = &head->in->q;
    const locus_worker *w = head->worker;
    if (reads_queries(head)) {
        rows->content = rows->by_position = locus_f32(q, head->b, head->h, rows->first);
        rows->row = q->stride[2];
    } else {
        rows->content = w->content;
        rows->by_position = w->position;
        rows->row = head->plan->call.D;
        load_content(head, rows);
        if (head->plan->index != NULL && w->position != w->content)
            load_queries(head, rows, &head->in->w, w->position);
    }
    if (locus_present(&head->in->pos_q)) load_places(head, rows);
}

void locus_rows_find_bad(const locus_head *head, const locus_rows *rows)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const int64_t D = plan->call.D, Dv = plan->call.Dv, count = rows->count;
    find_bad(head, !head->all_seen, w->content_bad, w->content, D, count, D);
    find_bad(head, !head->all_seen || locus_value_table(plan, head->in) != NULL, w->dout_bad,
             w->dout, Dv, count, Dv);
    if (plan->index != NULL) find_bad(head, 1, w->position_bad, w->position, D, count, D);
    if (locus_present(&head->in->pos_q))
        find_bad(head, !head->all_seen || plan->has_reset, w->place_row_bad, w->place, D, count, D);
}

/* ---- clean rows ---- */

locus_block locus_block_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                           const uint8_t *bad, float *room)
{
    locus_block block = {rows, rows, row_stride, row_stride, bad, 0, 0};
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

const float *locus_key_rows(const locus_head *head, const locus_tile *tile, int64_t *stride)
{
    return key_rows(head, tile->key, tile->columns, stride);
}

const float *locus_value_rows(const locus_head *head, int64_t first, int64_t *stride)
{
    const int64_t Dv = head->plan->call.Dv;
    *stride = gathers_values(head) ? Dv : head->in->v.stride[2];
    return gathers_values(head) ? head->worker->gathered + first * Dv
                                : locus_f32(&head->in->v, head->b, head->kv, first);
}

locus_block locus_key_block(const locus_head *head, const locus_tile *tile, float *room)
{
    int64_t stride;
    const float *rows = locus_key_rows(head, tile, &stride);
    return locus_block_of(rows, stride, tile->columns, head->plan->call.D,
                          head->worker->key_bad + tile->key, room);
}

locus_block locus_value_block(const locus_head *head, const locus_tile *tile, float *room)
{
    if (head->unpacked) find_bad_values(head, tile->key, tile->columns);
    int64_t stride;
    const float *rows = locus_value_rows(head, tile->key, &stride);
    locus_block block = locus_block_of(rows, stride, tile->columns, head->plan->call.Dv,
                                       head->worker->value_bad + tile->key, room);
    block.of_weights = 1;
    return block;
}

locus_block locus_place_block(const locus_head *head, const locus_tile *tile, float *room)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    return locus_block_of(locus_f32(pos_k, head->h, tile->key, 0), pos_k->stride[1], tile->columns,
                          head->plan->call.D, head->worker->place_bad + tile->key, room);
}
