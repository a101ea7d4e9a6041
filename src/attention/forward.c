/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/forward.h"
#include "attention/online.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tensor.h"

static size_t worker_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    locus_worker worker;
    locus_worker_carve(plan, &plan->forward, 0, &arena, &worker);
    return arena.used;
}

/* Shared tables first, then one piece per thread. */
static size_t carve(const locus_plan *plan, char *base, locus_forward_call *call)
{
    locus_arena arena = {base, 0};
    /* few rows find theirs tile by tile */
    const int64_t biases = plan->few_rows ? 0 : locus_bias_room(plan, &plan->forward);
    call->bias = locus_take_floats(&arena, plan->call.H * biases);
    call->worker_bytes = worker_bytes(plan);
    call->workers = locus_take(&arena, plan->threads, call->worker_bytes);
    call->partial = locus_take_floats(&arena, locus_decode_floats(plan));
    return arena.used;
}

size_t locus_forward_workspace(const locus_plan *plan)
{
    locus_forward_call call;
    return carve(plan, NULL, &call) + LOCUS_ALIGN_ROOM;
}

void locus_forward_worker(const locus_forward_call *call, uint32_t number, locus_worker *worker)
{
    locus_arena arena = {call->workers + number * call->worker_bytes, 0};
    locus_worker_carve(call->plan, &call->plan->forward, 0, &arena, worker);
}

locus_head locus_forward_head(const locus_forward_call *call, locus_worker *worker, int64_t b,
                              int64_t h)
{
    const locus_plan *plan = call->plan;
    return (locus_head){
        .plan = plan,
        .geometry = &plan->forward,
        .in = call->in,
        .worker = worker,
        .unpacked = plan->few_rows,
        .packs_scale = !plan->few_rows,
        .b = b,
        .h = h,
        .kv = h / (plan->call.H / plan->call.Hk),
        .bias = plan->few_rows && call->tables == NULL
                    ? NULL
                    : locus_head_bias(plan, &plan->forward, call->bias, h),
        .tables = call->tables,
    };
}

/* Task = (batch, head, chunk of query tiles). Rows are independent of each other, so the
 * cut decides nothing about the bits. */
typedef struct task {
    int64_t index;
    int64_t b, h, kv;
    int64_t from, to; /* query tiles */
} task;

static int64_t task_count(const locus_plan *plan)
{
    return plan->call.B * plan->call.H * plan->forward_chunks;
}

static task task_at(const locus_plan *plan, int64_t index)
{
    const int64_t chunks = plan->forward_chunks, H = plan->call.H;
    const int64_t chunk = index % chunks, bh = index / chunks;
    const int64_t tiles = locus_ceil_div(plan->call.Tq, plan->forward.rows);
    return (task){.index = index,
                  .b = bh / H,
                  .h = bh % H,
                  .kv = bh % H / (H / plan->call.Hk),
                  .from = chunk * tiles / chunks,
                  .to = (chunk + 1) * tiles / chunks};
}

/* Of what the next head will read, the share that goes with one of `all` tiles. */
static void look_at_rows(locus_lookahead *look, const float *rows, int64_t row, int64_t width,
                         int64_t count, int64_t tile, int64_t all)
{
    const int64_t from = tile * count / all, to = (tile + 1) * count / all;
    locus_ahead_push(look, (locus_ahead){rows + from * row, row, width, to - from});
}

static void look_at_head(const locus_forward_call *call, locus_lookahead *look, const task *next,
                         int64_t tile, int64_t all)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *in = call->in;
    const int64_t D = plan->call.D, Tk = plan->call.Tk;
    look_at_rows(look, locus_f32(&in->k, next->b, next->kv, 0), in->k.stride[2], D, Tk, tile, all);
    look_at_rows(look, locus_f32(&in->v, next->b, next->kv, 0), in->v.stride[2], plan->call.Dv, Tk,
                 tile, all);
}

/* Tables of its own that it will read as they lie or pack. */
static void look_at_tables(const locus_forward_call *call, locus_lookahead *look, const task *next,
                           int64_t tile, int64_t all)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *in = call->in;
    const locus_tensor *const tables[] = {locus_key_table(plan, in), locus_query_table(plan, in)};
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        if (tables[i] == NULL || tables[i]->rank != 3) continue;
        int64_t row;
        const float *entries = locus_table_entries(plan, tables[i], next->h, &row);
        look_at_rows(look, entries, row, tables[i]->shape[2], plan->row_count, tile, all);
    }
    if (locus_present(&in->pos_k))
        look_at_rows(look, locus_f32(&in->pos_k, next->h, 0, 0), in->pos_k.stride[1], plan->call.D,
                     locus_least(plan->call.Tk, in->pos_k.shape[1]), tile, all);
}

