/* SPDX-License-Identifier: Apache-2.0 */
/* The backward call: workspace, tasks, rounds. See backward_call.h. */

#include <math.h>
#include <string.h>

#include "attention/bias_parameters.h"
#include "attention/check.h"
#include "attention/gathered.h"
#include "attention/gradients.h"
#include "attention/lower.h"
#include "attention/reduce.h"
#include "attention/spread.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

/* ---- workspace ---- */

/* Everything a plan could be asked for, which is what the size query answers. */
static locus_wanted want_all(const locus_plan *plan)
{
    const locus_tensors *s = &plan->shapes;
    const locus_wanted all = {
        .q = 1,
        .k = 1,
        .v = 1,
        .u = locus_present(&s->u),
        .w = locus_present(&s->w),
        .key_table = locus_key_table(plan, s) != NULL,
        .key_side_table = locus_key_side_table(plan, s) != NULL,
        .value_table = locus_value_table(plan, s) != NULL,
        .bias = plan->has_bias,
        .pair_bias = plan->has_pair_bias,
        .pos_q = locus_present(&s->pos_q),
        .pos_k = locus_present(&s->pos_k),
        .cls = locus_present(&s->cls),
        .sink = locus_present(&s->sink),
        .dense = locus_present(&s->bias_dense),
    };
    return all;
}

static locus_wanted want_present(const locus_plan *plan, const locus_tensors *grad)
{
    locus_wanted wanted = want_all(plan);
    wanted.q = locus_present(&grad->q);
    wanted.k = locus_present(&grad->k);
    wanted.v = locus_present(&grad->v);
    wanted.u &= locus_present(&grad->u);
    wanted.w &= locus_present(&grad->w);
    wanted.key_table &= locus_key_table(plan, grad) != NULL;
    wanted.key_side_table &= locus_key_side_table(plan, grad) != NULL;
    wanted.value_table &= locus_value_table(plan, grad) != NULL;
    wanted.bias &= locus_bias_is_wanted(plan, grad);
    wanted.pair_bias &= locus_bias_is_wanted(plan, grad);
    wanted.pos_q &= locus_present(&grad->pos_q);
    wanted.pos_k &= locus_present(&grad->pos_k);
    wanted.cls &= locus_present(&grad->cls);
    wanted.sink &= locus_present(&grad->sink);
    wanted.dense &= locus_present(&grad->bias_dense);
    return wanted;
}

/* As many slots as the budget allows, at least one, a function of the shapes alone. */
static int64_t slot_count(const locus_plan *plan, size_t slot_bytes)
{
    const int64_t fit = (int64_t)(LOCUS_PARTIAL_BYTES / (slot_bytes > 0 ? slot_bytes : 1));
    const int64_t wanted = min_i64(locus_backward_tasks(plan), MAX_SLOTS);
    return max_i64(1, min_i64(fit, wanted));
}

/* The gradients that are summed in double, by distance and by parameter. */
static void carve_totals(const locus_plan *plan, locus_arena *arena, locus_backward_call *call)
{
    const int64_t H = plan->call.H;
    const int cls = locus_present(&plan->shapes.cls);
    call->bias_total = locus_take(arena, plan->has_bias ? H * plan->span : 0, sizeof(double));
    call->cls_total = locus_take(arena, cls ? H * 2 : 0, sizeof(double));
    call->exact = locus_take(arena, locus_bias_numbers(plan), sizeof(double));
    call->sink_total = locus_take(arena, locus_present(&plan->shapes.sink) ? H : 0, sizeof(double));
}

static size_t thread_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    locus_backward_worker worker;
    locus_backward_worker_carve(plan, &arena, &worker);
    return arena.used;
}

/* What is left for the slots of all tasks together. */
static size_t slot_bytes(const locus_plan *plan, const locus_wanted *owned)
{
    locus_wanted all = want_all(plan);
    locus_slot slot;
    if (locus_heads_own_keys(plan, 1) && plan->backward_chunks == 1) all.k = all.v = 0;
    if (plan->call.B == 1 && plan->backward_chunks == 1) locus_leave_out(owned, &all);
    return locus_slot_carve(plan, &all, NULL, &slot);
}

