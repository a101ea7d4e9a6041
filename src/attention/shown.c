/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/shown.h"

#include <string.h>

#include "core/parallel.h"

/* ---- in the mask ---- */

/* Does the mask show one of `rows` x `count` pairs? Strides are in bytes, which its elements are. */
static int shows(const uint8_t *pairs, const locus_tensor *mask, int64_t rows, int64_t count)
{
    enum { WORDS = LOCUS_PANEL / sizeof(uint64_t) };
    const int64_t row_stride = mask->stride[2], stride = mask->stride[3];
    const int whole = stride == 1 && count == LOCUS_PANEL;
    uint64_t any = 0;
    for (int64_t i = 0; whole && i < rows; i++) {
        uint64_t words[WORDS];
        memcpy(words, pairs + i * row_stride, sizeof words);
        for (int w = 0; w < WORDS; w++) any |= words[w];
    }
    for (int64_t i = 0; !whole && i < rows; i++)
        for (int64_t j = 0; j < count; j++) any |= pairs[i * row_stride + j * stride];
    return any != 0;
}

/* Does it show them all? */
static int shows_all(const uint8_t *pairs, const locus_tensor *mask, int64_t rows, int64_t count)
{
    const int64_t row_stride = mask->stride[2], stride = mask->stride[3];
    int all = 1;
    for (int64_t i = 0; all && i < rows; i++) {
        const uint8_t *row = pairs + i * row_stride;
        if (stride == 1) all = memchr(row, 0, (size_t)count) == NULL;
        for (int64_t j = 0; stride != 1 && j < count; j++) all &= row[j * stride] != 0;
    }
    return all;
}

/* Of one block of rows. */
static locus_shown find_block(const head_context *head, const uint8_t *pairs, int64_t rows,
                              int64_t columns)
{
    const locus_tensor *mask = &head->in->mask;
    const int64_t stride = mask->stride[3];
    int64_t from = 0, to = columns;
    for (; from < to; from += LOCUS_PANEL)
        if (shows(pairs + from * stride, mask, rows, min_i64(LOCUS_PANEL, to - from))) break;
    while (to > from) {
        const int64_t last = (to - 1) / LOCUS_PANEL * LOCUS_PANEL;
        if (shows(pairs + last * stride, mask, rows, to - last)) break;
        to = last;
    }
    if (from >= to) return (locus_shown){0, 0, 0};
    return (locus_shown){(uint8_t)(from / LOCUS_PANEL), (uint8_t)ceil_div(to, LOCUS_PANEL),
                         (uint8_t)shows_all(pairs + from * stride, mask, rows, to - from)};
}

static void find_shown(const head_context *head, int64_t query, int64_t rows, int64_t key_tile,
                       locus_shown *shown)
{
    const int64_t key = key_tile * head->geometry->keys;
    const int64_t columns = min_i64(head->geometry->keys, head->plan->call.Tk - key);
    for (int64_t i = 0; i < rows; i += LOCUS_REGISTER_ROWS)
        shown[i / LOCUS_REGISTER_ROWS] =
            find_block(head, locus_pair_at(&head->in->mask, 1, head->b, head->h, query + i, key),
                       min_i64(LOCUS_REGISTER_ROWS, rows - i), columns);
}

/* ---- of all tiles ---- */

typedef struct filling {
    const locus_plan *plan;
    const locus_geometry *geometry;
    const locus_tensors *in;
    locus_shown *shown;
} filling;

static int64_t query_tiles(const locus_plan *plan, const locus_geometry *g)
{
    return ceil_div(plan->call.Tq, g->rows);
}

/* Of the blocks of the query tile from row `query` on and of a key tile. */
static int64_t place(const head_context *head, int64_t query, int64_t key_tile)
{
    const locus_geometry *g = head->geometry;
    const locus_tensor *mask = &head->plan->shapes.mask;
    const int64_t b = mask->shape[0] == 1 ? 0 : head->b, h = mask->shape[1] == 1 ? 0 : head->h;
    const int64_t tile = (b * mask->shape[1] + h) * query_tiles(head->plan, g) + query / g->rows;
    return (tile * ceil_div(head->plan->call.Tk, g->keys) + key_tile) *
           ceil_div(g->rows, LOCUS_REGISTER_ROWS);
}

locus_shown *locus_shown_carve(const locus_plan *plan, const locus_geometry *g, locus_arena *arena)
{
    const locus_tensor *mask = &plan->shapes.mask;
    if (!locus_present(mask) || plan->ragged != NULL) return NULL;
    const int64_t blocks = query_tiles(plan, g) * ceil_div(g->rows, LOCUS_REGISTER_ROWS);
    return locus_take(arena,
                      mask->shape[0] * mask->shape[1] * blocks * ceil_div(plan->call.Tk, g->keys),
                      sizeof(locus_shown));
}

/* The tiles in reach of one query tile. */
static void fill_tile(void *context, size_t index, uint32_t thread)
{
    const filling *f = context;
    const int64_t heads = f->plan->shapes.mask.shape[1], tiles = query_tiles(f->plan, f->geometry);
    const int64_t entry = (int64_t)index / tiles;
    const head_context head =
        locus_head_at(f->plan, f->geometry, f->in, entry / heads, entry % heads);
    locus_queries queries;
    (void)thread;
    locus_queries_reach(&head, (int64_t)index % tiles * f->geometry->rows, &queries);
    for (int64_t t = queries.tile_from; t < queries.tile_to; t++)
        find_shown(&head, queries.first, queries.count, t,
                   f->shown + place(&head, queries.first, t));
}

void locus_shown_fill(const locus_plan *plan, const locus_geometry *geometry,
                      const locus_tensors *in, locus_shown *shown)
{
    const locus_tensor *mask = &plan->shapes.mask;
    filling f = {plan, geometry, in, shown};
    if (shown == NULL) return;
    locus_parallel_for(plan->threads,
                       (size_t)(mask->shape[0] * mask->shape[1] * query_tiles(plan, geometry)),
                       fill_tile, &f);
}

const locus_shown *locus_shown_at(const head_context *head, int64_t query, int64_t rows,
                                  int64_t key_tile, locus_shown room[MAX_BLOCKS])
{
    if (head->shown != NULL) return head->shown + place(head, query, key_tile);
    find_shown(head, query, rows, key_tile, room);
    return room;
}

static int shows_tile(const head_context *head, const locus_queries *queries, int64_t key_tile)
{
    const locus_shown *shown = head->shown + place(head, queries->first, key_tile);
    int any = 0;
    for (int64_t g = 0; g < ceil_div(queries->count, LOCUS_REGISTER_ROWS); g++)
        any |= shown[g].to > shown[g].from;
    return any;
}

void locus_shown_reach(const head_context *head, locus_queries *queries)
{
    int64_t from = queries->tile_from, to = queries->tile_to;
    if (head->shown == NULL) return;
    while (from < to && !shows_tile(head, queries, from)) from++;
    while (from < to && !shows_tile(head, queries, to - 1)) to--;
    queries->tile_from = from;
    queries->tile_to = to;
}
