/* SPDX-License-Identifier: Apache-2.0 */
/* The forward call: workspace, biases, and the path that the plan chose. */

#include "attention/check.h"
#include "attention/gates.h"
#include "attention/gathered.h"
#include "attention/ragged.h"
#include "attention/ragged_forward.h"
#include "attention/rows_path.h"
#include "attention/tiles_path.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"

/* ---- workspace ---- */

static size_t scratch_bytes(const locus_plan *plan)
{
    if (plan->ragged != NULL) return locus_ragged_forward_bytes(plan);
    return plan->rows_path ? locus_rows_path_bytes(plan) : locus_tiles_path_bytes(plan);
}

/* The rows path finds its biases tile by tile, unless any tile may need all of them. */
static int by_tile(const locus_plan *plan) { return plan->rows_path && plan->place_axes == 0; }

/* Shared tables first, then one piece per thread. Returns the room for biases. */
static float *carve(const locus_plan *plan, locus_arena *arena, locus_forward_call *call)
{
    const int64_t biases = by_tile(plan) ? 0 : locus_bias_room(plan, &plan->forward);
    float *bias = locus_take_floats(arena, plan->call.H * biases);
    locus_gather_carve(plan, LOCUS_FORWARD, arena, arena->base != NULL ? call->in : &plan->shapes,
                       &call->gathered);
    call->gate_sums = locus_gates_carve(plan, arena);
    call->shared = locus_take(arena, locus_shared_count(plan), sizeof *call->shared);
    if (!plan->rows_path) call->shown = locus_shown_carve(plan, &plan->forward, arena);
    call->scratch_bytes = scratch_bytes(plan);
    call->scratch = locus_take(arena, plan->threads, call->scratch_bytes);
    call->partial = locus_take_floats(arena, plan->ragged != NULL ? plan->ragged->partial
                                                                  : locus_rows_path_partial(plan));
    return bias;
}

size_t locus_forward_workspace(const locus_plan *plan)
{
    locus_forward_call call;
    locus_arena arena = {NULL, 0};
    carve(plan, &arena, &call);
    return arena.used + LOCUS_ALIGN_ROOM;
}

/* ---- the call ---- */

static locus_status check_call(const locus_plan *plan, const locus_tensors *in,
                               const locus_results *results, const void *workspace, size_t bytes,
                               locus_error *error)
{
    LOCUS_TRY(locus_check_inputs(plan, in, error));
    LOCUS_TRY(locus_check_results(plan, results, error));
    locus_tensor outputs[4] = {results->out, results->lse};
    const char *names[4] = {"out", "lse"};
    size_t count = 2;
    if (locus_present(&results->lse_low)) {
        outputs[count] = results->lse_low;
        names[count++] = "lse_low";
    }
    if (locus_present(&results->weights)) {
        outputs[count] = results->weights;
        names[count++] = "weights";
    }
    LOCUS_TRY(locus_check_output_overlap(in, outputs, names, count, error));
    return locus_check_memory("workspace", workspace, bytes, locus_forward_workspace(plan), error);
}

static void run_task(void *context, size_t index, uint32_t thread)
{
    locus_tiles_path_run(context, (int64_t)index, thread);
}

static locus_status forward(const locus_plan *plan, const locus_tables *tables,
                            const locus_tensors *in, const locus_results *results, void *workspace,
                            size_t workspace_bytes, locus_error *error)
{
    locus_tensors own_in;
    locus_results own_results;
    if (plan == NULL || in == NULL || results == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "forward: NULL argument");
    LOCUS_TRY(locus_adopt_tensors(&in, &own_in, "tensors", error));
    LOCUS_TRY(locus_adopt_results(&results, &own_results, "results", error));
    LOCUS_TRY(check_call(plan, in, results, workspace, workspace_bytes, error));
    locus_forward_call call = {.plan = plan,
                               .in = in,
                               .results = results,
                               .tables = tables,
                               .task_step = (int64_t)plan->threads};
    locus_arena arena = {locus_align(workspace), 0};
    float *bias = carve(plan, &arena, &call);
    if (plan->gathers) {
        if (tables != NULL)
            locus_gather_keep(plan, LOCUS_FORWARD, in, &tables->gathered, &call.gathered);
        else
            locus_gather(plan, LOCUS_FORWARD, in, &call.gathered);
        call.in = in = &call.gathered;
    }
    if (plan->has_log_gate || locus_log_decay(plan, in) != NULL) {
        if (!plan->gathers) call.gathered = *in;
        locus_gates_sum(plan, in, call.gate_sums, &call.gathered);
        call.in = in = &call.gathered;
    }
    if (tables == NULL && !by_tile(plan)) locus_lower_biases(plan, &plan->forward, in, bias);
    if (tables != NULL || !by_tile(plan))
        call.bias = locus_biases_at(plan, &plan->forward, tables != NULL ? tables->bias : bias);
    call.shared = locus_share_bias(plan, in, call.shared);
    locus_shown_fill(plan, &plan->forward, in, call.shown);
    if (plan->ragged != NULL)
        locus_ragged_forward(&call);
    else if (plan->call.Tq > 0 && plan->rows_path)
        locus_rows_path(&call);
    else if (plan->call.Tq > 0)
        locus_parallel_for(plan->threads, (size_t)locus_tiles_path_tasks(plan), run_task, &call);
    return LOCUS_OK;
}

locus_status locus_forward(const locus_plan *plan, const locus_tensors *in,
                           const locus_results *results, void *workspace, size_t workspace_bytes,
                           locus_error *error)
{
    return forward(plan, NULL, in, results, workspace, workspace_bytes, error);
}

locus_status locus_forward_prepared(const locus_plan *plan, const locus_tables *tables,
                                    const locus_tensors *in, const locus_results *results,
                                    void *workspace, size_t workspace_bytes, locus_error *error)
{
    LOCUS_TRY(locus_check_tables(tables, plan, LOCUS_FORWARD, error));
    return forward(plan, tables, in, results, workspace, workspace_bytes, error);
}
