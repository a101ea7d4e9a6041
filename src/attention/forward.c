/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "attention/tables.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/tensor.h"

typedef struct forward_call {
    const locus_plan *plan;
    const locus_tensors *in;
    const locus_results *results;
    const locus_tables *tables; /* NULL: the call packs its own */
    float *bias;                /* [H][locus_bias_room]         */
    char *workers;
    size_t worker_bytes;
} forward_call;

static size_t worker_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    locus_worker worker;
    locus_worker_carve(plan, &plan->forward, 0, &arena, &worker);
    return arena.used;
}

/* Shared tables first, then one piece per thread. */
static size_t carve(const locus_plan *plan, char *base, forward_call *call)
{
    locus_arena arena = {base, 0};
    call->bias = locus_take_floats(&arena, plan->call.H * locus_bias_room(plan, &plan->forward));
    call->worker_bytes = worker_bytes(plan);
    call->workers = locus_take(&arena, plan->threads, call->worker_bytes);
    return arena.used;
}

size_t locus_forward_workspace(const locus_plan *plan)
{
    forward_call call;
    return carve(plan, NULL, &call) + 63;
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

/* out[i] += sum of folded weights times value table entries */
static void flush_values(void *context, const locus_head *head, const locus_band *band,
                         const locus_strip *strip, int64_t count)
{
    const locus_block *entries = context;
    const int64_t Dv = head->plan->call.Dv;
    locus_add_entries(head, entries, strip, band->rows, count, head->worker->out + band->first * Dv,
                      Dv, Dv);
}

/* out[i] = carry[i] out[i] + sum_j P[i][j] (v_j + RV[row(delta)]); the second part waits in
 * the fold. */
static void add_values(const locus_head *head, const locus_tile *tile, locus_block *entries,
                       locus_strips *fold)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const locus_geometry *g = head->geometry;
    const int64_t Dv = plan->call.Dv;
    const float *weights = w->score;
    if (plan->call.dropout > 0.0) locus_tile_drop(head, tile, w->score, w->score, NULL);
    for (int64_t i = 0; i < tile->rows; i++)
        if (w->carry[i] != 1.0f)
            plan->kernels->scale(w->out + i * Dv, w->out + i * Dv, w->carry[i], Dv);

    const locus_block values = locus_value_block(head, tile, w->clean[0]);
    plan->kernels->gemm(w->out, Dv, weights, g->stride, 1, values.clean, values.clean_row,
                        tile->rows, tile->columns, Dv, 1);
    locus_patch(head, tile, weights, w->out, Dv, locus_by_row(), &values, locus_by_column(), Dv);
    if (entries == NULL) return;

    for (int64_t i = 0; i < tile->rows; i++)
        if (w->carry[i] != 1.0f) locus_strips_scale(head, fold, i, w->carry[i]);
    locus_strips_fold(head, tile, weights, fold, flush_values, entries);
    locus_patch(head, tile, weights, w->out, Dv, locus_by_row(), entries,
                locus_by_entry(head, tile), Dv);
}

/* out / sum and lse = top + ln sum; a row that saw nothing has sum 0. */
static void finish_rows(const locus_head *head, const locus_rows *rows,
                        const locus_results *results)
{
    const locus_worker *w = head->worker;
    const int64_t Dv = head->plan->call.Dv;
    for (int64_t i = 0; i < rows->count; i++) {
        const int empty = w->sum[i] == 0.0f;
        float *out = locus_f32(&results->out, head->b, head->h, rows->first + i);
        if (empty)
            memset(out, 0, (size_t)Dv * sizeof *out);
        else
            head->plan->kernels->scale(out, w->out + i * Dv, 1.0f / w->sum[i], Dv);
        *locus_f32(&results->lse, head->b, head->h, rows->first + i) =
            empty ? -INFINITY : (float)((double)w->top[i] + log((double)w->sum[i]));
    }
}