static size_t carve(const locus_plan *plan, char *base, locus_backward_call *call)
{
    locus_arena arena = {base, 0};
    locus_gather_carve(plan, &arena, base != NULL ? call->in : &plan->shapes, &call->gathered);
    locus_gather_carve(plan, &arena, base != NULL ? call->grad : &plan->shapes,
                       &call->gathered_grad);
    call->bias = locus_take_floats(&arena, plan->call.H * locus_bias_room(plan, &plan->backward));
    carve_totals(plan, &arena, call);
    if (locus_heads_share_tables(plan))
        locus_carve_relative_backward(plan, &arena, &call->relative);
    call->scratch_bytes = thread_bytes(plan);
    call->scratch = locus_take(&arena, plan->threads, call->scratch_bytes);
    call->owned = locus_owned_tables(plan);
    call->slot_bytes = slot_bytes(plan, &call->owned);
    call->slots = locus_take(&arena, slot_count(plan, call->slot_bytes), call->slot_bytes);
    return arena.used;
}

size_t locus_backward_workspace(const locus_plan *plan)
{
    locus_backward_call call;
    return carve(plan, NULL, &call) + LOCUS_ALIGN_ROOM;
}

/* ---- what comes next ---- */

/* The part of the next head that belongs to its keys [from, to). */
static void fetch_head(const locus_backward_call *call, const backward_task *next, int64_t from,
                       int64_t to, locus_prefetch *prefetch)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *in = call->in, *grad = call->grad;
    locus_prefetch_add(prefetch, &in->k, next->b, next->kv, from, to);
    locus_prefetch_add(prefetch, &in->v, next->b, next->kv, from, to);
    if (next->owns_keys) {
        locus_prefetch_add(prefetch, &grad->k, next->b, next->kv, from, to);
        locus_prefetch_add(prefetch, &grad->v, next->b, next->kv, from, to);
    }
    if (next->owns_tables) {
        const locus_tensor *const tables[] = {locus_key_table(plan, in),
                                              locus_key_table(plan, grad)};
        for (size_t i = 0; i < 2; i++)
            locus_prefetch_table(prefetch, plan, tables[i], next->h, from, to, plan->call.Tk);
    }
    if (locus_present(&in->pos_k)) {
        const int64_t known = min_i64(to, in->pos_k.shape[1]);
        locus_prefetch_add(prefetch, &in->pos_k, 0, next->h, from, known);
        if (next->owns_tables) locus_prefetch_add(prefetch, &grad->pos_k, 0, next->h, from, known);
    }
}

/* Query rows [from, to) of a task. */
static void fetch_queries(const locus_backward_call *call, const backward_task *task, int64_t from,
                          int64_t to, locus_prefetch *prefetch)
{
    const locus_tensors *in = call->in, *grad = call->grad;
    const locus_tensor *const rows[] = {&in->q, call->dout, &call->results->out, &grad->q};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        locus_prefetch_add(prefetch, rows[i], task->b, task->h, from, to);
    if (!locus_present(&in->pos_q)) return;
    const int64_t offset = call->plan->call.query_offset, low = max_i64(0, from + offset);
    const int64_t high = min_i64(to + offset, in->pos_q.shape[1]);
    locus_prefetch_add(prefetch, &in->pos_q, 0, task->h, low, high);
    if (task->owns_tables) locus_prefetch_add(prefetch, &grad->pos_q, 0, task->h, low, high);
}

/* What the thread needs after query tiles [from, to) of the task, which take `tiles` tiles: for the
 * group that follows in it, or for the first one of its next task. A tile has two products. */
static void fetch_next(const locus_backward_call *call, const backward_task *now, int64_t from,
                       int64_t to, int64_t tiles, locus_prefetch *prefetch)
{
    const locus_plan *plan = call->plan;
    const int64_t rows = plan->backward.rows, after = now->index + (int64_t)plan->threads;
    const backward_task next =
        locus_backward_task_at(plan, after < locus_backward_tasks(plan) ? after : now->index,
                               call->accumulate);
    const int last = to == now->tile_to;
    const int64_t first = (last ? next.tile_from : to) * rows;
    const int64_t end = min_i64(first + plan->backward.group * rows, plan->call.Tq);
    const int64_t all = now->tile_to - now->tile_from, Tk = plan->call.Tk;
    locus_prefetch_begin(prefetch);
    fetch_queries(call, last ? &next : now, first, end, prefetch);
    if (next.b != now->b || next.kv != now->kv)
        fetch_head(call, &next, (from - now->tile_from) * Tk / all,
                   (to - now->tile_from) * Tk / all, prefetch);
    locus_prefetch_spread(prefetch, 2 * tiles);
}

