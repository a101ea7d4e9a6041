/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/tables.h"

#include "attention/check.h"
#include "attention/lower.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

/* ---- layout ---- */

static int64_t heads_of(const locus_plan *plan, const locus_tensor *table)
{
    return table->rank == 3 ? plan->call.H : 1;
}

static int64_t step_of(const locus_tensor *table, int64_t count)
{
    return table != NULL && table->rank == 3 ? count : 0;
}

/* Forward, the rows path reads tables in place. Backward, a head's table is read as it stands, too,
 * so packing it in the cache costs no more than to read another copy from memory: it pays where
 * several tasks use it. */
static int packs_heads(const locus_plan *plan, locus_pass pass)
{
    if (pass == LOCUS_FORWARD) return !plan->rows_path;
    return plan->call.B * plan->backward_chunks > 1;
}

/* Backward, large tables are packed as strips roll. */
static int packs_table(const locus_plan *plan, locus_pass pass, const locus_tensor *table)
{
    if (pass == LOCUS_BACKWARD && !locus_packs_tables_backward(plan)) return 0;
    return packs_heads(plan, pass) || (pass == LOCUS_BACKWARD && table->rank == 2);
}

static void carve_relative(const locus_plan *plan, locus_arena *arena, locus_tables *t)
{
    const locus_tensors *in = &plan->shapes;
    const locus_tensor *keys = locus_key_table(plan, in), *values = locus_value_table(plan, in);
    const locus_tensor *key_side = locus_key_side_table(plan, in);
    const int backward = t->pass == LOCUS_BACKWARD;
    const int64_t count = plan->row_count, floats = locus_panel_floats(count, plan->key_width);
    t->key_step = step_of(keys, floats);
    t->key_bad_step = step_of(keys, count);
    t->key_side_bad_step = step_of(key_side, count);
    if (keys != NULL) {
        t->first.key_panels = locus_take_optional(arena, packs_table(plan, t->pass, keys),
                                                  heads_of(plan, keys) * floats);
        t->first.key_bad = locus_take_flags(arena, backward, heads_of(plan, keys) * count);
    }
    if (key_side != NULL)
        t->first.key_side_bad = locus_take_flags(arena, backward, heads_of(plan, key_side) * count);
    if (values != NULL) {
        t->first.value_panels =
            locus_take_optional(arena, backward && packs_table(plan, t->pass, values),
                                locus_panel_floats(count, plan->call.Dv));
        t->first.value_bad = locus_take_flags(arena, 1, count);
    }
}

static void carve_positions(const locus_plan *plan, locus_arena *arena, locus_tables *t)
{
    const locus_call *call = &plan->call;
    if (!locus_present(&plan->shapes.pos_k) || !packs_heads(plan, t->pass)) return;
    t->pos_k_step = locus_panel_floats(call->Tk, call->D);
    t->first.pos_k_panels = locus_take_floats(arena, call->H * t->pos_k_step);
    t->first.pos_k_bad = locus_take_flags(arena, 1, call->H * call->Tk);
}

static const locus_geometry *geometry_of(const locus_tables *t)
{
    return t->pass == LOCUS_FORWARD ? &t->plan->forward : &t->plan->backward;
}

/* The sequences of a ragged batch share what is gathered, and biases. */
static void carve(locus_tables *t, locus_arena *arena, const locus_tensors *in)
{
    const locus_plan *plan = t->plan;
    locus_gather_carve(plan, t->pass, arena, in, &t->gathered);
    t->bias = locus_take_floats(arena, plan->call.H * locus_bias_room(plan, geometry_of(t)));
    if (plan->ragged != NULL) return;
    carve_relative(plan, arena, t);
    carve_positions(plan, arena, t);
}

