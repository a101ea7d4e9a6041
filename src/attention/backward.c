/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/backward.h"

#include <math.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tensor.h"

/* ---- workspace ---- */

/* One query tile of a group, with the worker shifted to its rows. */
typedef struct member {
    locus_worker worker;
    locus_head head;
    locus_rows rows;
    locus_pass pass;
} member;

/* Lies in the workspace, because the compiler may zero what lies on the stack. */
typedef struct group {
    member members[MOST_GROUP];
    locus_tile tile;
} group;

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
        .query_table = locus_query_table(plan, s) != NULL,
        .value_table = locus_value_table(plan, s) != NULL,
        .bias = plan->has_bias,
        .pos_q = locus_present(&s->pos_q),
        .pos_k = locus_present(&s->pos_k),
        .cls = locus_present(&s->cls),
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
    wanted.query_table &= locus_query_table(plan, grad) != NULL;
    wanted.value_table &= locus_value_table(plan, grad) != NULL;
    wanted.bias &= locus_present(&grad->bias) | locus_present(&grad->slopes) |
                   locus_present(&grad->a) | locus_present(&grad->p);
    wanted.pos_q &= locus_present(&grad->pos_q);
    wanted.pos_k &= locus_present(&grad->pos_k);
    wanted.cls &= locus_present(&grad->cls);
    wanted.dense &= locus_present(&grad->bias_dense);
    return wanted;
}

/* As many slots as the budget allows, at least one, a function of the shapes alone. */
static int64_t slot_count(const locus_plan *plan, size_t slot_bytes)
{
    enum { ENOUGH = 64 };
    const int64_t fit = (int64_t)(LOCUS_PARTIAL_BYTES / (slot_bytes > 0 ? slot_bytes : 1));
    const int64_t units = locus_unit_count(plan);
    const int64_t most = units < ENOUGH ? units : ENOUGH;
    return fit < 1 ? 1 : fit < most ? fit : most > 0 ? most : 1;
}

/* A dense F64 twin of a parameter of the bias. */
static locus_tensor take_exact(locus_arena *arena, const locus_tensor *shape)
{
    if (!locus_present(shape)) return (locus_tensor){0};
    double *data = locus_take(arena, locus_tensor_elements(shape), sizeof *data);
    return locus_view(data, LOCUS_F64, shape->rank, shape->shape);
}

static size_t carve(const locus_plan *plan, char *base, locus_backward_call *call)
{
    const locus_call *c = &plan->call;
    locus_wanted all = want_all(plan);
    locus_arena arena = {base, 0}, measure = {NULL, 0};
    locus_worker worker;
    locus_slot slot;
    call->bias = locus_take_floats(&arena, c->H * locus_bias_room(plan, &plan->backward));
    call->bias_total = locus_take(&arena, plan->has_bias ? c->H * plan->span : 0, sizeof(double));
    call->cls_total = locus_take(&arena, all.cls ? c->H * 2 : 0, sizeof(double));
    memset(&call->exact, 0, sizeof call->exact);
    if (plan->has_bias) {
        call->exact.bias = take_exact(&arena, &plan->shapes.bias);
        call->exact.slopes = take_exact(&arena, &plan->shapes.slopes);
        call->exact.a = take_exact(&arena, &plan->shapes.a);
        call->exact.p = take_exact(&arena, &plan->shapes.p);
    }
    locus_worker_carve(plan, &plan->backward, 1, &measure, &worker);
    locus_take(&measure, 1, sizeof(group));
    call->worker_bytes = measure.used;
    call->workers = locus_take(&arena, plan->threads, call->worker_bytes);
    if (locus_heads_own_keys(plan, 1) && plan->backward_splits == 1) all.k = all.v = 0;
    call->owned = locus_owned_tables(plan);
    if (c->B == 1 && plan->backward_splits == 1) locus_leave_out(&call->owned, &all);
    call->slot_bytes = locus_slot_carve(plan, &all, NULL, &slot);
    call->slots = locus_take(&arena, slot_count(plan, call->slot_bytes), call->slot_bytes);
    return arena.used;
}

size_t locus_backward_workspace(const locus_plan *plan)
{
    locus_backward_call call;
    return carve(plan, NULL, &call) + LOCUS_ALIGN_ROOM;
}

/* ---- units ---- */

