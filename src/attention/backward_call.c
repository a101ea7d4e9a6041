/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/backward_call.h"

#include "core/tensor.h"

int locus_heads_own_keys(const locus_plan *plan, int accumulate)
{
    const int floats = !locus_is_half(&plan->shapes.k) && !locus_is_half(&plan->shapes.v);
    return plan->call.H == plan->call.Hk && floats && !plan->has_decay &&
           (plan->turn_key == NULL || !accumulate);
}

backward_task locus_backward_task_at(const locus_plan *plan, int64_t index, int accumulate)
{
    const int64_t chunks = plan->backward_chunks, H = plan->call.H;
    const int64_t chunk = index % chunks, bh = index / chunks;
    const int64_t tiles = ceil_div(plan->call.Tq, plan->backward.rows);
    return (backward_task){
        .index = index,
        .b = bh / H,
        .h = bh % H,
        .kv = bh % H / (H / plan->call.Hk),
        .tile_from = chunk * tiles / chunks,
        .tile_to = (chunk + 1) * tiles / chunks,
        .owns_keys = chunk == 0 && locus_heads_own_keys(plan, accumulate),
        .owns_tables = chunk == 0 && bh < H && plan->whole == NULL,
    };
}

static int is_shared(const locus_tensor *table) { return table == NULL || table->rank == 2; }

int locus_heads_share_tables(const locus_plan *plan)
{
    const locus_tensors *s = &plan->shapes;
    return is_shared(locus_key_table(plan, s)) && is_shared(locus_key_side_table(plan, s));
}