/* The next query tile of this worker: of the same task, or the first one of another. */
static void look_ahead(const locus_forward_call *call, const locus_head *head, const task *now,
                       int64_t tile, int64_t products)
{
    const locus_plan *plan = call->plan;
    locus_lookahead *look = &head->worker->progress->look;
    const int64_t after = (int64_t)now->index + (int64_t)plan->threads;
    const task next = task_at(plan, after < task_count(plan) ? after : (int64_t)now->index);
    const int last = tile + 1 == now->to;
    const task *then = last ? &next : now;
    const int64_t first = (last ? next.from : tile + 1) * plan->forward.rows;
    const int64_t end = locus_least(first + plan->forward.rows, plan->call.Tq);
    const int64_t done = tile - now->from, all = now->to - now->from;
    locus_ahead_begin(look);
    locus_ahead_add(look, &call->in->q, then->b, then->h, first, end);
    locus_ahead_add(look, &call->results->out, then->b, then->h, first, end);
    if (next.b != now->b || next.kv != now->kv) look_at_head(call, look, &next, done, all);
    if (next.h != now->h && call->tables == NULL) look_at_tables(call, look, &next, done, all);
    locus_ahead_spread(look, 2 * products);
}

/* The next key tile, where keys do not stay near from one query tile to another. */
static void look_at_keys(const locus_head *head, int64_t key_tile)
{
    const locus_plan *plan = head->plan;
    locus_lookahead *look = &head->worker->progress->look;
    const int64_t from = key_tile * plan->forward.keys, D = plan->call.D;
    const int64_t to = locus_least(from + plan->forward.keys, plan->call.Tk);
    const int64_t products = plan->index != NULL ? plan->forward.rows / BAND_ROWS : 1;
    const locus_ahead panels = {.rows = head->worker->key_panels + locus_panel_at(from, D),
                                .row = LOCUS_PANEL,
                                .width = LOCUS_PANEL,
                                .count = locus_panel_floats(to - from, D) / LOCUS_PANEL};
    locus_ahead_begin(look);
    locus_ahead_push(look, panels);
    int64_t row;
    const float *values = locus_value_rows(head, from, &row);
    locus_ahead_push(look, (locus_ahead){values, row, plan->call.Dv, to - from});
    locus_ahead_spread(look, 2 * products);
}

static void attend_rows(const locus_forward_call *call, const locus_head *head, const task *now,
                        int64_t tile_number)
{
    const locus_worker *w = head->worker;
    locus_online online;
    locus_online_begin(&online, head, tile_number * head->plan->forward.rows);
    const locus_rows *rows = &online.rows;
    const int64_t tiles = rows->tile_to - rows->tile_from;
    if (tiles == 1 && locus_value_table(head->plan, head->in) == NULL)
        online.results = call->results;
    const int far = head->plan->keys_far;
    /* the product of values brings rows near too where it writes out itself */
    if (!far) look_ahead(call, head, now, tile_number, tiles + (online.results != NULL));
    for (int64_t t = rows->tile_from; t < rows->tile_to; t++) {
        if (far && t + 1 < rows->tile_to)
            look_at_keys(head, t + 1);
        else if (far)
            look_ahead(call, head, now, tile_number, 1);
        locus_online_step(&online, t);
    }
    locus_online_flush(&online);
    if (!online.written) locus_online_write(head, rows, call->results, w->top, w->sum, w->out);
}

static void attend_chunk(void *context, size_t index, uint32_t worker_number)
{
    const locus_forward_call *call = context;
    const locus_plan *plan = call->plan;
    const task now = task_at(plan, (int64_t)index);
    locus_worker worker;
    locus_forward_worker(call, worker_number, &worker);
    const locus_head head = locus_forward_head(call, &worker, now.b, now.h);
    if (call->tables != NULL) locus_tables_use(&head);
    locus_head_pack(&head, 0, plan->call.Tk, 0);
    for (int64_t tile = now.from; tile < now.to; tile++) attend_rows(call, &head, &now, tile);
}

static locus_status check_call(const locus_plan *plan, const locus_tensors *in,
                               const locus_results *results, const void *workspace, size_t bytes,
                               locus_error *error)
{
    if (plan == NULL || in == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "forward: NULL argument");
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
    LOCUS_TRY(check_call(plan, in, results, workspace, workspace_bytes, error));
    locus_forward_call call = {.plan = plan, .in = in, .results = results, .tables = tables};
    carve(plan, locus_align(workspace), &call);
    if (tables != NULL)
        call.bias = tables->bias;
    else if (!plan->few_rows)
        locus_lower_biases(plan, &plan->forward, in, call.bias);
    if (plan->call.Tq > 0 && plan->few_rows)
        locus_decode(&call);
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