/* ---- tasks ---- */

/* sum += scale (the sum of the rows) */
static void add_rows(const locus_plan *plan, const float *rows, int64_t count, float *sum)
{
    const int64_t D = plan->call.D;
    plan->kernels->scale_rows(sum, 0, rows, D, NULL, (float)plan->call.scale, count, D, 1);
}

/* dq = scale (dcontent turned back + dposition); du, dw: their sums over the rows. A row of dq
 * belongs to one query tile of one task. */
static void finish_queries(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const locus_tensor *q = &w->call->grad->q;
    const int64_t D = plan->call.D, first = rows->queries.first, count = rows->queries.count;
    const float factor = (float)plan->call.scale;
    if (w->slot->u != NULL) add_rows(plan, rows->dcontent, count, w->slot->u);
    if (w->slot->w != NULL) add_rows(plan, rows->dposition, count, w->slot->w);
    if (!w->call->wanted.q) return;
    if (plan->turn_query != NULL)
        locus_turn_rows(plan, (locus_sums){rows->dcontent, D}, rows->dcontent, D,
                        locus_query_turns(plan, w->head.b, first), -1.0f, count);
    float *to = locus_query_row(&w->head, q, first);
    plan->kernels->scale_rows(to, q->stride[2], rows->dcontent, D, NULL, factor, count, D,
                              w->call->accumulate);
    if (plan->index != NULL && !plan->same_query_rows)
        plan->kernels->scale_rows(to, q->stride[2], rows->dposition, D, NULL, factor, count, D, 1);
}

/* The sink has the weight e^(sink - lse) and no value, so its dS is -e^(sink - lse) row_dot. */
static void add_sink(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const double sink = (double)locus_head_sink(&w->head);
    for (int64_t i = 0; i < rows->queries.count; i++) {
        if (rows->lse[i] == -INFINITY || sink == -INFINITY) continue;
        const double weight = exp(sink - (double)rows->lse[i]) * (double)rows->factor[i];
        *w->slot->sink -= weight * (double)rows->row_dot[i];
    }
}

static void finish_rows(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const locus_wanted *wanted = &w->call->wanted;
    const locus_sums pos_q = w->slot->pos_q;
    const int64_t D = plan->call.D;
    if (wanted->q || wanted->u || wanted->w) finish_queries(w, rows);
    if (w->slot->sink != NULL) add_sink(w, rows);
    if (pos_q.data != NULL)
        plan->kernels->scale_rows(pos_q.data + rows->queries.first * pos_q.row_stride,
                                  pos_q.row_stride, rows->dpos_q, D, NULL, (float)plan->call.scale,
                                  rows->queries.count, D, !w->slot->pos_q_fresh);
}

/* Query tiles [from, to): each key tile serves them all before the next one does. Every sum
 * runs in the order of tiles, whatever the group. */
static void run_group(locus_backward_worker *w, const backward_task *task, int64_t from, int64_t to)
{
    const int64_t count = to - from;
    int64_t low = INT64_MAX, high = 0, tiles = 0;
    for (int64_t g = 0; g < count; g++) {
        const locus_queries *q = &w->rows[g].queries;
        locus_gradient_rows_begin(w, (from + g) * w->head.geometry->rows, &w->rows[g]);
        locus_spread_begin(w, &w->rows[g]);
        low = min_i64(low, q->tile_from);
        high = max_i64(high, q->tile_to);
        tiles += q->tile_to - q->tile_from;
    }
    fetch_next(w->call, task, from, to, tiles, &w->prefetch);
    for (int64_t t = low; t < high; t++)
        for (int64_t g = 0; g < count; g++) {
            locus_gradient_rows *rows = &w->rows[g];
            if (t < rows->queries.tile_from || t >= rows->queries.tile_to) continue;
            if (!locus_gradient_tile_begin(w, rows, t)) continue;
            locus_gradient_tile(w, rows);
            locus_spread_tile(w, rows);
        }
    for (int64_t g = 0; g < count; g++) {
        locus_spread_end(w, &w->rows[g]);
        finish_rows(w, &w->rows[g]);
    }
}

