/* SPDX-License-Identifier: Apache-2.0 */
/* Making a plan: resolve the call, lower the scheme, choose the geometry. */

#include <locus/runtime.h>

#include "attention/gathered.h"
#include "attention/geometry.h"
#include "attention/lower.h"
#include "attention/plan.h"
#include "attention/ragged.h"
#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/tensor.h"

locus_status locus_plan_new(locus_plan **out, const locus_config *config,
                            const locus_tensors *shapes, locus_error *error)
{
    if (out == NULL || config == NULL || shapes == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "plan: NULL argument");
    *out = NULL;
    locus_call call;
    locus_config own;
    locus_tensors copy;
    LOCUS_TRY(locus_adopt_config(&own, config, error));
    LOCUS_TRY(locus_adopt_tensors(&shapes, &copy, "shapes", error));
    config = &own;
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
    locus_status status = locus_call_keep(&plan->call, plan->allocator, &plan->kept, error);
    const int ragged = call.sequences > 0;
    if (status == LOCUS_OK)
        status =
            ragged ? locus_ragged_new(plan, config->path, error) : locus_lower(plan, shapes, error);
    if (status != LOCUS_OK) {
        locus_plan_free(plan);
        return status;
    }
    if (!ragged) {
        plan->gathers = locus_gathers(plan, shapes);
        locus_choose_geometry(plan, config->path);
    }
    *out = plan;
    return LOCUS_OK;
}

void locus_plan_free(locus_plan *plan)
{
    if (plan == NULL) return;
    locus_ragged_free(plan);
    locus_lower_free(plan);
    locus_release(plan->allocator, plan->kept);
    locus_release(plan->allocator, plan);
}

void locus_plan_reseed(locus_plan *plan, uint64_t dropout_seed)
{
    plan->call.dropout_seed = dropout_seed;
    const locus_ragged *ragged = plan->ragged;
    for (int64_t i = 0; ragged != NULL && i < ragged->shape_count; i++)
        ragged->shapes[i]->call.dropout_seed = dropout_seed;
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
        .query_offset =
            call->query_offset == LOCUS_UNSET ? LOCUS_UNSET : call->query_offset + call->key_offset,
        .scale = call->scale,
        .threads = plan->threads,
        .isa = plan->kernels->isa,
        .path = plan->rows_path ? "rows" : "tiles",
        .sequences = call->sequences,
    };
    locus_hand_back(info, &full, sizeof full);
}
