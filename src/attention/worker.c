/* SPDX-License-Identifier: Apache-2.0 */
/* The scratch of a thread: what a scheme and a direction need, and no more. */

#include "attention/relative.h"
#include "core/tensor.h"

void locus_worker_carve(const locus_plan *plan, const locus_geometry *g, int backward,
                        locus_arena *arena, locus_worker *w)
{
    const locus_call *call = &plan->call;
    const int64_t D = call->D, Dv = call->Dv, wide = locus_most(D, Dv), Tk = call->Tk;
    const int64_t rows = g->rows + LOCUS_LANES, all_rows = g->rows * g->group + LOCUS_LANES;
    const int places = locus_present(&plan->shapes.pos_q);
    const int tables = plan->index != NULL;
    const int by_keys = locus_query_table(plan, &plan->shapes) != NULL;
    const int64_t strips = tables ? locus_strips_floats(plan, g) : 0;
    const int64_t some_rows = locus_least(BAND_ROWS, g->rows);
    w->key_panels =
        locus_take_floats(arena, plan->few_rows && !backward ? 0 : locus_panel_floats(Tk, D));
    w->value_panels = locus_take_floats(arena, backward ? locus_panel_floats(Tk, Dv) : 0);
    const int few = plan->few_rows && !backward;
    w->place_panels = locus_take_floats(arena, places && !few ? locus_panel_floats(Tk, D) : 0);
    w->key_bad = locus_take(arena, Tk, 1);
    w->value_bad = locus_take(arena, Tk, 1);
    w->place_bad = locus_take(arena, places ? Tk : 0, 1);

    w->content = locus_take_floats(arena, all_rows * D);
    const int alike = plan->turn_query == NULL && !locus_present(&plan->shapes.u) &&
                      !locus_present(&plan->shapes.w);
    w->position = alike ? w->content : locus_take_floats(arena, tables ? all_rows * D : 0);
    w->place = locus_take_floats(arena, places ? all_rows * D : 0);
    w->faded = locus_take_floats(arena, plan->gain != NULL ? rows * D : 0);
    w->out = locus_take_floats(arena, all_rows * Dv);
    w->top = locus_take_floats(arena, all_rows);
    w->sum = locus_take_floats(arena, all_rows);
    w->carry = locus_take_floats(arena, rows);
    w->part = locus_take_floats(arena, rows);
    w->greatest = locus_take_floats(arena, rows * LOCUS_LANES);
    w->lse = locus_take_floats(arena, all_rows);
    w->factor = locus_take_floats(arena, all_rows);
    w->delta = locus_take_floats(arena, all_rows);

    const int64_t before = backward && tables ? LOCUS_LANES : 0; /* of each, for near.h */
    locus_take_floats(arena, before);
    w->score = locus_take_floats(arena, rows * g->stride);
    locus_take_floats(arena, before);
    w->grad = locus_take_floats(arena, backward ? rows * g->stride : 0);
    locus_take_floats(arena, before);
    w->dropped = locus_take_floats(arena, backward && call->dropout > 0.0 ? rows * g->stride : 0);
    w->places = locus_take_floats(arena, (places ? rows : by_keys ? some_rows : 0) * g->stride);
    w->expanded = locus_take_floats(arena, tables ? some_rows * EXPANDED_WIDTH : 0);
    w->shift = locus_take_floats(arena, tables ? some_rows : 0);
    w->zeros = locus_take_floats(arena, places ? g->keys : 0);
    /* Backward, tables of more than 2 MB are packed as they roll. */
    const int64_t packed = locus_panel_floats(plan->row_count, D);
    const int packs = backward ? packed <= 1 << 19 : !plan->few_rows;
    const int64_t panels = tables && packs ? packed : 0;
    w->bias = locus_take_floats(arena, few && plan->has_bias ? g->window : 0);
    for (size_t i = 0; i < (backward ? 4 : 2); i++)
        w->strips[i] = locus_take_floats(arena, (few ? g->group : 1) * strips);
    w->key_strip = locus_take_floats(arena, by_keys && !few ? locus_key_strip_floats(plan, g) : 0);
    float *key_panels = locus_take_floats(arena, panels);
    w->key_table_panels = panels > 0 ? key_panels : NULL;
    const int packs_values =
        backward && panels > 0 && locus_value_table(plan, &plan->shapes) != NULL;
    const int64_t value_floats = packs_values ? locus_panel_floats(plan->row_count, Dv) : 0;
    float *value_panels = locus_take_floats(arena, value_floats);
    w->value_table_panels = packs_values ? value_panels : NULL;
    w->entry_panels = locus_take_floats(arena, tables ? locus_panel_floats(MOST_KEYS, wide) : 0);
    w->key_table_bad = locus_take(arena, tables ? plan->row_count : 0, 1);
    w->query_table_bad = locus_take(arena, by_keys ? plan->row_count : 0, 1);
    w->value_table_bad = locus_take(arena, tables ? plan->row_count : 0, 1);
    for (size_t i = 0; i < sizeof w->clean / sizeof *w->clean; i++)
        w->clean[i] = locus_take_floats(arena, locus_most(rows, g->keys) * wide);
    const int copies_keys = plan->turn_key != NULL || backward;
    w->copied_keys =
        locus_take_floats(arena, !copies_keys                            ? 0
                                 : locus_keeps_copied(plan, g, backward) ? Tk * D
                                                                         : g->keys * D);
    w->gathered = locus_take_floats(arena, few || backward ? 0 : Tk * Dv);
    w->written = locus_take(arena, backward ? locus_ceil_div(Tk, g->keys) : 0, sizeof *w->written);
    w->progress = locus_take(arena, 1, sizeof *w->progress);
    w->content_bad = locus_take(arena, all_rows, 1);
    w->position_bad = locus_take(arena, all_rows, 1);
    w->place_row_bad = locus_take(arena, all_rows, 1);
    w->dout_bad = locus_take(arena, all_rows, 1);

    w->dout = locus_take_floats(arena, backward ? all_rows * Dv : 0);
    w->dcontent = locus_take_floats(arena, backward ? all_rows * D : 0);
    w->dposition =
        alike ? w->dcontent : locus_take_floats(arena, backward && tables ? all_rows * D : 0);
    w->dplace = locus_take_floats(arena, backward && places ? all_rows * D : 0);
    w->diagonal = locus_take_floats(arena, backward && plan->has_bias ? g->window : 0);
}

void locus_worker_shift(const locus_plan *plan, const locus_worker *w, int64_t first,
                        locus_worker *to)
{
    const int64_t D = plan->call.D, Dv = plan->call.Dv;
    *to = *w;
    to->content += first * D;
    to->out += first * Dv;
    to->top += first;
    to->sum += first;
    to->dcontent += first * D;
    to->dout += first * Dv;
    to->lse += first;
    to->factor += first;
    to->delta += first;
    to->content_bad += first;
    to->dout_bad += first;
    if (plan->index != NULL) { /* few rows */
        const locus_geometry *g = &plan->forward;
        to->position += first * D;
        for (int i = 0; i < 2; i++) to->strips[i] += first / g->rows * locus_strips_floats(plan, g);
    }
    if (locus_present(&plan->shapes.pos_q)) {
        to->place += first * D;
        to->dplace += first * D;
        to->place_row_bad += first;
    }
}