/* Turn the task's dk back to where its keys came from. */
static void turn_keys_back(const locus_plan *plan, int64_t b, const locus_slot *slot)
{
    if (plan->turn_key == NULL || slot->k.data == NULL) return;
    locus_turn_rows(plan, slot->k, slot->k.data, slot->k.row_stride, locus_key_turns(plan, b, 0),
                    -1.0f, plan->call.Tk);
}

/* Nothing is hidden, and no row of the task has hidden itself: see locus_gradient_tile_begin. */
static int all_seen(const locus_backward_call *call, const backward_task *task)
{
    const locus_plan *plan = call->plan;
    const int64_t rows = plan->backward.rows;
    const int64_t end = min_i64(task->tile_to * rows, plan->call.Tq);
    for (int64_t m = task->tile_from * rows; !plan->hides && m < end; m++)
        if (*locus_f32(&call->results->lse, task->b, task->h, m) == -INFINITY) return 0;
    return !plan->hides;
}

static void run_task(void *context, size_t index, uint32_t thread)
{
    const locus_backward_call *call = context;
    const locus_plan *plan = call->plan;
    const backward_task task =
        locus_backward_task_at(plan, call->first_task + (int64_t)index, call->accumulate);
    locus_backward_worker worker;
    locus_slot slot;
    locus_backward_worker_begin(call, thread, task.b, task.h, &worker);
    worker.head.all_seen = all_seen(call, &task);
    locus_slot_begin(call, &task, call->slots + index * call->slot_bytes, &slot);
    worker.slot = &slot;
    locus_backward_worker_pack(&worker, 0, plan->call.Tk);
    locus_spread_keys_begin(&worker, task.owns_keys && call->accumulate);
    const int64_t group = plan->backward.group;
    for (int64_t tile = task.tile_from; tile < task.tile_to; tile += group)
        run_group(&worker, &task, tile, min_i64(tile + group, task.tile_to));
    locus_spread_keys_end(&worker);
    turn_keys_back(plan, task.b, &slot);
}

static void run_rounds(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const int64_t tasks = locus_backward_tasks(plan), slots = slot_count(plan, call->slot_bytes);
    for (int64_t first = 0; first < tasks && plan->call.Tq > 0; first += slots) {
        call->first_task = first;
        call->round_tasks = min_i64(slots, tasks - first);
        locus_parallel_for(plan->threads, (size_t)call->round_tasks, run_task, call);
        locus_reduce_round(call);
    }
}

/* ---- a dense bias that is shared by batch entries or heads ---- */

/* dS of one query tile of one head, added to the gradient. */
static void add_dense_tiles(const locus_backward_call *call, uint32_t thread, int64_t b, int64_t h,
                            int64_t tile_number)
{
    const locus_geometry *g = &call->plan->backward;
    locus_backward_worker worker;
    locus_backward_worker_begin(call, thread, b, h, &worker);
    locus_gradient_rows *rows = &worker.rows[0];
    const locus_queries *q = &rows->queries;
    locus_queries_reach(&worker.head, tile_number * g->rows, &rows->queries);
    locus_backward_worker_pack(&worker, q->tile_from * g->keys,
                               min_i64(q->tile_to * g->keys, call->plan->call.Tk));
    locus_gradient_rows_begin(&worker, tile_number * g->rows, rows);
    for (int64_t t = q->tile_from; t < q->tile_to; t++) {
        if (!locus_gradient_tile_begin(&worker, rows, t)) continue;
        locus_gradient_tile(&worker, rows);
        locus_spread_dense(&worker);
    }
}

/* Task = (its batch entry, its head, query tile): adds the heads that share it in order. */
static void run_dense(void *context, size_t index, uint32_t thread)
{
    const locus_backward_call *call = context;
    const locus_plan *plan = call->plan;
    const locus_tensor *to = &call->grad->bias_dense;
    const int64_t tiles = ceil_div(plan->call.Tq, plan->backward.rows);
    const int64_t tile = (int64_t)index % tiles, owner = (int64_t)index / tiles;
    const int64_t b_own = owner / to->shape[1], h_own = owner % to->shape[1];
    for (int64_t b = 0; b < plan->call.B; b++)
        for (int64_t h = 0; h < plan->call.H; h++) {
            if (to->shape[0] != 1 && b != b_own) continue;
            if (to->shape[1] != 1 && h != h_own) continue;
            add_dense_tiles(call, thread, b, h, tile);
        }
}

