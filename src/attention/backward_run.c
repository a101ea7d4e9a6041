/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/backward_run.h"

#include <math.h>

#include "attention/counted.h"
#include "attention/decay_spread.h"
#include "attention/gates.h"
#include "attention/gradients.h"
#include "attention/spread.h"

static backward_task task_at(const locus_backward_call *call, int64_t index)
{
    backward_task task = locus_backward_task_at(call->plan, index, call->accumulate);
    task.b += call->sequence;
    return task;
}

/* ---- what comes next ---- */

/* Rows of the next head's prepared panels that go with its keys [from, to). */
static void fetch_panels(const locus_plan *plan, const float *panels, int64_t rows, int64_t width,
                         int64_t from, int64_t to, locus_prefetch *prefetch)
{
    const int64_t D = width, Tk = plan->call.Tk, first = from * rows / Tk;
    if (panels == NULL) return;
    locus_prefetch_push(prefetch,
                        (locus_prefetch_rows){panels + first * D, D, D, to * rows / Tk - first});
}

static void fetch_prepared(const locus_backward_call *call, int64_t h, int64_t from, int64_t to,
                           locus_prefetch *prefetch)
{
    const locus_plan *plan = call->plan;
    if (call->tables == NULL) return;
    const locus_head_tables tables = locus_tables_of_head(call->tables, h);
    if (call->tables->key_step != 0)
        fetch_panels(plan, tables.key_panels, plan->row_count, plan->key_width, from, to, prefetch);
    fetch_panels(plan, tables.pos_k_panels, plan->call.Tk, plan->call.D, from, to, prefetch);
}

/* The part of the next head that belongs to its keys [from, to). */
static void fetch_head(const locus_backward_call *call, const backward_task *next, int64_t from,
                       int64_t to, locus_prefetch *prefetch)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *in = call->in, *grad = call->grad;
    locus_prefetch_add(prefetch, &in->k, next->b, next->kv, from, to);
    locus_prefetch_add(prefetch, &in->v, next->b, next->kv, from, to);
    fetch_prepared(call, next->h, from, to, prefetch);
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
        const int64_t low = locus_position_row(plan, from);
        const int64_t high = min_i64(locus_position_row(plan, to), in->pos_k.shape[1]);
        locus_prefetch_add(prefetch, &in->pos_k, 0, next->h, low, high);
        if (next->owns_tables) locus_prefetch_add(prefetch, &grad->pos_k, 0, next->h, low, high);
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
    const int64_t offset = locus_position_row(call->plan, call->plan->call.query_offset);
    const int64_t low = max_i64(0, from + offset);
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
        task_at(call, after < locus_backward_tasks(plan) ? after : now->index);
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
    if (!w->call->wanted.q || rows->dq_is_written) return;
    if (plan->turn_query != NULL)
        locus_turn_rows(plan, (locus_sums){rows->dcontent, D}, rows->dcontent, D,
                        locus_query_turns(plan, w->head.b, first), -1.0f, count);
    const locus_rows stored = locus_query_rows(&w->head, q, first);
    const int in_place = stored.type == LOCUS_F32;
    float *to = in_place ? stored.data : rows->dcontent;
    const int64_t stride = in_place ? stored.stride : D;
    plan->kernels->scale_rows(to, stride, rows->dcontent, D, NULL, factor, count, D,
                              in_place && w->call->accumulate);
    if (plan->index != NULL && !plan->same_query_rows && !plan->own_query)
        plan->kernels->scale_rows(to, stride, rows->dposition, D, NULL,
                                  locus_key_table_is_plain(plan) ? 1.0f : factor, count, D, 1);
    if (!in_place) locus_store_sums(plan, stored, to, count, D, w->call->accumulate);
}

/* A row of dpos_query belongs to one query tile of one task, too. */
static void finish_pos_query(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_queries *q = &rows->queries;
    locus_store_sums(w->head.plan, locus_query_rows(&w->head, &w->call->grad->pos_query, q->first),
                     rows->dposition, q->count, w->head.plan->key_width, w->call->accumulate);
}

static void finish_gates(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_tensor *to = &w->call->grad->gate;
    const int64_t b = w->head.b, h = w->head.h, first = rows->queries.first;
    for (int64_t i = 0; i < rows->queries.count; i++) {
        const double old = w->call->accumulate ? locus_get(to, b, h, first + i, 0) : 0.0;
        locus_put(to, locus_offset(to, b, h, first + i, 0), (float)(old + rows->dgate[i]));
    }
}

