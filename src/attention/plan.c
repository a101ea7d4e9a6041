/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/plan.h"

const locus_tensor *locus_key_table(const locus_plan *plan, const locus_tensors *in)
{
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

float *locus_table_entries(const locus_plan *plan, const locus_tensor *table, int64_t head,
                           int64_t *stride)
{
    const int shared = table->rank == 2;
    const int64_t row_stride = table->stride[shared ? 0 : 1];
    const int64_t first = plan->row_first + (plan->table_descends ? plan->row_count - 1 : 0);
    *stride = plan->table_descends ? -row_stride : row_stride;
    return (float *)table->data + (shared ? 0 : head * table->stride[0]) + first * row_stride;
}
