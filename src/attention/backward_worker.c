/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/backward_worker.h"

#include <string.h>

#include "attention/lower.h"

static void carve_rows(const locus_plan *plan, locus_arena *arena, locus_gradient_rows *r)
{
    const int64_t count = plan->backward.rows + LOCUS_LANES, D = plan->call.D;
    const int positions = locus_present(&plan->shapes.pos_q);
    locus_queries_carve(plan, &plan->backward, 1, arena, &r->queries);
    r->lse = locus_take_floats(arena, count);
    r->factor = locus_take_floats(arena, count);
    r->row_dot = locus_take_floats(arena, count);
    r->dout_rows = locus_take_floats(arena, count * plan->call.Dv);
    r->dout_bad = locus_take_flags(arena, 1, count);
    r->dcontent = locus_take_floats(arena, count * D);
    r->dposition = plan->same_query_rows
                       ? r->dcontent
                       : locus_take_optional(arena, plan->index != NULL, count * plan->key_width);
    r->dpos_q = locus_take_optional(arena, positions, count * D);
    r->dgate = plan->has_gate ? locus_take(arena, count, sizeof *r->dgate) : NULL;
    r->dgate_sum = plan->has_log_gate ? locus_take(arena, count, sizeof *r->dgate_sum) : NULL;
}

static void carve_tile(const locus_plan *plan, locus_arena *arena, locus_backward_worker *w)
{
    const locus_geometry *g = &plan->backward;
    const int64_t rows = g->rows + LOCUS_LANES, D = plan->call.D, Dv = plan->call.Dv;
    const int drops = plan->call.dropout > 0.0;
    const int rolls = plan->index != NULL && !locus_packs_tables_backward(plan);
    locus_packed_carve(plan, g, rolls, arena, &w->scores);
    w->scores.cap_slopes = locus_take_optional(arena, plan->call.softcap > 0.0, rows * g->stride);
    locus_take_floats(arena, LOCUS_LANES); /* before each, for entry_run.h */
    w->grad = locus_take_floats(arena, rows * g->stride);
    locus_take_floats(arena, LOCUS_LANES);
    w->dropped = locus_take_optional(arena, drops, rows * g->stride);
    w->weights = drops ? w->dropped : w->scores.score;
    w->pair_ds = plan->has_pair_bias ? locus_take(arena, g->keys, sizeof *w->pair_ds) : NULL;
    w->diagonal = locus_take_optional(arena, plan->has_bias, g->distances);
    w->column_sums = locus_take_optional(arena, plan->has_log_gate, g->keys);
    w->gated = locus_take_optional(arena, plan->has_gate, rows * g->stride);
    w->clean_keys = locus_take_floats(arena, g->keys * D);
    w->clean_rows = locus_take_floats(arena, max_i64(rows, g->keys) * max_i64(D, plan->key_width));
    w->clean_dout = locus_take_floats(arena, rows * Dv);
    const locus_tensor *dense = &plan->shapes.bias_dense;
    const int shared = dense->shape[0] != plan->call.B || dense->shape[1] != plan->call.H;
    w->dense_sums =
        locus_take_optional(arena, locus_is_half(dense) && shared, g->rows * plan->call.Tk);
    w->gain_product = locus_take_optional(arena, plan->gain != NULL || plan->has_decay, rows * D);
    w->key_product = locus_take_optional(arena, plan->has_decay, g->keys * D);
}