static locus_head head_of(const locus_backward_call *call, locus_worker *worker, int64_t b,
                          int64_t h, int64_t kv)
{
    const locus_plan *plan = call->plan;
    const locus_head head = {
        .plan = plan,
        .geometry = &plan->backward,
        .in = call->in,
        .worker = worker,
        .b = b,
        .h = h,
        .kv = kv,
        .bias = locus_head_bias(plan, &plan->backward, call->bias, h),
    };
    return head;
}

static group *carve_worker(const locus_backward_call *call, uint32_t number, locus_worker *worker)
{
    locus_arena arena = {call->workers + number * call->worker_bytes, 0};
    locus_worker_carve(call->plan, &call->plan->backward, 1, &arena, worker);
    return locus_take(&arena, 1, sizeof(group));
}

/* sum += scale (the sum of the rows) */
static void add_rows(const locus_plan *plan, const float *rows, int64_t count, float *sum)
{
    const int64_t D = plan->call.D;
    plan->kernels->scale_rows(sum, 0, rows, D, NULL, (float)plan->call.scale, count, D, 1);
}

/* dq = scale (dcontent turned back + dposition); du, dw: their sums over the rows. A row of dq
 * belongs to one query tile of one unit. */
static void finish_queries(const locus_backward_call *call, const locus_head *head,
                           const locus_rows *rows, const locus_slot *slot)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const locus_tensor *q = &call->grad->q;
    const int64_t D = plan->call.D, count = rows->count;
    const int apart = plan->index != NULL && w->dposition != w->dcontent;
    const float factor = (float)plan->call.scale;
    if (slot->u != NULL) add_rows(plan, w->dcontent, count, slot->u);
    if (slot->w != NULL) add_rows(plan, w->dposition, count, slot->w);
    if (!call->wanted.q) return;
    if (plan->turn_query != NULL)
        locus_turn_rows(plan, w->dcontent, D, w->dcontent, D,
                        plan->turn_query + 2 * plan->call.pairs * rows->first, -1.0f, count);
    float *to = locus_f32(q, head->b, head->h, rows->first);
    plan->kernels->scale_rows(to, q->stride[2], w->dcontent, D, NULL, factor, count, D,
                              call->accumulate);
    if (apart)
        plan->kernels->scale_rows(to, q->stride[2], w->dposition, D, NULL, factor, count, D, 1);
}

static void finish_rows(const locus_backward_call *call, const locus_head *head,
                        const locus_rows *rows, const locus_slot *slot)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D;
    if (call->wanted.q || call->wanted.u || call->wanted.w) finish_queries(call, head, rows, slot);
    if (slot->pos_q != NULL)
        plan->kernels->scale_rows(slot->pos_q + rows->first * slot->pos_q_row, slot->pos_q_row,
                                  head->worker->dplace, D, NULL, (float)plan->call.scale,
                                  rows->count, D, !slot->pos_q_fresh);
}

/* A row whose every logit is -inf has output 0 and gradient 0: it sees nothing, whatever
 * made the logits so. */
static int begin_tile(const locus_head *head, const locus_rows *rows, int64_t key_tile,
                      locus_tile *tile)
{
    if (!locus_tile_begin(head, rows, key_tile, tile)) return 0;
    for (int64_t i = 0; i < tile->rows; i++) {
        if (head->worker->lse[i] != -INFINITY) continue;
        tile->from[i] = tile->to[i] = 0;
        tile->whole = 0;
        tile->ragged = 1;
    }
    return 1;
}

static void begin_member(const locus_backward_call *call, const locus_head *head,
                         const locus_slot *slot, int64_t tile, int64_t first, member *m)
{
    const locus_plan *plan = call->plan;
    locus_worker_shift(plan, head->worker, (tile - first) * plan->backward.rows, &m->worker);
    m->head = *head;
    m->head.worker = &m->worker;
    locus_rows_reach(&m->head, tile * plan->backward.rows, &m->rows);
    locus_rows_load(&m->head, &m->rows);
    locus_backward_rows_begin(call, &m->head, &m->rows);
    locus_pass_begin(call, &m->head, slot, m->rows.count, &m->pass);
}

/* Query tiles [from, to): each key tile meets them all before the next one does. Every sum
 * runs in the order of tiles, whatever the group. */
