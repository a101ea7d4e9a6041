/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/slot.h"

#include "attention/bias_parameters.h"

#include <string.h>

static int by_head(const locus_tensor *table) { return table != NULL && table->rank == 3; }

locus_wanted locus_owned_tables(const locus_plan *plan)
{
    const locus_tensors *s = &plan->shapes;
    const locus_call *c = &plan->call;
    const int64_t first_q = locus_position_row(plan, c->query_offset);
    const int64_t first_k = locus_position_row(plan, 0);
    return (locus_wanted){
        .key_table = by_head(locus_key_table(plan, s)),
        .key_side_table = by_head(locus_key_side_table(plan, s)),
        .pos_q = locus_present(&s->pos_q) && first_q >= 0 && first_q + c->Tq <= s->pos_q.shape[1],
        .pos_k = locus_present(&s->pos_k) && first_k + c->Tk <= s->pos_k.shape[1],
    };
}

int locus_owned_by_heads(const locus_backward_call *call, const locus_tensor *t)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *g = call->grad;
    const locus_wanted *owned = &call->owned;
    if (!locus_present(t)) return 0;
    return (t == locus_key_table(plan, g) && owned->key_table) ||
           (t == locus_key_side_table(plan, g) && owned->key_side_table) ||
           (t == &g->pos_q && owned->pos_q) || (t == &g->pos_k && owned->pos_k);
}

void locus_leave_out(const locus_wanted *owned, locus_wanted *wanted)
{
    wanted->key_table &= !owned->key_table;
    wanted->key_side_table &= !owned->key_side_table;
    wanted->pos_q &= !owned->pos_q;
    wanted->pos_k &= !owned->pos_k;
}

/* The first task that adds to rows which nobody else shares owns them: it needs no partial
 * ones. The others are folded after it, in order. */
locus_wanted locus_task_wanted(const locus_backward_call *call, const backward_task *task)
{
    locus_wanted wanted = call->wanted;
    if (task->owns_keys) wanted.k = wanted.v = 0;
    if (task->owns_tables) locus_leave_out(&call->owned, &wanted);
    return wanted;
}

static locus_sums take_rows(locus_arena *arena, int wanted, int64_t count, int64_t width)
{
    return (locus_sums){locus_take_optional(arena, wanted, count * width), width};
}

size_t locus_slot_carve(const locus_plan *plan, const locus_wanted *wanted, char *base,
                        locus_slot *slot)
{
    const locus_call *c = &plan->call;
    const int same_table = c->scheme->key_table == c->scheme->query_table;
    const int key_side = wanted->key_side_table && !same_table;
    locus_arena arena = {base, 0};
    memset(slot, 0, sizeof *slot);
    slot->k = take_rows(&arena, wanted->k, c->Tk, c->D);
    slot->v = take_rows(&arena, wanted->v, c->Tk, c->Dv);
    slot->keys_bytes = arena.used;
    slot->key_table = take_rows(&arena, wanted->key_table, plan->row_count, plan->key_width);
    slot->key_side_table = take_rows(&arena, key_side, plan->row_count, c->D);
    slot->value_table = take_rows(&arena, wanted->value_table, plan->row_count, c->Dv);
    slot->u = locus_take_optional(&arena, wanted->u, c->D);
    slot->w = locus_take_optional(&arena, wanted->w, c->D);
    slot->pos_q = take_rows(&arena, wanted->pos_q, c->Tq, c->D);
    slot->pos_k = take_rows(&arena, wanted->pos_k, c->Tk, c->D);
    if (same_table && wanted->key_side_table) slot->key_side_table = slot->key_table;
    if (wanted->bias) slot->bias = locus_take(&arena, plan->table_span, sizeof *slot->bias);
    if (wanted->cls) slot->cls = locus_take(&arena, CLS_ROWS, sizeof *slot->cls);
    if (wanted->sink) slot->sink = locus_take(&arena, 1, sizeof *slot->sink);
    if (wanted->log_gate) slot->gate_sums = locus_take(&arena, c->Tk, sizeof *slot->gate_sums);
    if (wanted->pair_bias)
        slot->pair_bias = locus_take(&arena, locus_bias_numbers(plan), sizeof *slot->pair_bias);
    return arena.used;
}

