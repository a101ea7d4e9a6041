/* SPDX-License-Identifier: Apache-2.0 */
/* What the backward pass reads and writes next: see ahead.h. */

#include "attention/backward.h"
#include "core/tensor.h"

/* Of the head's table and its gradient, the share of rows that belongs to keys [from, to). */
static void add_table(locus_lookahead *look, const locus_plan *plan, const locus_tensor *table,
                      const locus_tensor *grad, int64_t h, int64_t from, int64_t to)
{
    if (table == NULL || table->rank != 3 || plan->call.Tk == 0) return;
    const int64_t rows = table->shape[1], Tk = plan->call.Tk;
    locus_ahead_add(look, table, 0, h, from * rows / Tk, to * rows / Tk);
    if (grad != NULL) locus_ahead_add(look, grad, 0, h, from * rows / Tk, to * rows / Tk);
}

/* Keys [from, to) of the next head and what goes with them. */
static void add_next_head(locus_lookahead *look, const locus_backward_call *call,
                          const locus_unit *next, int64_t from, int64_t to)
{
    const locus_plan *plan = call->plan;
    const locus_tensors *in = call->in, *grad = call->grad;
    locus_ahead_add(look, &in->k, next->b, next->kv, from, to);
    locus_ahead_add(look, &in->v, next->b, next->kv, from, to);
    if (next->owns_keys) {
        locus_ahead_add(look, &grad->k, next->b, next->kv, from, to);
        locus_ahead_add(look, &grad->v, next->b, next->kv, from, to);
    }
    if (next->owns_tables)
        add_table(look, plan, locus_key_table(plan, in), locus_key_table(plan, grad), next->h, from,
                  to);
    if (locus_present(&in->pos_k)) {
        const int64_t known = locus_least(to, in->pos_k.shape[1]);
        locus_ahead_add(look, &in->pos_k, 0, next->h, from, known);
        if (next->owns_tables) locus_ahead_add(look, &grad->pos_k, 0, next->h, from, known);
    }
}

/* Rows [from, to) of the queries of a unit. */
static void add_queries(locus_lookahead *look, const locus_backward_call *call,
                        const locus_unit *unit, int64_t from, int64_t to)
{
    const locus_tensors *in = call->in, *grad = call->grad;
    locus_ahead_add(look, &in->q, unit->b, unit->h, from, to);
    locus_ahead_add(look, call->dout, unit->b, unit->h, from, to);
    locus_ahead_add(look, &call->results->out, unit->b, unit->h, from, to);
    locus_ahead_add(look, &grad->q, unit->b, unit->h, from, to);
    if (!locus_present(&in->pos_q)) return;
    const int64_t offset = call->plan->call.query_offset, low = locus_most(0, from + offset);
    const int64_t high = locus_least(to + offset, in->pos_q.shape[1]);
    locus_ahead_add(look, &in->pos_q, 0, unit->h, low, high);
    if (unit->owns_tables) locus_ahead_add(look, &grad->pos_q, 0, unit->h, low, high);
}

void locus_look_ahead(const locus_backward_call *call, const locus_head *head,
                      const locus_unit *now, int64_t from, int64_t to, int64_t pairs)
{
    const locus_plan *plan = call->plan;
    locus_lookahead *look = &head->worker->progress->look;
    const int64_t rows = plan->backward.rows, after = now->index + (int64_t)plan->threads;
    const locus_unit next =
        locus_unit_at(plan, after < locus_unit_count(plan) ? after : now->index, call->accumulate);
    const int last = to == now->tile_to;
    const int64_t first = (last ? next.tile_from : to) * rows;
    const int64_t end = locus_least(first + plan->backward.group * rows, plan->call.Tq);
    const int64_t all = now->tile_to - now->tile_from, Tk = plan->call.Tk;
    locus_ahead_begin(look);
    add_queries(look, call, last ? &next : now, first, end);
    if (next.b != now->b || next.kv != now->kv)
        add_next_head(look, call, &next, (from - now->tile_from) * Tk / all,
                      (to - now->tile_from) * Tk / all);
    locus_ahead_spread(look, 4 * pairs);
}