/* The next query tile of this worker: of the same task, or the first one of another. */
static void look_ahead(const forward_call *call, const locus_head *head, const task *now,
                       int64_t tile, int64_t tiles)
{
    const locus_plan *plan = call->plan;
    locus_lookahead *look = &head->worker->progress->look;
    const int64_t after = (int64_t)now->index + (int64_t)plan->threads;
    const task next = task_at(plan, after < task_count(plan) ? after : (int64_t)now->index);
    const int last = tile + 1 == now->to;
    const task *then = last ? &next : now;
    const int64_t first = (last ? next.from : tile + 1) * plan->forward.rows;
    const int64_t end = locus_least(first + plan->forward.rows, plan->call.Tq);
    const int64_t done = tile - now->from, all = now->to - now->from, Tk = plan->call.Tk;
    locus_ahead_begin(look);
    locus_ahead_add(look, &call->in->q, then->b, then->h, first, end);
    locus_ahead_add(look, &call->results->out, then->b, then->h, first, end);
    if (next.b != now->b || next.kv != now->kv) {
        locus_ahead_add(look, &call->in->k, next.b, next.kv, done * Tk / all,
                        (done + 1) * Tk / all);
        locus_ahead_add(look, &call->in->v, next.b, next.kv, done * Tk / all,
                        (done + 1) * Tk / all);
    }
    locus_ahead_spread(look, 2 * tiles);
}

static void attend_rows(const forward_call *call, const locus_head *head, const task *now,
                        int64_t tile_number)
{
    locus_worker *w = head->worker;
    const locus_results *results = call->results;
    locus_rows rows;
    locus_rows_reach(head, tile_number * head->plan->forward.rows, &rows);
    look_ahead(call, head, now, tile_number, rows.tile_to - rows.tile_from);
    locus_rows_load(head, &rows);
    memset(w->out, 0, (size_t)(rows.count * head->plan->call.Dv) * sizeof *w->out);
    for (int64_t i = 0; i < rows.count; i++) {
        w->top[i] = -INFINITY;
        w->sum[i] = 0.0f;
    }
    const locus_tensor *table = locus_value_table(head->plan, head->in);
    locus_block values = {0};
    if (table != NULL) values = locus_entries(head, table, w->value_table_bad);
    locus_block *entries = table != NULL ? &values : NULL;
    locus_strips key_strips, fold;
    locus_strips_begin(head, w->strips[0], &key_strips);
    locus_strips_begin(head, w->strips[1], &fold);
    locus_head rolling = *head;
    rolling.key_strips = &key_strips;
    const locus_finish finish = {.greatest = w->greatest};
    for (int64_t t = rows.tile_from; t < rows.tile_to; t++) {
        locus_tile tile;
        if (!locus_tile_begin(head, &rows, t, &tile)) continue;
        const int found = locus_tile_scores(&rolling, &rows, &tile, &finish);
        head->plan->kernels->softmax_step(w->score, head->geometry->stride, tile.rows, tile.columns,
                                          found ? w->greatest : NULL, w->top, w->sum, w->carry);
        add_values(head, &tile, entries, &fold);
    }
    if (entries != NULL) locus_strips_flush(head, rows.count, &fold, flush_values, entries);
    finish_rows(head, &rows, results);
}

static void attend_chunk(void *context, size_t index, uint32_t worker_number)
{
    const forward_call *call = context;
    const locus_plan *plan = call->plan;
    const task now = task_at(plan, (int64_t)index);
    locus_worker worker;
    locus_arena arena = {call->workers + worker_number * call->worker_bytes, 0};
    locus_worker_carve(plan, &plan->forward, 0, &arena, &worker);
    const locus_head head = {
        .plan = plan,
        .geometry = &plan->forward,
        .in = call->in,
        .worker = &worker,
        .unpacked = plan->few_rows,
        .b = now.b,
        .h = now.h,
        .kv = now.kv,
        .bias = locus_head_bias(plan, &plan->forward, call->bias, now.h),
        .tables = call->tables,
    };
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
    if (workspace == NULL || bytes < locus_forward_workspace(plan))
        return locus_fail(error, LOCUS_ERR_WORKSPACE, "workspace: found %zu bytes, expected %zu",
                          workspace ? bytes : 0, locus_forward_workspace(plan));
    return LOCUS_OK;
}

static locus_status forward(const locus_plan *plan, const locus_tables *tables,
                            const locus_tensors *in, const locus_results *results, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    LOCUS_TRY(check_call(plan, in, results, workspace, workspace_bytes, error));
    forward_call call = {.plan = plan, .in = in, .results = results, .tables = tables};
    carve(plan, locus_align(workspace), &call);
    if (tables != NULL)
        call.bias = tables->bias;
    else
        locus_lower_biases(plan, &plan->forward, in, call.bias);
    if (plan->call.Tq > 0)
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