static void own_keys(const locus_backward_call *call, const backward_task *task, locus_slot *slot)
{
    const locus_tensors *g = call->grad;
    if (call->wanted.k)
        slot->k = (locus_sums){locus_f32(&g->k, task->b, task->kv, 0), g->k.stride[2]};
    if (call->wanted.v)
        slot->v = (locus_sums){locus_f32(&g->v, task->b, task->kv, 0), g->v.stride[2]};
}

/* Rows [from, to) of the head's of a [H,T,D] gradient start from 0 here, where they are needed
 * next. */
static void begin_some(const locus_backward_call *call, const locus_tensor *t, int64_t h,
                       int64_t from, int64_t to)
{
    for (int64_t r = from; !call->accumulate && r < to; r++)
        memset(locus_f32(t, h, r, 0), 0, (size_t)t->shape[2] * sizeof(float));
}

static void begin_owned(const locus_backward_call *call, const locus_tensor *t, int64_t h)
{
    begin_some(call, t, h, 0, t->shape[1]);
}

static locus_sums own_table(const locus_backward_call *call, const locus_tensor *t, int64_t h)
{
    locus_sums rows;
    rows.data = locus_table_entries(call->plan, t, h, &rows.row_stride);
    return rows;
}

static void own_relative(const locus_backward_call *call, int64_t h, locus_slot *slot)
{
    const locus_plan *plan = call->plan;
    const locus_wanted *wanted = &call->wanted, *owned = &call->owned;
    const locus_tensor *keys = locus_key_table(plan, call->grad);
    const locus_tensor *key_side = locus_key_side_table(plan, call->grad);
    if (wanted->key_table && owned->key_table) {
        begin_owned(call, keys, h);
        slot->key_table = own_table(call, keys, h);
    }
    if (wanted->key_side_table && owned->key_side_table) {
        if (key_side != keys) begin_owned(call, key_side, h);
        slot->key_side_table = own_table(call, key_side, h);
    }
}

static void own_positions(const locus_backward_call *call, const backward_task *task,
                          locus_slot *slot)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *g = call->grad;
    const locus_wanted *wanted = &call->wanted, *owned = &call->owned;
    const int64_t h = task->h;
    if (wanted->pos_q && owned->pos_q) {
        const int64_t rows = plan->backward.rows;
        const int64_t first = locus_position_row(plan, plan->call.query_offset);
        begin_some(call, &g->pos_q, h, 0, first + task->tile_from * rows);
        begin_some(call, &g->pos_q, h, first + min_i64(task->tile_to * rows, plan->call.Tq),
                   g->pos_q.shape[1]);
        slot->pos_q = (locus_sums){locus_f32(&g->pos_q, h, first, 0), g->pos_q.stride[1]};
        slot->pos_q_fresh = !call->accumulate;
    }
    if (wanted->pos_k && owned->pos_k) {
        const int64_t first = locus_position_row(plan, 0);
        begin_some(call, &g->pos_k, h, 0, first);
        begin_some(call, &g->pos_k, h, first + plan->call.Tk, g->pos_k.shape[1]);
        slot->pos_k = (locus_sums){locus_f32(&g->pos_k, h, first, 0), g->pos_k.stride[1]};
        slot->pos_k_fresh = !call->accumulate;
    }
}

/* Of k and v, rows start from 0 where the first sum is written to them. */
void locus_slot_begin(const locus_backward_call *call, const backward_task *task, char *base,
                      locus_slot *slot)
{
    const locus_wanted partial = locus_task_wanted(call, task);
    const size_t bytes = locus_slot_carve(call->plan, &partial, base, slot);
    memset(base + slot->keys_bytes, 0, bytes - slot->keys_bytes);
    if (task->owns_keys) own_keys(call, task, slot);
    if (!task->owns_tables) return;
    own_relative(call, task->h, slot);
    own_positions(call, task, slot);
}