locus_head_tables locus_tables_of_head(const locus_tables *tables, int64_t h)
{
    locus_head_tables t = tables->first;
    if (t.key_panels != NULL) t.key_panels += h * tables->key_step;
    if (t.key_bad != NULL) t.key_bad += h * tables->key_bad_step;
    if (t.key_side_bad != NULL) t.key_side_bad += h * tables->key_side_bad_step;
    if (t.pos_k_panels != NULL) t.pos_k_panels += h * tables->pos_k_step;
    if (t.pos_k_bad != NULL) t.pos_k_bad += h * tables->plan->call.Tk;
    return t;
}

locus_status locus_check_tables(const locus_tables *tables, const locus_plan *plan, locus_pass pass,
                                locus_error *error)
{
    const char *const names[] = {"forward", "backward"};
    const char *found = tables == NULL         ? "NULL"
                        : tables->plan != plan ? "those of another plan"
                        : tables->pass != pass ? "those of the other direction"
                                               : NULL;
    if (found == NULL) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_ARGUMENT,
                      "%s: tables: found %s, expected those made for this plan and direction",
                      names[pass], found);
}

/* ---- making them ---- */

/* Pack the tables of one head by the code that packs them in a call. */
typedef struct filling {
    locus_tables *tables;
    const locus_tensors *in;
} filling;

static void fill_head(void *context, size_t index, uint32_t worker_number)
{
    const filling *f = context;
    const locus_tables *made = f->tables;
    const locus_plan *plan = made->plan;
    (void)worker_number;
    head_context head = locus_head_at(plan, geometry_of(made), f->in, 0, (int64_t)index);
    head.scale_in_panels = made->pass == LOCUS_FORWARD;
    locus_head_tables tables = locus_tables_of_head(made, head.h);
    if (head.h > 0) { /* what heads share is made by the first */
        tables.value_bad = NULL;
        tables.value_panels = NULL;
        if (made->key_step == 0) tables.key_panels = NULL;
        if (made->key_bad_step == 0) tables.key_bad = NULL;
        if (made->key_side_bad_step == 0) tables.key_side_bad = NULL;
    }
    locus_pack_relative(&head, &tables);
    locus_pack_pos_k(&head, &tables, 0, plan->call.Tk);
}

static locus_tables *allocate(const locus_plan *plan, locus_pass pass, const locus_tensors *in)
{
    locus_tables measured = {.plan = plan, .pass = pass};
    locus_arena arena = {NULL, 0};
    locus_take(&arena, 1, sizeof measured);
    carve(&measured, &arena, in);
    char *memory = locus_allocate(plan->allocator, arena.used, 1);
    if (memory == NULL) return NULL;
    arena = (locus_arena){memory, 0};
    locus_tables *tables = locus_take(&arena, 1, sizeof *tables);
    *tables = (locus_tables){.plan = plan, .pass = pass};
    carve(tables, &arena, in);
    return tables;
}

static locus_status make(locus_tables **out, const locus_plan *plan, locus_pass pass,
                         const locus_tensors *in, locus_error *error)
{
    if (out == NULL || plan == NULL || in == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tables: NULL argument");
    *out = NULL;
    locus_tensors own_in;
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_check_table_inputs(plan, in, error));
    locus_tables *tables = allocate(plan, pass, in);
    if (tables == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "tables: out of memory");
    filling f = {tables, in};
    if (plan->gathers) {
        locus_gather(plan, pass, in, &tables->gathered);
        f.in = &tables->gathered;
    }
    locus_lower_biases(plan, geometry_of(tables), f.in, tables->bias);
    if (plan->ragged == NULL)
        locus_parallel_for(plan->threads, (size_t)plan->call.H, fill_head, &f);
    *out = tables;
    return LOCUS_OK;
}

locus_status locus_tables_new(locus_tables **out, const locus_plan *plan, const locus_tensors *in,
                              locus_error *error)
{
    return make(out, plan, LOCUS_FORWARD, in, error);
}

locus_status locus_tables_new_backward(locus_tables **out, const locus_plan *plan,
                                       const locus_tensors *in, locus_error *error)
{
    return make(out, plan, LOCUS_BACKWARD, in, error);
}

void locus_tables_free(locus_tables *tables)
{
    if (tables != NULL) locus_release(tables->plan->allocator, tables);
}
