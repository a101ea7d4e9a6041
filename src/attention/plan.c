/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/plan.h"

const locus_tensor *locus_key_table(const locus_plan *plan, const locus_tensors *in)
{
    if (plan->joined.rank != 0 && in == &plan->shapes) return &plan->joined;
    return locus_tensor_slot(in, plan->call.scheme->key_table);
}

const locus_tensor *locus_key_side_table(const locus_plan *plan, const locus_tensors *in)
{
    return locus_tensor_slot(in, plan->call.scheme->query_table);
}

const locus_tensor *locus_value_table(const locus_plan *plan, const locus_tensors *in)
{
    return locus_tensor_slot(in, plan->call.scheme->value_table);
}

locus_rows locus_entry_rows(const locus_plan *plan, const locus_tensor *table, int64_t head,
                            int64_t first)
{
    const int64_t row = plan->table_descends ? plan->row_first + plan->row_count - 1 - first
                                             : plan->row_first + first;
    locus_rows rows =
        table->rank == 2 ? locus_rows_at(table, row, 0, 0) : locus_rows_at(table, head, row, 0);
    if (plan->table_descends) rows.stride = -rows.stride;
    return rows;
}

float *locus_table_entries(const locus_plan *plan, const locus_tensor *table, int64_t head,
                           int64_t *stride)
{
    const locus_rows rows = locus_entry_rows(plan, table, head, 0);
    *stride = rows.stride;
    return rows.data;
}
