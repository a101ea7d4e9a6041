/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/keys.h"

#include "attention/decays.h"
#include "attention/gate_skip.h"

static int copies_keys(const locus_plan *plan)
{
    return plan->turn_key != NULL || plan->has_decay || locus_is_half(&plan->shapes.k);
}

static locus_decay_range *take_ranges(const locus_plan *plan, const locus_geometry *g,
                                      locus_arena *arena)
{
    const int64_t tiles = ceil_div(plan->call.Tk, g->keys);
    return plan->has_decay ? locus_take(arena, tiles, sizeof(locus_decay_range)) : NULL;
}

static locus_gate_reach *take_reaches(const locus_plan *plan, const locus_geometry *g,
                                      locus_arena *arena)
{
    const int64_t tiles = ceil_div(plan->call.Tk, g->keys);
    return locus_gates_may_skip(plan) ? locus_take(arena, tiles, sizeof(locus_gate_reach)) : NULL;
}

void locus_keys_carve_forward(const locus_plan *plan, locus_arena *arena, locus_keys *keys)
{
    const int64_t Tk = plan->call.Tk, D = plan->call.D, Dv = plan->call.Dv;
    *keys = (locus_keys){
        .panels = locus_take_floats(arena, locus_panel_floats(Tk, D)),
        .value_bad = locus_take_flags(arena, 1, Tk),
        .copies = locus_take_optional(arena, copies_keys(plan), plan->forward.keys * D),
        .value_copies = locus_take_floats(arena, Tk * Dv),
        .decay_ranges = take_ranges(plan, &plan->forward, arena),
        .gate_reaches = take_reaches(plan, &plan->forward, arena),
    };
}

void locus_keys_carve_rows_path(const locus_plan *plan, locus_arena *arena, locus_keys *keys)
{
    const int64_t D = plan->call.D;
    *keys = (locus_keys){
        .value_bad = locus_take_flags(arena, 1, plan->call.Tk),
        .copies = locus_take_optional(arena, copies_keys(plan), plan->forward.keys * D),
        .decay_ranges = take_ranges(plan, &plan->forward, arena),
    };
}

/* Key tiles come again with every group of query tiles: copies of all keys stay where that is
 * often; those that are not turned, which is cheap, up to 1 MB. */
static int keeps_all_copies(const locus_plan *plan)
{
    return plan->backward.group == 1 && (plan->turn_key != NULL || plan->has_decay ||
                                         plan->call.Tk * plan->call.D <= KEPT_KEY_FLOATS);
}

void locus_keys_carve_backward(const locus_plan *plan, locus_arena *arena, locus_keys *keys)
{
    const int64_t Tk = plan->call.Tk, D = plan->call.D;
    const int copies_all = keeps_all_copies(plan);
    *keys = (locus_keys){
        .panels = locus_take_floats(arena, locus_panel_floats(Tk, D)),
        .value_panels = locus_take_floats(arena, locus_panel_floats(Tk, plan->call.Dv)),
        .bad = locus_take_flags(arena, 1, Tk),
        .value_bad = locus_take_flags(arena, 1, Tk),
        .copies = locus_take_floats(arena, (copies_all ? Tk : plan->backward.keys) * D),
        .value_tile = locus_take_optional(arena, locus_is_half(&plan->shapes.v),
                                          plan->backward.keys * plan->call.Dv),
        .decay_ranges = take_ranges(plan, &plan->backward, arena),
        .gate_reaches = take_reaches(plan, &plan->backward, arena),
        .copies_all = copies_all,
        .copies_scattered = 1,
    };
}

void locus_keys_begin(locus_keys *keys) { keys->copied_first = keys->copied_count = 0; }

/* Keys [first, first + count) turned, let decay or copied. */
static const float *copied_keys(const head_context *head, locus_keys *keys, int64_t first,
                                int64_t count)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *k = &head->in->k;
    const int64_t D = plan->call.D, end = keys->copied_first + keys->copied_count;
    const int begins = first >= keys->copied_first && first <= end;
    const int contained = begins && first + count <= end, joins = begins && keys->copies_all;
    if (!contained && !joins) {
        keys->copied_first = first;
        keys->copied_count = 0;
    }
    const float *wanted = keys->copies + (first - keys->copied_first) * D;
    const int64_t have = keys->copied_first + keys->copied_count, missing = first + count - have;
    if (contained) return wanted;
    float *rows = keys->copies + keys->copied_count * D;
    const locus_rows from = locus_stored_keys(head, k, have);
    const int turns_stored = plan->turn_key != NULL && from.type == LOCUS_F32;
    keys->copied_count += missing;
    if (!turns_stored) locus_load_rows(plan, rows, from, missing, D);
    if (plan->turn_key != NULL)
        locus_turn_rows(plan, (locus_sums){rows, D}, turns_stored ? from.data : rows,
                        turns_stored ? from.stride : D, locus_key_turns(plan, head->b, have), 1.0f,
                        missing);
    if (plan->has_decay) locus_decay_keys(head, rows, have, missing);
    return wanted;
}

