/* SPDX-License-Identifier: Apache-2.0 */
/* The forward call. Task = (batch entry, head, chunk of its query tiles). Rows are independent of
 * each other, so the cut decides nothing about the bits. */

#include "attention/check.h"
#include "attention/forward_call.h"
#include "attention/gathered.h"
#include "attention/lower.h"
#include "attention/online.h"
#include "attention/packed.h"
#include "attention/rows_path.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

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

static size_t thread_bytes(const locus_plan *plan)
{
    if (plan->rows_path) return locus_rows_path_bytes(plan);
    locus_arena arena = {NULL, 0};
    worker w;
    carve_worker(plan, &arena, &w);
    return arena.used;
}

/* Shared tables first, then one piece per thread. Returns the room for biases. */
static float *carve(const locus_plan *plan, locus_arena *arena, locus_forward_call *call)
{
    /* the rows path finds its biases tile by tile */
    const int64_t biases = plan->rows_path ? 0 : locus_bias_room(plan, &plan->forward);
    float *bias = locus_take_floats(arena, plan->call.H * biases);
    locus_gather_carve(plan, arena, arena->base != NULL ? call->in : &plan->shapes,
                       &call->gathered);
    call->scratch_bytes = thread_bytes(plan);
    call->scratch = locus_take(arena, plan->threads, call->scratch_bytes);
    call->partial = locus_take_floats(arena, locus_rows_path_partial(plan));
    return bias;
}

size_t locus_forward_workspace(const locus_plan *plan)
{
    locus_forward_call call;
    locus_arena arena = {NULL, 0};
    carve(plan, &arena, &call);
    return arena.used + LOCUS_ALIGN_ROOM;
}

/* ---- tasks ---- */

static int64_t task_count(const locus_plan *plan)
{
    return plan->call.B * plan->call.H * plan->forward_chunks;
}

static head_context task_head(const locus_forward_call *call, int64_t index)
{
    const int64_t bh = index / call->plan->forward_chunks, H = call->plan->call.H;
    head_context head = locus_head_at(call->plan, &call->plan->forward, call->in, bh / H, bh % H);
    head.scale_in_panels = 1;
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
        const int64_t rows = min_i64(Tk, in->pos_k.shape[1]);
        locus_prefetch_add(&w->prefetch, &in->pos_k, 0, next->h, done * rows / all,
                           (done + 1) * rows / all);
    }
}

/* The next query tile of this thread: of the same task, or the first one of another. */
static void fetch_next(const locus_forward_call *call, worker *w, int64_t tile, int64_t products)
{
    const locus_plan *plan = call->plan;
    const int64_t after = w->task + (int64_t)plan->threads;
    const int64_t next_task = after < task_count(plan) ? after : w->task;
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
    fetch_next(call, w, tile, key_tiles + (online->results != NULL));
    for (int64_t t = queries->tile_from; t < queries->tile_to; t++) locus_online_step(online, t);
    locus_online_end(online);
    locus_online_write(online, call->results);
}

static void attend_chunk(void *context, size_t index, uint32_t thread)
{
    const locus_forward_call *call = context;
    const locus_plan *plan = call->plan;
    const int64_t chunk = (int64_t)index % plan->forward_chunks;
    locus_arena arena = locus_forward_scratch(call, thread);
    worker w = {.task = (int64_t)index,
                .tile_from = chunk_start(plan, chunk),
                .tile_to = chunk_start(plan, chunk + 1),
                .head = task_head(call, (int64_t)index)};
    carve_worker(plan, &arena, &w);
    w.online.path = &locus_packed;
    w.online.without_sink = 0;
    w.online.scores.keys = &w.keys;
    w.online.scores.tables = &w.tables;
    w.online.scores.prefetch = &w.prefetch;
    w.online.scores.bias = locus_head_bias(plan, &plan->forward, call->bias, w.head.h);
    if (call->tables != NULL) {
        w.tables = locus_tables_of_head(call->tables, w.head.h);
    } else {
        locus_pack_relative(&w.head, &w.tables);
        locus_pack_pos_k(&w.head, &w.tables, 0, plan->call.Tk);
    }
    locus_keys_pack(&w.head, &w.keys, 0, plan->call.Tk);
    for (int64_t tile = w.tile_from; tile < w.tile_to; tile++) attend_query_tile(call, &w, tile);
}

/* ---- the call ---- */

static locus_status check_call(const locus_plan *plan, const locus_tensors *in,
                               const locus_results *results, const void *workspace, size_t bytes,
                               locus_error *error)
{
    LOCUS_TRY(locus_check_inputs(plan, in, error));
    LOCUS_TRY(locus_check_results(plan, results, error));
    const locus_tensor outputs[] = {results->out, results->lse};
    LOCUS_TRY(
        locus_check_output_overlap(in, outputs, (const char *const[]){"out", "lse"}, 2, error));
    return locus_check_memory("workspace", workspace, bytes, locus_forward_workspace(plan), error);
}

static locus_status forward(const locus_plan *plan, const locus_tables *tables,
                            const locus_tensors *in, const locus_results *results, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    locus_tensors own_in;
    locus_results own_results;
    if (plan == NULL || in == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "forward: NULL argument");
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&results, &own_results, "results", error));
    LOCUS_TRY(check_call(plan, in, results, workspace, workspace_bytes, error));
    locus_forward_call call = {.plan = plan, .in = in, .results = results, .tables = tables};
    locus_arena arena = {locus_align(workspace), 0};
    float *bias = carve(plan, &arena, &call);
    if (plan->entry_row != NULL) {
        locus_gather(plan, in, &call.gathered);
        call.in = in = &call.gathered;
    }
    if (tables == NULL && !plan->rows_path) locus_lower_biases(plan, &plan->forward, in, bias);
    if (tables != NULL)
        call.bias = tables->bias;
    else if (!plan->rows_path)
        call.bias = bias;
    if (plan->call.Tq > 0 && plan->rows_path)
        locus_rows_path(&call);
    else if (plan->call.Tq > 0)
        locus_parallel_for(plan->threads, (size_t)task_count(plan), attend_chunk, &call);
    return LOCUS_OK;
}

locus_status locus_forward(const locus_plan *plan, const locus_tensors *in,
                           const locus_results *results, void *workspace, size_t workspace_bytes,
                           locus_error *error)
{
    return forward(plan, NULL, in, results, workspace, workspace_bytes, error);
}

locus_status locus_forward_prepared(const locus_plan *plan, const locus_tables *tables,
                                    const locus_tensors *in, const locus_results *results,
                                    void *workspace, size_t workspace_bytes, locus_error *error)
{
    if (tables == NULL || tables->plan != plan)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "forward: tables: found %s, expected those made for this plan",
                          tables == NULL ? "NULL" : "those of another plan");
    return forward(plan, tables, in, results, workspace, workspace_bytes, error);
}
