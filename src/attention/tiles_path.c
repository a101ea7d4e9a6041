/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/tiles_path.h"

#include "attention/online.h"
#include "attention/packed.h"

/* ---- scratch ---- */

/* What one thread works with. */
typedef struct worker {
    int64_t task, tile_from, tile_to; /* its number and its query tiles */
    head_context head;
    locus_keys keys;
    locus_head_tables tables;
    locus_online online;
    locus_prefetch prefetch;
} worker;

static void carve_worker(const locus_plan *plan, locus_arena *arena, worker *w)
{
    locus_keys_carve_forward(plan, arena, &w->keys);
    w->tables = (locus_head_tables){0};
    locus_carve_relative_forward(plan, arena, &w->tables);
    locus_carve_pos_k(plan, arena, &w->tables);
    locus_packed_carve(plan, &plan->forward, 0, arena, &w->online.scores);
    locus_queries_carve(plan, &plan->forward, 0, arena, &w->online.queries);
    locus_online_carve(plan, arena, &w->online);
}

size_t locus_tiles_path_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    worker w;
    carve_worker(plan, &arena, &w);
    return arena.used;
}

/* ---- tasks ---- */

int64_t locus_tiles_path_tasks(const locus_plan *plan)
{
    return plan->call.B * plan->call.H * plan->forward_chunks;
}

static head_context task_head(const locus_forward_call *call, int64_t index)
{
    const int64_t bh = index / call->plan->forward_chunks, H = call->plan->call.H;
    head_context head =
        locus_head_at(call->plan, &call->plan->forward, call->in, call->sequence + bh / H, bh % H);
    head.scale_in_panels = 1;
    head.shown = call->shown;
    return head;
}

/* The first query tile of chunk `chunk`, which is the end of the one before. */
static int64_t chunk_start(const locus_plan *plan, int64_t chunk)
{
    return chunk * ceil_div(plan->call.Tq, plan->forward.rows) / plan->forward_chunks;
}

/* Of what the next head will read, the part that goes with query tile `tile` of the task. */
static void fetch_head(const locus_forward_call *call, worker *w, const head_context *next,
                       int64_t tile)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *in = call->in;
    const int64_t done = tile - w->tile_from, all = w->tile_to - w->tile_from;
    const int64_t Tk = plan->call.Tk, from = done * Tk / all, to = (done + 1) * Tk / all;
    if (next->b != w->head.b || next->kv != w->head.kv) {
        locus_prefetch_add(&w->prefetch, &in->k, next->b, next->kv, from, to);
        locus_prefetch_add(&w->prefetch, &in->v, next->b, next->kv, from, to);
    }
    if (next->h == w->head.h || call->tables != NULL) return;
    const locus_tensor *const tables[] = {locus_key_table(plan, in),
                                          locus_key_side_table(plan, in)};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        locus_prefetch_table(&w->prefetch, plan, tables[i], next->h, done, done + 1, all);
    if (locus_present(&in->pos_k)) {
        const int64_t first = locus_position_row(plan, 0);
        const int64_t rows = max_i64(0, min_i64(Tk, in->pos_k.shape[1] - first));
        locus_prefetch_add(&w->prefetch, &in->pos_k, 0, next->h, first + done * rows / all,
                           first + (done + 1) * rows / all);
    }
}

/* The next query tile of this thread: of the same task, or the first one of another. */
static void fetch_next(const locus_forward_call *call, worker *w, int64_t tile, int64_t products)
{
    const locus_plan *plan = call->plan;
    const int64_t after = w->task + call->task_step;
    const int64_t next_task = after < locus_tiles_path_tasks(plan) ? after : w->task;
    const head_context next = task_head(call, next_task);
    const int last = tile + 1 == w->tile_to;
    const head_context *then = last ? &next : &w->head;
    const int64_t next_tile = last ? chunk_start(plan, next_task % plan->forward_chunks) : tile + 1;
    const int64_t first = next_tile * plan->forward.rows;
    const int64_t end = min_i64(first + plan->forward.rows, plan->call.Tq);
    locus_prefetch_begin(&w->prefetch);
    locus_prefetch_add(&w->prefetch, &call->in->q, then->b, then->h, first, end);
    locus_prefetch_add(&w->prefetch, &call->results->out, then->b, then->h, first, end);
    fetch_head(call, w, &next, tile);
    locus_prefetch_spread(&w->prefetch, products);
}

static void attend_query_tile(const locus_forward_call *call, worker *w, int64_t tile)
{
    locus_online *online = &w->online;
    locus_online_begin(online, &w->head, tile * call->plan->forward.rows);
    const locus_queries *queries = &online->queries;
    const int64_t key_tiles = queries->tile_to - queries->tile_from;
    if (key_tiles == 1 && locus_value_table(call->plan, call->in) == NULL)
        online->results = call->results;
    /* the product of values fetches rows, too, where it writes out itself */
    if (locus_tile_fetches(call->plan))
        fetch_next(call, w, tile, key_tiles + (online->results != NULL));
    for (int64_t n = 0; n < key_tiles; n++)
        locus_online_step(online,
                          locus_tile_in_turn(call->plan, queries->tile_from, queries->tile_to, n));
    locus_online_end(online);
    locus_online_write(online, call->results);
}

void locus_tiles_path_run(const locus_forward_call *call, int64_t task, uint32_t thread)
{
    const locus_plan *plan = call->plan;
    const int64_t chunk = task % plan->forward_chunks;
    locus_arena arena = locus_forward_scratch(call, thread);
    worker w = {.task = task,
                .tile_from = chunk_start(plan, chunk),
                .tile_to = chunk_start(plan, chunk + 1),
                .head = task_head(call, task)};
    carve_worker(plan, &arena, &w);
    w.online.path = &locus_packed;
    w.online.without_sink = 0;
    w.online.kept = locus_kept_weights(call);
    w.online.scores.keys = &w.keys;
    w.online.scores.tables = &w.tables;
    w.online.scores.prefetch = &w.prefetch;
    w.online.scores.bias = locus_head_bias(call->bias, w.head.h);
    w.online.scores.shared = call->shared;
    if (call->tables != NULL) {
        w.tables = locus_tables_of_head(call->tables, w.head.h);
    } else {
        locus_pack_relative(&w.head, &w.tables);
        locus_pack_pos_k(&w.head, &w.tables, 0, plan->call.Tk);
    }
    locus_keys_pack(&w.head, &w.keys, 0, plan->call.Tk);
    for (int64_t tile = w.tile_from; tile < w.tile_to; tile++) attend_query_tile(call, &w, tile);
}