static void backward_group(const locus_backward_call *call, const locus_head *head,
                           const locus_unit *unit, int64_t from, int64_t to, const locus_slot *slot,
                           group *room)
{
    member *members = room->members;
    locus_tile *tile = &room->tile;
    const int64_t count = to - from;
    int64_t low = INT64_MAX, high = 0, pairs = 0;
    for (int64_t g = 0; g < count; g++) {
        begin_member(call, head, slot, from + g, from, &members[g]);
        const locus_rows *rows = &members[g].rows;
        low = locus_least(low, rows->tile_from);
        high = locus_most(high, rows->tile_to);
        pairs += rows->tile_to - rows->tile_from;
    }
    locus_look_ahead(call, head, unit, from, to, pairs);
    for (int64_t t = low; t < high; t++)
        for (int64_t g = 0; g < count; g++) {
            member *m = &members[g];
            if (t < m->rows.tile_from || t >= m->rows.tile_to) continue;
            if (!begin_tile(&m->head, &m->rows, t, tile)) continue;
            locus_tile_gradients(&m->pass, &m->head, &m->rows, tile);
            locus_tile_spread(&m->pass, &m->head, &m->rows, tile);
        }
    for (int64_t g = 0; g < count; g++) {
        locus_pass_end(&members[g].pass, &members[g].head);
        finish_rows(call, &members[g].head, &members[g].rows, slot);
    }
}

/* Turn the unit's dk back to where its keys came from. */
static void turn_keys_back(const locus_plan *plan, const locus_slot *slot)
{
    if (plan->turn_key == NULL || slot->k == NULL) return;
    locus_turn_rows(plan, slot->k, slot->k_row, slot->k, slot->k_row, plan->turn_key, -1.0f,
                    plan->call.Tk);
}

/* Nothing is hidden, and no row of the unit has hidden itself: see begin_tile. */
static int all_seen(const locus_backward_call *call, const locus_unit *unit)
{
    const locus_plan *plan = call->plan;
    const int64_t rows = plan->backward.rows;
    const int64_t end = locus_least(unit->tile_to * rows, plan->call.Tq);
    for (int64_t m = unit->tile_from * rows; !plan->hides && m < end; m++)
        if (*locus_f32(&call->results->lse, unit->b, unit->h, m) == -INFINITY) return 0;
    return !plan->hides;
}

static int is_shared(const locus_tensor *table) { return table == NULL || table->rank == 2; }

static int heads_share_tables(const locus_plan *plan)
{
    return is_shared(locus_key_table(plan, &plan->shapes)) &&
           is_shared(locus_query_table(plan, &plan->shapes));
}

static void run_unit(void *context, size_t index, uint32_t worker_number)
{
    const locus_backward_call *call = context;
    const locus_plan *plan = call->plan;
    const locus_unit unit =
        locus_unit_at(plan, call->first_unit + (int64_t)index, call->accumulate);
    locus_worker worker;
    group *room = carve_worker(call, worker_number, &worker);
    locus_head head = head_of(call, &worker, unit.b, unit.h, unit.kv);
    head.all_seen = all_seen(call, &unit);
    head.keeps_entries = worker.progress->keeps_entries;
    char *base = call->slots + index * call->slot_bytes;
    locus_slot slot;
    const locus_wanted partial = locus_unit_wanted(call, &unit);
    const size_t bytes = locus_slot_carve(plan, &partial, base, &slot);
    memset(base + slot.keys_bytes, 0, bytes - slot.keys_bytes);
    if (unit.owns_keys) locus_own_keys(call, &unit, &slot);
    if (unit.owns_tables) locus_own_tables(call, &unit, &slot);
    locus_head_pack(&head, 0, plan->call.Tk, 1);
    worker.progress->keeps_entries = heads_share_tables(plan);
    locus_keys_begin(&head, unit.owns_keys && call->accumulate);
    const int64_t count = plan->backward.group;
    for (int64_t tile = unit.tile_from; tile < unit.tile_to; tile += count)
        backward_group(call, &head, &unit, tile, locus_least(tile + count, unit.tile_to), &slot,
                       room);
    locus_keys_end(&head, &slot);
    turn_keys_back(plan, &slot);
}

/* ---- a dense bias that is shared by batch entries or heads ---- */