void locus_backward_worker_carve(const locus_plan *plan, locus_arena *arena,
                                 locus_backward_worker *w)
{
    const locus_geometry *g = &plan->backward;
    const int relative = plan->index != NULL;
    const int64_t strips = locus_strips_floats(plan, g);
    locus_keys_carve_backward(plan, arena, &w->keys);
    w->tables = (locus_head_tables){0};
    if (!locus_heads_share_tables(plan)) locus_carve_relative_backward(plan, arena, &w->tables);
    locus_carve_pos_k(plan, arena, &w->tables);
    carve_tile(plan, arena, w);
    locus_softmax_rows_carve(g, arena, &w->softmax);
    for (int64_t i = 0; i < g->group; i++) carve_rows(plan, arena, &w->rows[i]);
    w->value_strip_room = locus_take_optional(arena, relative, strips);
    w->key_fold_room = locus_take_optional(arena, relative, strips);
    w->value_fold_room = locus_take_optional(arena, relative, strips);
    w->written = locus_take(arena, ceil_div(plan->call.Tk, g->keys), sizeof *w->written);
}

/* Relative tables that heads share were packed with the call. */
static void use_shared_tables(const locus_backward_call *call, locus_head_tables *tables)
{
    locus_head_tables shared = call->relative;
    shared.pos_k_panels = tables->pos_k_panels;
    shared.pos_k_bad = tables->pos_k_bad;
    *tables = shared;
}

/* A softcap's slopes, counted positions and the gradient of a sink need the scores. */
static const locus_tensor *kept_weights(const locus_backward_call *call)
{
    const int needs_scores =
        call->plan->call.softcap > 0.0 || call->plan->counts || locus_present(&call->in->sink);
    const locus_tensor *weights = &call->results->weights;
    return locus_present(weights) && !needs_scores ? weights : NULL;
}

void locus_backward_worker_begin(const locus_backward_call *call, uint32_t thread, int64_t b,
                                 int64_t h, locus_backward_worker *w)
{
    const locus_plan *plan = call->plan;
    locus_arena arena = {call->scratch + thread * call->scratch_bytes, 0};
    locus_backward_worker_carve(plan, &arena, w);
    if (locus_heads_share_tables(plan)) use_shared_tables(call, &w->tables);
    w->call = call;
    w->slot = NULL;
    w->kept = kept_weights(call);
    w->head = locus_head_at(plan, &plan->backward, call->in, b, h);
    w->head.shown = call->shown;
    w->scores.head = &w->head;
    w->scores.keys = &w->keys;
    w->scores.tables = &w->tables;
    w->scores.prefetch = &w->prefetch;
    w->scores.bias = locus_head_bias(call->bias, h);
    w->scores.shared = call->shared;
    locus_prefetch_begin(&w->prefetch);
}

/* Those that were packed before the call; what is missing among them is packed now (tables.c). But
 * where every row sees every key no row of pos_k counts as bad, and that only the task knows. */
static void use_prepared_tables(locus_backward_worker *w, int64_t from, int64_t to)
{
    const locus_head_tables own = w->tables;
    locus_head_tables *tables = &w->tables;
    *tables = locus_tables_of_head(w->call->tables, w->head.h);
    if (tables->key_panels == NULL && own.key_panels != NULL) {
        const locus_head_tables missing = {.key_panels = own.key_panels};
        locus_pack_relative(&w->head, &missing);
        tables->key_panels = own.key_panels;
    }
    if (own.pos_k_panels == NULL) return;
    if (tables->pos_k_panels == NULL || w->head.all_seen) tables->pos_k_bad = own.pos_k_bad;
    if (tables->pos_k_panels == NULL) {
        tables->pos_k_panels = own.pos_k_panels;
        locus_pack_pos_k(&w->head, tables, from, to);
    } else if (w->head.all_seen) {
        locus_find_bad_pos_k(&w->head, tables, from, to);
    }
}

void locus_backward_worker_pack(locus_backward_worker *w, int64_t from, int64_t to)
{
    if (w->kept != NULL) w->keys.panels = w->tables.key_panels = NULL; /* which only scores read */
    if (w->call->tables != NULL) {
        use_prepared_tables(w, from, to);
    } else {
        if (!locus_heads_share_tables(w->head.plan)) locus_pack_relative(&w->head, &w->tables);
        locus_pack_pos_k(&w->head, &w->tables, from, to);
    }
    locus_keys_pack(&w->head, &w->keys, from, to);
}
