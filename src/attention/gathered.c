/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/gathered.h"

#include <string.h>

#include "core/tensor.h"

/* The tables that the scheme lists, each once. */
static int list_tables(const locus_plan *plan, size_t offsets[3])
{
    const locus_scheme *scheme = plan->call.scheme;
    const size_t all[] = {scheme->key_table, scheme->query_table, scheme->value_table};
    int count = 0;
    for (int i = 0; i < 3; i++)
        if (all[i] < sizeof(locus_tensors) && !(i == 1 && all[1] == all[0]))
            offsets[count++] = all[i];
    return plan->entry_row != NULL ? count : 0;
}

static locus_tensor *field(locus_tensors *tensors, size_t offset)
{
    return (locus_tensor *)(void *)((char *)tensors + offset);
}

void locus_gather_carve(const locus_plan *plan, locus_arena *arena, const locus_tensors *from,
                        locus_tensors *gathered)
{
    size_t offsets[3];
    const int count = list_tables(plan, offsets);
    if (count > 0) *gathered = *from;
    for (int i = 0; i < count; i++) {
        const locus_tensor *table = locus_tensor_slot(from, offsets[i]);
        if (table == NULL) continue;
        const int64_t heads = table->rank == 3 ? table->shape[0] : 1;
        const int64_t width = table->shape[table->rank - 1];
        const int64_t shape[] = {heads, plan->row_count, width};
        float *room = locus_take_floats(arena, heads * plan->row_count * width);
        *field(gathered, offsets[i]) =
            locus_view(room, LOCUS_F32, table->rank, table->rank == 3 ? shape : shape + 1);
    }
}

/* The row of `table` that an entry of head h stands for; `entry` itself in gathered tables. */
static float *row_of(const locus_tensor *table, int64_t h, int64_t row)
{
    return table->rank == 3 ? locus_f32(table, h, row, 0) : locus_f32(table, row, 0, 0);
}

/* y[c] += x[c], or y[c] = x[c] */
static void move(const locus_plan *plan, float *y, const float *x, int64_t width, int add)
{
    if (add)
        plan->kernels->add(y, x, width);
    else
        memcpy(y, x, (size_t)width * sizeof *y);
}

/* All entries of all tables, to them or from them. */
static void walk(const locus_plan *plan, const locus_tensors *entries, const locus_tensors *rows,
                 int to_rows)
{
    size_t offsets[3];
    const int count = list_tables(plan, offsets);
    for (int i = 0; i < count; i++) {
        const locus_tensor *entry = locus_tensor_slot(entries, offsets[i]);
        const locus_tensor *row = locus_tensor_slot(rows, offsets[i]);
        if (row == NULL || entry == NULL) continue;
        const int64_t heads = row->rank == 3 ? row->shape[0] : 1;
        for (int64_t h = 0; h < heads; h++)
            for (int64_t a = 0; a < plan->row_count; a++) {
                float *e = row_of(entry, h, a), *r = row_of(row, h, plan->entry_row[a]);
                move(plan, to_rows ? r : e, to_rows ? e : r, row->shape[row->rank - 1], to_rows);
            }
    }
}

void locus_gather(const locus_plan *plan, const locus_tensors *in, const locus_tensors *gathered)
{
    walk(plan, gathered, in, 0);
}

void locus_scatter(const locus_plan *plan, const locus_tensors *gathered, const locus_tensors *grad)
{
    walk(plan, gathered, grad, 1);
}

void locus_gather_zero(const locus_plan *plan, const locus_tensors *gathered)
{
    size_t offsets[3];
    const int count = list_tables(plan, offsets);
    for (int i = 0; i < count; i++) {
        const locus_tensor *t = locus_tensor_slot(gathered, offsets[i]);
        if (t != NULL && locus_tensor_elements(t) > 0)
            memset(t->data, 0, (size_t)locus_tensor_elements(t) * sizeof(float));
    }
}
