/* SPDX-License-Identifier: Apache-2.0 */
/* Where the sums of a unit go: into partial rows, its slot, or straight into rows of the gradients
 * that nobody else shares. */

#include <string.h>

#include "attention/backward.h"
#include "core/tensor.h"

int locus_heads_own_keys(const locus_plan *plan, int accumulate)
{
    return plan->call.H == plan->call.Hk && (plan->turn_key == NULL || !accumulate);
}

locus_unit locus_unit_at(const locus_plan *plan, int64_t index, int accumulate)
{
    const int64_t splits = plan->backward_splits, H = plan->call.H;
    const int64_t split = index % splits, bh = index / splits;
    const int64_t tiles = locus_ceil_div(plan->call.Tq, plan->backward.rows);
    const locus_unit unit = {
        .index = index,
        .b = bh / H,
        .h = bh % H,
        .kv = bh % H / (H / plan->call.Hk),
        .tile_from = split * tiles / splits,
        .tile_to = (split + 1) * tiles / splits,
        .owns_keys = split == 0 && locus_heads_own_keys(plan, accumulate),
        .owns_tables = split == 0 && bh < H,
    };
    return unit;
}

static int by_head(const locus_tensor *table) { return table != NULL && table->rank == 3; }

locus_wanted locus_owned_tables(const locus_plan *plan)
{
    const locus_tensors *s = &plan->shapes;
    const locus_call *c = &plan->call;
    return (locus_wanted){
        .key_table = by_head(locus_key_table(plan, s)),
        .query_table = by_head(locus_query_table(plan, s)),
        .pos_q = locus_present(&s->pos_q) && c->query_offset >= 0 &&
                 c->query_offset + c->Tq <= s->pos_q.shape[1],
        .pos_k = locus_present(&s->pos_k) && c->Tk <= s->pos_k.shape[1],
    };
}

int locus_owned_by_heads(const locus_backward_call *call, const locus_tensor *t)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *g = call->grad;
    const locus_wanted *owned = &call->owned;
    if (!locus_present(t)) return 0;
    return (t == locus_key_table(plan, g) && owned->key_table) ||
           (t == locus_query_table(plan, g) && owned->query_table) ||
           (t == &g->pos_q && owned->pos_q) || (t == &g->pos_k && owned->pos_k);
}

void locus_leave_out(const locus_wanted *owned, locus_wanted *wanted)
{
    wanted->key_table &= !owned->key_table;
    wanted->query_table &= !owned->query_table;
    wanted->pos_q &= !owned->pos_q;
    wanted->pos_k &= !owned->pos_k;
}

/* The first unit that adds to rows which nobody else shares owns them: it needs no partial
 * ones. The others are folded after it, in order. */
locus_wanted locus_unit_wanted(const locus_backward_call *call, const locus_unit *unit)
{
    locus_wanted wanted = call->wanted;
    if (unit->owns_keys) wanted.k = wanted.v = 0;
    if (unit->owns_tables) locus_leave_out(&call->owned, &wanted);
    return wanted;
}

size_t locus_slot_carve(const locus_plan *plan, const locus_wanted *wanted, char *base,
                        locus_slot *slot)
{
    const locus_call *c = &plan->call;
    const int same_table = c->scheme->key_table == c->scheme->query_table;
    locus_arena arena = {base, 0};
#define TAKE(field, condition, count)                                                              \
    do {                                                                                           \
        float *room_ = locus_take_floats(&arena, (condition) ? (count) : 0);                       \
        slot->field = (condition) ? room_ : NULL;                                                  \
    } while (0)
#define TAKE_ROWS(field, condition, count, width)                                                  \
    do {                                                                                           \
        TAKE(field, condition, (count) * (width));                                                 \
        slot->field##_row = (width);                                                               \
    } while (0)
    TAKE_ROWS(k, wanted->k, c->Tk, c->D);
    TAKE_ROWS(v, wanted->v, c->Tk, c->Dv);
    slot->keys_bytes = arena.used;
    TAKE_ROWS(key_table, wanted->key_table, plan->row_count, c->D);
    TAKE_ROWS(query_table, wanted->query_table && !same_table, plan->row_count, c->D);
    TAKE_ROWS(value_table, wanted->value_table, plan->row_count, c->Dv);
    TAKE(u, wanted->u, c->D);
    TAKE(w, wanted->w, c->D);
    TAKE_ROWS(pos_q, wanted->pos_q, c->Tq, c->D);
    TAKE_ROWS(pos_k, wanted->pos_k, c->Tk, c->D);
#undef TAKE_ROWS
#undef TAKE
    if (same_table && wanted->query_table) slot->query_table = slot->key_table;
    double *bias = locus_take(&arena, wanted->bias ? plan->span : 0, sizeof *bias);
    double *cls = locus_take(&arena, wanted->cls ? 2 : 0, sizeof *cls);
    slot->pos_q_fresh = slot->pos_k_fresh = 0;
    slot->bias = wanted->bias ? bias : NULL;
    slot->cls = wanted->cls ? cls : NULL;
    return arena.used;
}

void locus_own_keys(const locus_backward_call *call, const locus_unit *unit, locus_slot *slot)
{
    const locus_tensors *g = call->grad;
    slot->k = call->wanted.k ? locus_f32(&g->k, unit->b, unit->kv, 0) : NULL;
    slot->v = call->wanted.v ? locus_f32(&g->v, unit->b, unit->kv, 0) : NULL;
    slot->k_row = g->k.stride[2];
    slot->v_row = g->v.stride[2];
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

void locus_own_tables(const locus_backward_call *call, const locus_unit *unit, locus_slot *slot)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *g = call->grad;
    const locus_wanted *wanted = &call->wanted, *owned = &call->owned;
    const int64_t h = unit->h;
    const locus_tensor *key_table = locus_key_table(plan, g);
    const locus_tensor *query_table = locus_query_table(plan, g);
    if (wanted->key_table && owned->key_table) {
        begin_owned(call, key_table, h);
        slot->key_table = locus_table_entries(plan, key_table, h, &slot->key_table_row);
    }
    if (wanted->query_table && owned->query_table) {
        if (query_table != key_table) begin_owned(call, query_table, h);
        slot->query_table = locus_table_entries(plan, query_table, h, &slot->query_table_row);
    }
    if (wanted->pos_q && owned->pos_q) {
        const int64_t rows = plan->backward.rows, first = plan->call.query_offset;
        begin_some(call, &g->pos_q, h, 0, first + unit->tile_from * rows);
        begin_some(call, &g->pos_q, h, first + locus_least(unit->tile_to * rows, plan->call.Tq),
                   g->pos_q.shape[1]);
        slot->pos_q = locus_f32(&g->pos_q, h, first, 0);
        slot->pos_q_row = g->pos_q.stride[1];
        slot->pos_q_fresh = !call->accumulate;
    }
    if (wanted->pos_k && owned->pos_k) {
        begin_some(call, &g->pos_k, h, plan->call.Tk, g->pos_k.shape[1]);
        slot->pos_k = locus_f32(&g->pos_k, h, 0, 0);
        slot->pos_k_row = g->pos_k.stride[1];
        slot->pos_k_fresh = !call->accumulate;
    }
}
