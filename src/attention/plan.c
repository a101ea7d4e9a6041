/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/plan.h"

#include <locus/runtime.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* How many pieces to cut each head into, so that one head on many cores still has
 * work for them: about 16 tasks forward, 8 backward (each costs a partial buffer). */
static int64_t pieces(int64_t wanted, int64_t heads, int64_t tiles)
{
    const int64_t each = heads > 0 ? ceil_div(wanted, heads) : 1;
    return each < tiles ? each : tiles > 0 ? tiles : 1;
}

static void cut_work(locus_plan *plan)
{
    const locus_call *call = &plan->call;
    plan->query_tiles = ceil_div(call->Tq, BLOCK_ROWS);
    plan->key_tiles = ceil_div(call->Tk, BLOCK_KEYS);
    plan->forward_chunks = pieces(16, call->B * call->H, plan->query_tiles);
    plan->backward_splits = pieces(8, call->B * call->H, ceil_div(plan->query_tiles, 4));
}

locus_status locus_plan_new(locus_plan **out, const locus_config *config,
                            const locus_tensors *shapes, locus_error *error)
{
    if (out == NULL || config == NULL || shapes == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "plan: NULL argument");
    *out = NULL;
    locus_call call;
    LOCUS_TRY(locus_call_resolve(&call, LOCUS_ATTEND, config, shapes, error));
    const locus_kernels *kernels = locus_kernels_pick(config->isa);
    if (kernels == NULL)
        return locus_fail(error, LOCUS_ERR_ISA, "isa: config or LOCUS_ISA names no kernel table");

    locus_plan *plan = locus_allocate(config->allocator, 1, sizeof *plan);
    if (plan == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "plan: out of memory");
    plan->call = call;
    plan->shapes = *shapes;
    plan->kernels = kernels;
    plan->allocator = config->allocator;
    plan->threads = config->threads != 0 ? config->threads : locus_default_threads();
    cut_work(plan);
    const locus_status status = locus_lower(plan, shapes, error);
    if (status != LOCUS_OK) {
        locus_plan_free(plan);
        return status;
    }
    *out = plan;
    return LOCUS_OK;
}

void locus_plan_free(locus_plan *plan)
{
    if (plan == NULL) return;
    locus_lower_free(plan);
    locus_release(plan->allocator, plan);
}

void locus_plan_describe(const locus_plan *plan, locus_plan_info *info)
{
    const locus_call *call = &plan->call;
    const locus_plan_info full = {
        .size = sizeof full,
        .batch = call->B,
        .heads = call->H,
        .kv_heads = call->Hk,
        .queries = call->Tq,
        .keys = call->Tk,
        .head_dim = call->D,
        .value_dim = call->Dv,
        .query_offset = call->query_offset,
        .scale = call->scale,
        .threads = plan->threads,
        .isa = plan->kernels->isa,
        .path = "tiles",
    };
    *info = full;
}

const locus_tensor *locus_key_table(const locus_plan *plan, const locus_tensors *in)
{
    return locus_tensor_slot(in, plan->call.scheme->key_table);
}

const locus_tensor *locus_query_table(const locus_plan *plan, const locus_tensors *in)
{
    return locus_tensor_slot(in, plan->call.scheme->query_table);
}

const locus_tensor *locus_value_table(const locus_plan *plan, const locus_tensors *in)
{
    return locus_tensor_slot(in, plan->call.scheme->value_table);
}
