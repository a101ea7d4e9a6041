/* SPDX-License-Identifier: Apache-2.0 */
/* The backward call: workspace, tasks, rounds. See backward_call.h. */

#include <string.h>

#include "attention/backward_run.h"
#include "attention/bias_parameters.h"
#include "attention/check.h"
#include "attention/gates.h"
#include "attention/gathered.h"
#include "attention/gradients.h"
#include "attention/ragged_backward.h"
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
        .pos_query = locus_present(&s->pos_query),
        .gate = locus_present(&s->gate),
        .log_gate = plan->has_log_gate,
        .log_decay = locus_log_decay(plan, s) != NULL,
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
    wanted.pos_query &= locus_present(&grad->pos_query);
    wanted.gate &= locus_present(&grad->gate);
    wanted.log_gate &= locus_present(&grad->log_gate);
    wanted.log_decay &= locus_log_decay(plan, grad) != NULL;
    wanted.k |= wanted.log_decay; /* which is made of it */
    wanted.key_table &=
        locus_key_table(plan, grad) != NULL ||
        (plan->place_axes > 1 && locus_tensor_slot(grad, plan->call.scheme->second_table) != NULL);
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
    const int cls = locus_present(&plan->shapes.cls) ? CLS_ROWS : 0;
    call->bias_total = locus_take(arena, plan->has_bias ? H * plan->table_span : 0, sizeof(double));
    call->cls_total = locus_take(arena, H * cls, sizeof(double));
    call->exact = locus_take(arena, locus_bias_numbers(plan), sizeof(double));
    call->sink_total = locus_take(arena, locus_present(&plan->shapes.sink) ? H : 0, sizeof(double));
}

