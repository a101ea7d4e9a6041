/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/tables.h"

#include "attention/check.h"
#include "attention/gathered.h"
#include "attention/lower.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

static int has_heads(const locus_tensor *table) { return table != NULL && table->rank == 3; }

/* The rows path reads tables in place. */
static void carve(const locus_plan *plan, locus_arena *arena, locus_tables *t)
{
    const locus_call *call = &plan->call;
    const locus_tensors *in = &plan->shapes;
    const locus_tensor *keys = locus_key_table(plan, in), *values = locus_value_table(plan, in);
    /* nor do the sequences of a ragged batch share more than biases */
    const int packs = !plan->rows_path && plan->ragged == NULL,
              positions = locus_present(&in->pos_k) && packs;
    const int64_t key_floats = locus_panel_floats(plan->row_count, call->D);
    t->key_stride = has_heads(keys) ? key_floats : 0;
    t->pos_k_stride = positions ? locus_panel_floats(call->Tk, call->D) : 0;
    t->bias = locus_take_floats(arena, call->H * locus_bias_room(plan, &plan->forward));
    t->first = (locus_head_tables){
        .key_panels = locus_take_optional(arena, keys != NULL && packs,
                                          (has_heads(keys) ? call->H : 1) * key_floats),
        .value_bad = locus_take_flags(arena, values != NULL, plan->row_count),
        .pos_k_panels = locus_take_optional(arena, positions, call->H * t->pos_k_stride),
        .pos_k_bad = locus_take_flags(arena, positions, call->H * call->Tk),
    };
}

locus_head_tables locus_tables_of_head(const locus_tables *tables, int64_t h)
{
    locus_head_tables t = tables->first;
    if (t.key_panels != NULL) t.key_panels += h * tables->key_stride;
    if (t.pos_k_panels != NULL) t.pos_k_panels += h * tables->pos_k_stride;
    if (t.pos_k_bad != NULL) t.pos_k_bad += h * tables->plan->call.Tk;
    return t;
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
    head_context head = locus_head_at(plan, &plan->forward, f->in, 0, (int64_t)index);
    head.scale_in_panels = 1;
    locus_head_tables tables = locus_tables_of_head(f->tables, head.h);
    if (head.h > 0 && f->tables->key_stride == 0) tables.key_panels = NULL;
    if (head.h > 0) tables.value_bad = NULL;
    locus_pack_relative(&head, &tables);
    locus_pack_pos_k(&head, &tables, 0, plan->call.Tk);
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

/* Tables as the passes want them; 0: no memory. */
static int gather(const locus_plan *plan, const locus_tensors *in, locus_tensors *gathered,
                  void **memory)
{
    locus_arena arena = {NULL, 0};
    locus_gather_carve(plan, LOCUS_FORWARD, &arena, in, gathered);
    if (!plan->gathers) return 1;
    *memory = locus_allocate(plan->allocator, arena.used, 1);
    if (*memory == NULL) return 0;
    arena = (locus_arena){*memory, 0};
    locus_gather_carve(plan, LOCUS_FORWARD, &arena, in, gathered);
    locus_gather(plan, LOCUS_FORWARD, in, gathered);
    return 1;
}

locus_status locus_tables_new(locus_tables **out, const locus_plan *plan, const locus_tensors *in,
                              locus_error *error)
{
    if (out == NULL || plan == NULL || in == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "tables: NULL argument");
    *out = NULL;
    locus_tensors own_in;
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_check_inputs(plan, in, error));
    locus_tensors gathered;
    void *entries = NULL;
    locus_tables *tables = NULL;
    if (gather(plan, in, &gathered, &entries)) tables = allocate(plan);
    if (tables == NULL) {
        locus_release(plan->allocator, entries);
        return locus_fail(error, LOCUS_ERR_MEMORY, "tables: out of memory");
    }
    filling f = {tables, plan->gathers ? &gathered : in};
    locus_lower_biases(plan, &plan->forward, f.in, tables->bias);
    if (plan->ragged == NULL)
        locus_parallel_for(plan->threads, (size_t)plan->call.H, fill_head, &f);
    locus_release(plan->allocator, entries);
    *out = tables;
    return LOCUS_OK;
}

void locus_tables_free(locus_tables *tables)
{
    if (tables != NULL) locus_release(tables->plan->allocator, tables);
}