/* Task = (its batch, its head, query tile): adds the heads that share it in order. */
static void run_dense(void *context, size_t index, uint32_t worker_number)
{
    const locus_backward_call *call = context;
    const locus_plan *plan = call->plan;
    const locus_tensor *to = &call->grad->bias_dense;
    const int64_t tiles = locus_ceil_div(plan->call.Tq, plan->backward.rows);
    const int64_t tile_number = (int64_t)index % tiles, owner = (int64_t)index / tiles;
    const int64_t b_own = owner / to->shape[1], h_own = owner % to->shape[1];
    locus_worker worker;
    carve_worker(call, worker_number, &worker);
    for (int64_t b = 0; b < plan->call.B; b++)
        for (int64_t h = 0; h < plan->call.H; h++) {
            if (to->shape[0] != 1 && b != b_own) continue;
            if (to->shape[1] != 1 && h != h_own) continue;
            const locus_head head =
                head_of(call, &worker, b, h, h / (plan->call.H / plan->call.Hk));
            locus_rows rows;
            locus_rows_reach(&head, tile_number * plan->backward.rows, &rows);
            locus_rows_load(&head, &rows);
            locus_head_pack(&head, rows.tile_from * plan->backward.keys,
                            locus_least(rows.tile_to * plan->backward.keys, plan->call.Tk), 1);
            locus_backward_rows_begin(call, &head, &rows);
            locus_pass pass;
            locus_pass_begin(call, &head, NULL, rows.count, &pass);
            for (int64_t t = rows.tile_from; t < rows.tile_to; t++) {
                locus_tile tile;
                if (!begin_tile(&head, &rows, t, &tile)) continue;
                locus_tile_gradients(&pass, &head, &rows, &tile);
                locus_tile_spread_dense(call, &head, &tile);
            }
        }
}

static locus_status check_call(const locus_plan *plan, const locus_tensors *in,
                               const locus_results *results, const locus_tensor *dout,
                               const locus_tensors *grad, uint32_t flags, const void *workspace,
                               size_t bytes, locus_error *error)
{
    if (plan == NULL || in == NULL || results == NULL || dout == NULL || grad == NULL ||
        (flags & ~LOCUS_ACCUMULATE) != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "backward: NULL argument or unknown flag");
    LOCUS_TRY(locus_check_inputs(plan, in, error));
    LOCUS_TRY(locus_check_results(plan, results, error));
    LOCUS_TRY(locus_check_gradients(plan, in, results, dout, grad, error));
    return locus_check_memory("workspace", workspace, bytes, locus_backward_workspace(plan), error);
}

static void run_rounds(locus_backward_call *call)
{
    const locus_plan *plan = call->plan;
    for (uint32_t t = 0; t < plan->threads; t++) {
        locus_worker worker;
        carve_worker(call, t, &worker);
        worker.progress->keeps_entries = 0;
    }
    const int64_t units = locus_unit_count(plan), slots = slot_count(plan, call->slot_bytes);
    for (int64_t first = 0; first < units && plan->call.Tq > 0; first += slots) {
        call->first_unit = first;
        call->round_units = units - first < slots ? units - first : slots;
        locus_parallel_for(plan->threads, (size_t)call->round_units, run_unit, call);
        locus_fold_round(call);
    }
}

locus_status locus_backward(const locus_plan *plan, const locus_tensors *in,
                            const locus_results *results, const locus_tensor *dout,
                            const locus_tensors *grad, uint32_t flags, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    LOCUS_TRY(check_call(plan, in, results, dout, grad, flags, workspace, workspace_bytes, error));
    locus_backward_call call = {
        .plan = plan,
        .in = in,
        .results = results,
        .dout = dout,
        .grad = grad,
        .wanted = want_present(plan, grad),
        .accumulate = (flags & LOCUS_ACCUMULATE) != 0,
    };
    carve(plan, locus_align(workspace), &call);
    const locus_tensor *dense = &grad->bias_dense;
    call.dense_directly =
        call.wanted.dense && dense->shape[0] == plan->call.B && dense->shape[1] == plan->call.H;
    if (!call.accumulate) locus_fold_zero(&call);
    locus_lower_biases(plan, &plan->backward, in, call.bias);
    if (call.wanted.bias)
        memset(call.bias_total, 0, (size_t)(plan->call.H * plan->span) * sizeof *call.bias_total);
    if (call.wanted.cls)
        memset(call.cls_total, 0, (size_t)(2 * plan->call.H) * sizeof *call.cls_total);
    run_rounds(&call);
    if (call.wanted.bias || call.wanted.cls) locus_fold_bias(&call);
    if (call.wanted.dense && !call.dense_directly)
        locus_parallel_for(plan->threads,
                           (size_t)(dense->shape[0] * dense->shape[1] *
                                    locus_ceil_div(plan->call.Tq, plan->backward.rows)),
                           run_dense, &call);
    return LOCUS_OK;
}