static size_t thread_bytes(const locus_plan *plan)
{
    if (plan->ragged != NULL) return locus_ragged_backward_bytes(plan);
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

/* No sequence owns a table. */
static size_t shape_slot_bytes(const locus_plan *shape)
{
    const locus_wanted none = {0};
    return slot_bytes(shape, &none);
}

static size_t carve(const locus_plan *plan, char *base, locus_backward_call *call)
{
    locus_arena arena = {base, 0};
    locus_gather_carve(plan, LOCUS_BACKWARD, &arena, base != NULL ? call->in : &plan->shapes,
                       &call->gathered);
    locus_gather_carve(plan, LOCUS_BACKWARD, &arena, base != NULL ? call->grad : &plan->shapes,
                       &call->gathered_grad);
    call->bias_room =
        locus_take_floats(&arena, plan->call.H * locus_bias_room(plan, &plan->backward));
    call->shown = locus_shown_carve(plan, &plan->backward, &arena);
    call->gate_sums = locus_gates_carve(plan, &arena);
    call->gate_dsums = locus_gates_carve(plan, &arena);
    call->shared = locus_take(&arena, locus_shared_count(plan), sizeof *call->shared);
    carve_totals(plan, &arena, call);
    if (locus_heads_share_tables(plan))
        locus_carve_relative_backward(plan, &arena, &call->relative);
    const int halves = locus_is_half(&plan->shapes.k) || locus_is_half(&plan->shapes.v);
    call->key_sums = locus_take_optional(&arena, halves, plan->call.Tk * plan->call.D);
    call->value_sums = locus_take_optional(&arena, halves, plan->call.Tk * plan->call.Dv);
    call->scratch_bytes = thread_bytes(plan);
    call->scratch = locus_take(&arena, plan->threads, call->scratch_bytes);
    call->owned = plan->ragged != NULL ? (locus_wanted){0} : locus_owned_tables(plan);
    call->slot_bytes = plan->ragged != NULL ? locus_ragged_most(plan, shape_slot_bytes)
                                            : slot_bytes(plan, &call->owned);
    call->slots = locus_take(&arena, slot_count(plan, call->slot_bytes), call->slot_bytes);
    return arena.used;
}

size_t locus_backward_workspace(const locus_plan *plan)
{
    locus_backward_call call;
    return carve(plan, NULL, &call) + LOCUS_ALIGN_ROOM;
}

/* ---- rounds ---- */

static void run_task(void *context, size_t index, uint32_t thread)
{
    const locus_backward_call *call = context;
    const int64_t task = call->first_task + (int64_t)index;
    char *slot_room = call->slots + index * call->slot_bytes;
    if (call->plan->ragged != NULL)
        locus_ragged_backward_run(call, task, slot_room, thread);
    else
        locus_backward_run(call, task, slot_room, thread);
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
    for (int64_t n = 0; n < q->tile_to - q->tile_from; n++) {
        const int64_t t = locus_tile_in_turn(call->plan, q->tile_from, q->tile_to, n);
        if (!locus_gradient_tile_begin(&worker, rows, t)) continue;
        locus_gradient_tile(&worker, rows);
        locus_spread_dense(&worker);
    }
}

/* Rows of sums, where the gradient is of half precision: they begin as 0, and end there. */
static float *dense_sums(const locus_backward_call *call, uint32_t thread, int64_t tile,
                         int64_t *count)
{
    const locus_plan *plan = call->plan;
    const int64_t rows = plan->backward.rows;
    locus_backward_worker worker;
    locus_backward_worker_begin(call, thread, 0, 0, &worker);
    *count = min_i64(rows, plan->call.Tq - tile * rows);
    return locus_is_half(&call->grad->bias_dense) ? worker.dense_sums : NULL;
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
    const int64_t Tk = plan->call.Tk;
    int64_t rows;
    float *sums = dense_sums(call, thread, tile, &rows);
    if (sums != NULL) memset(sums, 0, (size_t)(rows * Tk) * sizeof *sums);
    for (int64_t b = 0; b < plan->call.B; b++)
        for (int64_t h = 0; h < plan->call.H; h++) {
            if (to->shape[0] != 1 && b != b_own) continue;
            if (to->shape[1] != 1 && h != h_own) continue;
            add_dense_tiles(call, thread, b, h, tile);
        }
    if (sums != NULL)
        locus_store_sums(plan, locus_rows_at(to, b_own, h_own, tile * plan->backward.rows), sums,
                         rows, Tk, call->accumulate);
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

/* From here on, the call has no other tables than those that are gathered. */
static void begin_tables(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    if (!plan->gathers) return;
    if (call->tables != NULL)
        locus_gather_keep(plan, LOCUS_BACKWARD, call->in, &call->tables->gathered, &call->gathered);
    else
        locus_gather(plan, LOCUS_BACKWARD, call->in, &call->gathered);
    locus_gather_zero(plan, call->grad, &call->gathered_grad);
    call->in = &call->gathered;
    call->grad = &call->gathered_grad;
}

/* And no other gates than their sums. */
static void begin_gates(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    if (!plan->has_log_gate && locus_log_decay(plan, call->in) == NULL) return;
    if (!plan->gathers) {
        call->gathered = *call->in;
        call->gathered_grad = *call->grad;
    }
    locus_gates_sum(plan, call->in, call->gate_sums, &call->gathered);
    locus_gates_begin(plan, call->gate_dsums, &call->gathered_grad);
    call->in = &call->gathered;
    call->grad = &call->gathered_grad;
}

static void finish_tables(const locus_backward_call *call, const locus_tensors *grad)
{
    locus_gates_pull_back(call->plan, call->grad, grad, call->accumulate);
    if (call->plan->gathers)
        locus_scatter(call->plan, &call->gathered_grad, grad, call->accumulate);
}

/* Biases by distance, and the relative tables that heads share: once per call, if not before. */
static void begin_shared(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const locus_tables *tables = call->tables;
    if (tables == NULL) locus_lower_biases(plan, &plan->backward, call->in, call->bias_room);
    call->bias =
        locus_biases_at(plan, &plan->backward, tables != NULL ? tables->bias : call->bias_room);
    call->shared = locus_share_bias(plan, call->in, call->shared);
    if (plan->ragged != NULL) locus_ragged_backward_begin(call);
    if (plan->index == NULL || !locus_heads_share_tables(plan) || plan->call.H == 0) return;
    const head_context head = locus_head_at(plan, &plan->backward, call->in, 0, 0);
    if (tables == NULL) locus_pack_relative(&head, &call->relative);
}

/* Totals start from 0. */
static void begin_call(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    const locus_tensor *dense = &call->grad->bias_dense;
    call->dense_directly =
        call->wanted.dense && dense->shape[0] == plan->call.B && dense->shape[1] == plan->call.H;
    if (!call->accumulate) locus_reduce_zero(call);
    begin_shared(call);
    locus_shown_fill(plan, &plan->backward, call->in, call->shown);
    if (call->wanted.bias)
        memset(call->bias_total, 0,
               (size_t)(plan->call.H * plan->table_span) * sizeof *call->bias_total);
    if (call->wanted.bias || call->wanted.pair_bias)
        memset(call->exact, 0, (size_t)locus_bias_numbers(plan) * sizeof *call->exact);
    if (call->wanted.cls)
        memset(call->cls_total, 0, (size_t)(CLS_ROWS * plan->call.H) * sizeof *call->cls_total);
    if (call->wanted.sink)
        memset(call->sink_total, 0, (size_t)plan->call.H * sizeof *call->sink_total);
}

static locus_status
run_backward(const locus_plan *plan, const locus_tables *tables, const locus_tensors *in,
             const locus_results *results, const locus_results *dresults, const locus_tensors *grad,
             uint32_t flags, void *workspace, size_t workspace_bytes, locus_error *error)
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
        .tables = tables,
        .wanted = want_present(plan, grad),
        .accumulate = (flags & LOCUS_ACCUMULATE) != 0,
    };
    carve(plan, locus_align(workspace), &call);
    begin_tables(&call);
    begin_gates(&call);
    begin_call(&call);
    run_rounds(&call);
    if (call.wanted.bias || call.wanted.pair_bias || call.wanted.cls) locus_reduce_bias(&call);
    if (call.wanted.sink) locus_reduce_sink(&call);
    if (call.wanted.dense && !call.dense_directly) run_dense_tasks(&call);
    finish_tables(&call, grad);
    return LOCUS_OK;
}

locus_status locus_backward(const locus_plan *plan, const locus_tensors *in,
                            const locus_results *results, const locus_results *dresults,
                            const locus_tensors *grad, uint32_t flags, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    return run_backward(plan, NULL, in, results, dresults, grad, flags, workspace, workspace_bytes,
                        error);
}

locus_status locus_backward_prepared(const locus_plan *plan, const locus_tables *tables,
                                     const locus_tensors *in, const locus_results *results,
                                     const locus_results *dresults, const locus_tensors *grad,
                                     uint32_t flags, void *workspace, size_t workspace_bytes,
                                     locus_error *error)
{
    LOCUS_TRY(locus_check_tables(tables, plan, LOCUS_BACKWARD, error));
    return run_backward(plan, tables, in, results, dresults, grad, flags, workspace,
                        workspace_bytes, error);
}