static void run_dense_tasks(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const locus_tensor *dense = &call->grad->bias_dense;
    const int64_t tiles = ceil_div(plan->call.Tq, plan->backward.rows);
    locus_parallel_for(plan->threads, (size_t)(dense->shape[0] * dense->shape[1] * tiles),
                       run_dense, call);
}

/* ---- the call ---- */

static locus_status check_call(const locus_plan *plan, const locus_tensors *in,
                               const locus_results *results, const locus_results *dresults,
                               const locus_tensors *grad, const void *workspace, size_t bytes,
                               locus_error *error)
{
    LOCUS_TRY(locus_check_inputs(plan, in, error));
    LOCUS_TRY(locus_check_results(plan, results, error));
    LOCUS_TRY(locus_check_gradients(plan, in, results, dresults, grad, error));
    return locus_check_memory("workspace", workspace, bytes, locus_backward_workspace(plan), error);
}

/* Entries in place of the rows of tables, if the map jumps: from here on, the call has no others. */
static void begin_tables(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    if (plan->entry_row == NULL) return;
    locus_gather(plan, call->in, &call->gathered);
    locus_gather_zero(plan, &call->gathered_grad);
    call->in = &call->gathered;
    call->grad = &call->gathered_grad;
}

static void finish_tables(const locus_backward_call *call, const locus_tensors *grad)
{
    if (call->plan->entry_row == NULL) return;
    if (!call->accumulate) locus_reduce_zero_tables(call->plan, grad);
    locus_scatter(call->plan, &call->gathered_grad, grad);
}

/* Totals start from 0; relative tables that heads share are packed once. */
static void begin_call(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const locus_tensor *dense = &call->grad->bias_dense;
    call->dense_directly =
        call->wanted.dense && dense->shape[0] == plan->call.B && dense->shape[1] == plan->call.H;
    if (!call->accumulate) locus_reduce_zero(call);
    locus_lower_biases(plan, &plan->backward, call->in, call->bias);
    if (call->wanted.bias)
        memset(call->bias_total, 0, (size_t)(plan->call.H * plan->span) * sizeof *call->bias_total);
    if (call->wanted.bias || call->wanted.pair_bias)
        memset(call->exact, 0, (size_t)locus_bias_numbers(plan) * sizeof *call->exact);
    if (call->wanted.cls)
        memset(call->cls_total, 0, (size_t)(2 * plan->call.H) * sizeof *call->cls_total);
    if (call->wanted.sink)
        memset(call->sink_total, 0, (size_t)plan->call.H * sizeof *call->sink_total);
    if (plan->index != NULL && locus_heads_share_tables(plan) && plan->call.H > 0) {
        const head_context head = locus_head_at(plan, &plan->backward, call->in, 0, 0);
        locus_pack_relative(&head, &call->relative);
    }
}

locus_status locus_backward(const locus_plan *plan, const locus_tensors *in,
                            const locus_results *results, const locus_results *dresults,
                            const locus_tensors *grad, uint32_t flags, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    locus_tensors own_in, own_grad;
    locus_results own_results, own_dresults;
    if (plan == NULL || in == NULL || results == NULL || dresults == NULL || grad == NULL ||
        (flags & ~LOCUS_ACCUMULATE) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "backward: NULL argument or unknown flag");
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&results, &own_results, "results", error));
    LOCUS_TRY(locus_adopt_results(&dresults, &own_dresults, "dresults", error));
    LOCUS_TRY(locus_adopt_tensors(&grad, &own_grad, "grad", error));
    LOCUS_TRY(check_call(plan, in, results, dresults, grad, workspace, workspace_bytes, error));
    locus_backward_call call = {
        .plan = plan,
        .in = in,
        .results = results,
        .dout = &dresults->out,
        .dlse = locus_present(&dresults->lse) ? &dresults->lse : NULL,
        .grad = grad,
        .wanted = want_present(plan, grad),
        .accumulate = (flags & LOCUS_ACCUMULATE) != 0,
    };
    carve(plan, locus_align(workspace), &call);
    begin_tables(&call);
    begin_call(&call);
    run_rounds(&call);
    if (call.wanted.bias || call.wanted.pair_bias || call.wanted.cls) locus_reduce_bias(&call);
    if (call.wanted.sink) locus_reduce_sink(&call);
    if (call.wanted.dense && !call.dense_directly) run_dense_tasks(&call);
    finish_tables(&call, grad);
    return LOCUS_OK;
}
