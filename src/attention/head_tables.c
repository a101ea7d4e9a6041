/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/head_tables.h"

/* The rows path reads tables in place. */
void locus_carve_relative_forward(const locus_plan *plan, locus_arena *arena,
                                  locus_head_tables *tables)
{
    const int relative = plan->index != NULL;
    tables->key_panels = locus_take_optional(arena, relative && !plan->rows_path,
                                             locus_panel_floats(plan->row_count, plan->key_width));
    tables->value_bad = locus_take_flags(arena, relative, plan->row_count);
}

int locus_packs_tables_backward(const locus_plan *plan)
{
    return locus_panel_floats(plan->row_count, plan->key_width) <= PACKED_TABLE_FLOATS;
}

void locus_carve_relative_backward(const locus_plan *plan, locus_arena *arena,
                                   locus_head_tables *tables)
{
    const int64_t count = plan->row_count;
    const int relative = plan->index != NULL, packs = relative && locus_packs_tables_backward(plan);
    const int key_side = locus_key_side_table(plan, &plan->shapes) != NULL;
    const int values = locus_value_table(plan, &plan->shapes) != NULL;
    tables->key_panels =
        locus_take_optional(arena, packs, locus_panel_floats(count, plan->key_width));
    tables->value_panels =
        locus_take_optional(arena, packs && values, locus_panel_floats(count, plan->call.Dv));
    tables->key_bad = locus_take_flags(arena, relative, count);
    tables->key_side_bad = locus_take_flags(arena, key_side, count);
    tables->value_bad = locus_take_flags(arena, relative, count);
}

void locus_carve_pos_k(const locus_plan *plan, locus_arena *arena, locus_head_tables *tables)
{
    const int64_t Tk = plan->call.Tk;
    const int positions = locus_present(&plan->shapes.pos_k);
    tables->pos_k_panels =
        locus_take_optional(arena, positions, locus_panel_floats(Tk, plan->call.D));
    tables->pos_k_bad = locus_take_flags(arena, positions, Tk);
}

static void pack_table(const head_context *head, const locus_tensor *table, int64_t width,
                       float scale, float *panels)
{
    if (table == NULL || panels == NULL) return;
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->pack(panels, entries, stride, head->plan->row_count, width, scale);
}

static void find_bad_entries(const head_context *head, const locus_tensor *table, int64_t width,
                             uint8_t *bad)
{
    if (table == NULL || bad == NULL) return;
    int64_t stride;
    const float *entries = locus_table_entries(head->plan, table, head->h, &stride);
    head->plan->kernels->bad_rows(bad, entries, stride, LOCUS_F32, head->plan->row_count, width);
}

void locus_pack_relative(const head_context *head, const locus_head_tables *tables)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *keys = locus_key_table(plan, head->in);
    const locus_tensor *key_side = locus_key_side_table(plan, head->in);
    const locus_tensor *values = locus_value_table(plan, head->in);
    const int64_t D = plan->call.D, Dv = plan->call.Dv;
    find_bad_entries(head, values, Dv, tables->value_bad);
    find_bad_entries(head, keys, plan->key_width, tables->key_bad);
    find_bad_entries(head, key_side, D, tables->key_side_bad);
    pack_table(head, keys, plan->key_width, locus_key_table_scale(head), tables->key_panels);
    pack_table(head, values, Dv, 1.0f, tables->value_panels);
}

/* Rows of pos_k that the keys [from, to) have. Keys that nobody sees may have none. */
static int64_t known_positions(const head_context *head, int64_t from, int64_t to)
{
    const int64_t first = locus_position_row(head->plan, from);
    return min_i64(to - from, max_i64(0, head->in->pos_k.shape[1] - first));
}

static const float *position_rows(const head_context *head, int64_t from)
{
    return locus_f32(&head->in->pos_k, head->h, locus_position_row(head->plan, from), 0);
}

/* Keys without a row count as bad, which keeps them out. */
void locus_find_bad_pos_k(const head_context *head, const locus_head_tables *tables, int64_t from,
                          int64_t to)
{
    const int64_t known = known_positions(head, from, to);
    locus_find_bad(head, !head->all_seen || head->plan->has_reset, tables->pos_k_bad + from,
                   position_rows(head, from), head->in->pos_k.stride[1], known, head->plan->call.D);
    for (int64_t n = from + known; n < to; n++) tables->pos_k_bad[n] = 1;
}

void locus_pack_pos_k(const head_context *head, const locus_head_tables *tables, int64_t from,
                      int64_t to)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    if (!locus_present(pos_k) || tables->pos_k_panels == NULL) return;
    const int64_t D = head->plan->call.D;
    locus_find_bad_pos_k(head, tables, from, to);
    head->plan->kernels->pack(tables->pos_k_panels + locus_panel_at(from, D),
                              position_rows(head, from), pos_k->stride[1],
                              known_positions(head, from, to), D, 1.0f);
}

locus_operand locus_pos_k_operand(const head_context *head, const locus_head_tables *tables,
                                  int64_t first, int64_t count, float *room)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    const int64_t row = locus_position_row(head->plan, first);
    return locus_operand_of(locus_f32(pos_k, head->h, row, 0), pos_k->stride[1], count,
                            head->plan->call.D, tables->pos_k_bad + first, room);
}