const float *locus_key_rows(const head_context *head, locus_keys *keys, int64_t first,
                            int64_t count, int64_t *stride)
{
    const locus_tensor *k = &head->in->k;
    const int64_t D = head->plan->call.D;
    const int copies = keys->copies_scattered && locus_rows_share_sets(k->stride[2], D);
    *stride = D;
    if (copies_keys(head->plan) || copies) return copied_keys(head, keys, first, count);
    *stride = k->stride[2];
    return locus_key_row(head, k, first);
}

/* Forward, the weights are multiplied with the values again and again. */
static int copies_values(const head_context *head, const locus_keys *keys)
{
    const locus_tensor *v = &head->in->v;
    return keys->value_copies != NULL &&
           (locus_is_half(v) || locus_rows_share_sets(v->stride[2], head->plan->call.Dv));
}

const float *locus_value_rows(const head_context *head, const locus_keys *keys, int64_t first,
                              int64_t *stride)
{
    const int64_t Dv = head->plan->call.Dv;
    const int copies = copies_values(head, keys);
    *stride = copies ? Dv : head->in->v.stride[2];
    return copies ? keys->value_copies + first * Dv : locus_key_row(head, &head->in->v, first);
}

static void pack_keys(const head_context *head, locus_keys *keys, int64_t first, int64_t count)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D;
    const int key_side = locus_key_side_table(plan, head->in) != NULL;
    int64_t stride;
    const float *rows = locus_key_rows(head, keys, first, count, &stride);
    if (plan->has_decay)
        keys->decay_ranges[first / head->geometry->keys] = locus_decay_range_of(head, first);
    if (keys->gate_reaches != NULL)
        keys->gate_reaches[first / head->geometry->keys] =
            locus_gate_reach_of(head, rows, stride, first, count);
    if (keys->bad != NULL)
        locus_find_bad(head, !head->all_seen || key_side, keys->bad + first, rows, stride, count,
                       D);
    if (keys->panels != NULL)
        plan->kernels->pack(keys->panels + locus_panel_at(first, D), rows, stride, count, D,
                            locus_panel_scale(head));
}

void locus_find_bad_values(const head_context *head, locus_keys *keys, int64_t first, int64_t count)
{
    locus_find_bad_stored(head, head->plan->hides, keys->value_bad + first,
                          locus_stored_keys(head, &head->in->v, first), count, head->plan->call.Dv);
}

static void pack_values(const head_context *head, const locus_keys *keys, locus_rows values,
                        int64_t first, int64_t count)
{
    const locus_plan *plan = head->plan;
    const int64_t Dv = plan->call.Dv;
    const float *rows = values.data;
    if (values.type != LOCUS_F32) {
        locus_load_rows(plan, keys->value_tile, values, count, Dv);
        rows = keys->value_tile;
        values.stride = Dv;
    }
    plan->kernels->pack(keys->value_panels + locus_panel_at(first, Dv), rows, values.stride, count,
                        Dv, 1.0f);
}

/* A key tile at a time, which then is still in the cache for each of the steps. */
void locus_keys_pack(const head_context *head, locus_keys *keys, int64_t from, int64_t to)
{
    const locus_tensor *v = &head->in->v;
    const int64_t Dv = head->plan->call.Dv;
    locus_keys_begin(keys);
    for (int64_t first = from; first < to; first += head->geometry->keys) {
        const int64_t count = min_i64(head->geometry->keys, to - first);
        const locus_rows values = locus_stored_keys(head, v, first);
        if (copies_values(head, keys))
            locus_load_rows(head->plan, keys->value_copies + first * Dv, values, count, Dv);
        pack_keys(head, keys, first, count);
        locus_find_bad_values(head, keys, first, count);
        if (keys->value_panels != NULL) pack_values(head, keys, values, first, count);
    }
}

locus_operand locus_key_operand(const head_context *head, locus_keys *keys, int64_t first,
                                int64_t count, float *room)
{
    int64_t stride;
    const float *rows = locus_key_rows(head, keys, first, count, &stride);
    return locus_operand_of(rows, stride, count, head->plan->call.D, keys->bad + first, room);
}

locus_operand locus_value_operand(const head_context *head, const locus_keys *keys, int64_t first,
                                  int64_t count, float *room)
{
    int64_t stride;
    const float *rows = locus_value_rows(head, keys, first, &stride);
    locus_operand values =
        locus_operand_of(rows, stride, count, head->plan->call.Dv, keys->value_bad + first, room);
    values.of_weights = 1;
    return values;
}