/* A query has its position for itself: no other task adds to what it gives to sums of gates. */
static void finish_gate_sums(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_queries *q = &rows->queries;
    double *sums = locus_gate_sums_of(&w->head, &w->call->grad->log_gate);
    for (int64_t i = 0; i < q->count; i++)
        if (q->position + i >= 0) sums[q->position + i] += rows->dgate_sum[i];
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
    if (wanted->log_decay) locus_decay_finish_rows(w, rows);
    if (wanted->q || wanted->u || wanted->w) finish_queries(w, rows);
    if (wanted->pos_query) finish_pos_query(w, rows);
    if (wanted->gate) finish_gates(w, rows);
    if (wanted->log_gate) finish_gate_sums(w, rows);
    if (w->slot->sink != NULL) add_sink(w, rows);
    if (pos_q.data != NULL)
        plan->kernels->scale_rows(pos_q.data + rows->queries.first * pos_q.row_stride,
                                  pos_q.row_stride, rows->dpos_q, D, NULL, (float)plan->call.scale,
                                  rows->queries.count, D, !w->slot->pos_q_fresh);
}

/* What rows that count need to know of all their keys before the first of them: counted.h. */
static void count_totals(locus_backward_worker *w, locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const locus_queries *q = &rows->queries;
    if (!plan->counts || !(w->call->wanted.q || w->slot->k.data != NULL)) return;
    locus_counted_begin_sum(&w->scores);
    for (int64_t n = 0; n < q->tile_to - q->tile_from; n++) {
        const int64_t t = locus_tile_in_turn(plan, q->tile_from, q->tile_to, n);
        if (!locus_gradient_tile_begin(w, rows, t)) continue;
        locus_gradient_tile(w, rows);
        if (w->scores.cap_slopes != NULL)
            locus_tile_uncap(&w->head, &w->tile, w->scores.cap_slopes, w->grad);
        locus_counted_sum(&w->scores, &w->tile, w->grad);
    }
    locus_scores_begin(&w->scores);
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
        count_totals(w, &w->rows[g]);
        locus_spread_begin(w, &w->rows[g]);
        low = min_i64(low, q->tile_from);
        high = max_i64(high, q->tile_to);
        tiles += q->tile_to - q->tile_from;
    }
    const int key_side = locus_key_side_table(w->head.plan, w->head.in) != NULL;
    if (key_side || locus_tile_fetches(w->head.plan))
        fetch_next(w->call, task, from, to, tiles, &w->prefetch);
    for (int64_t n = 0; n < high - low; n++)
        for (int64_t g = 0; g < count; g++) {
            const int64_t t = locus_tile_in_turn(w->head.plan, low, high, n);
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
    const int64_t rows = plan->backward.rows, first = task->tile_from * rows;
    const int64_t count = min_i64(task->tile_to * rows, plan->call.Tq) - first;
    const float *lse = locus_f32(&call->results->lse, task->b, task->h, first);
    const int64_t step = call->results->lse.stride[2];
    int blind = 0;
    for (int64_t i = 0; !plan->hides && i < count; i++) blind |= lse[i * step] == -INFINITY;
    return !plan->hides && !blind;
}

void locus_backward_run(const locus_backward_call *call, int64_t index, char *slot_room,
                        uint32_t thread)
{
    const locus_plan *plan = call->plan;
    const backward_task task = task_at(call, index);
    locus_backward_worker worker;
    locus_slot slot;
    locus_backward_worker_begin(call, thread, task.b, task.h, &worker);
    worker.head.all_seen = all_seen(call, &task);
    locus_slot_begin(call, &task, slot_room, &slot);
    worker.slot = &slot;
    locus_backward_worker_pack(&worker, 0, plan->call.Tk);
    locus_spread_keys_begin(&worker, task.owns_keys && call->accumulate);
    const int64_t group = plan->backward.group;
    for (int64_t tile = task.tile_from; tile < task.tile_to; tile += group)
        run_group(&worker, &task, tile, min_i64(tile + group, task.tile_to));
    locus_spread_keys_end(&worker);
    turn_keys_back(plan, task.b, &slot);
}
