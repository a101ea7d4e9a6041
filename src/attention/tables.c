/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/tables.h"

#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "core/tensor.h"

/* 1 for a table that all heads share. */
static int64_t copies(const locus_plan *plan, const locus_tensor *table)
{
    return table->rank == 3 ? plan->call.H : 1;
}

static float *take_panels(const locus_plan *plan, const locus_tensor *table, locus_arena *arena,
                          int64_t *each)
{
    *each = 0;
    if (table == NULL || plan->few_rows) return NULL;
    const int64_t floats = locus_panel_floats(plan->row_count, plan->call.D);
    *each = table->rank == 3 ? floats : 0;
    return locus_take_floats(arena, copies(plan, table) * floats);
}

static void carve(const locus_plan *plan, locus_arena *arena, locus_tables *t)
{
    const locus_call *call = &plan->call;
    const locus_tensors *in = &plan->shapes;
    const locus_tensor *values = locus_value_table(plan, in);
    const int places = locus_present(&in->pos_k) && !plan->few_rows;
    t->bias = locus_take_floats(arena, call->H * locus_bias_room(plan, &plan->forward));
    t->key_panels = take_panels(plan, locus_key_table(plan, in), arena, &t->key_each);
    t->place_each = places ? locus_panel_floats(call->Tk, call->D) : 0;
    t->place_panels = locus_take_floats(arena, call->H * t->place_each);
    t->place_bad = locus_take(arena, places ? call->H * call->Tk : 0, 1);
    t->value_bad = locus_take(arena, values ? plan->row_count : 0, 1);
}

/* Pack the tables of one head by the code that packs them in a call. */
typedef struct filling {
    locus_tables *tables;
    const locus_tensors *in;
} filling;

static void fill_head(void *context, size_t index, uint32_t worker_number)
{
    const filling *f = context;
    const locus_plan *plan = f->tables->plan;
    (void)worker_number;
    locus_worker worker = {0};
    const locus_head head = {.plan = plan,
                             .geometry = &plan->forward,
                             .in = f->in,
                             .worker = &worker,
                             .unpacked = plan->few_rows,
                             .packs_scale = 1,
                             .tables = f->tables,
                             .h = (int64_t)index};
    locus_tables_use(&head);
    const int first = index == 0;
    if (!first && f->tables->key_each == 0) worker.key_table_panels = NULL;
    if (!first) worker.value_table_bad = NULL;
    locus_tables_pack(&head);
}

static locus_tables *allocate(const locus_plan *plan)
{
    locus_tables measured;
    locus_arena arena = {NULL, 0};
    locus_take(&arena, 1, sizeof measured);
    carve(plan, &arena, &measured);
    char *memory = locus_allocate(plan->allocator, arena.used, 1);
    if (memory == NULL) return NULL;
    arena = (locus_arena){memory, 0};
    locus_tables *tables = locus_take(&arena, 1, sizeof *tables);
    tables->plan = plan;
    carve(plan, &arena, tables);
    return tables;
}

locus_status locus_tables_new(locus_tables **out, const locus_plan *plan, const locus_tensors *in,
                              locus_error *error)
{
    if (out == NULL || plan == NULL || in == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tables: NULL argument");
    *out = NULL;
    LOCUS_TRY(locus_check_inputs(plan, in, error));
    locus_tables *tables = allocate(plan);
    if (tables == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "tables: out of memory");
    filling f = {tables, in};
    locus_lower_biases(plan, &plan->forward, in, tables->bias);
    locus_parallel_for(plan->threads, (size_t)plan->call.H, fill_head, &f);
    *out = tables;
    return LOCUS_OK;
}

void locus_tables_free(locus_tables *tables)
{
    if (tables != NULL) locus_release(tables->plan->allocator, tables);
}

void locus_tables_use(const locus_head *head)
{
    const locus_tables *t = head->tables;
    locus_worker *w = head->worker;
    const int64_t h = head->h;
    w->key_table_panels = t->key_panels != NULL ? t->key_panels + h * t->key_each : NULL;
    if (!head->unpacked) {
        w->place_panels = t->place_panels + h * t->place_each;
        w->place_bad = t->place_bad + h * head->plan->call.Tk;
    }
    w->value_table_bad = t->value_bad;
}
