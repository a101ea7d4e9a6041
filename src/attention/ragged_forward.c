/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/ragged_forward.h"

#include "attention/gathered.h"
#include "attention/ragged.h"
#include "attention/rows_path.h"
#include "attention/tiles_path.h"
#include "core/parallel.h"

/* Entries in place of rows, where the map of a shape jumps; then what its path needs. */
static size_t shape_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    locus_tensors gathered;
    locus_gather_carve(plan, LOCUS_FORWARD, &arena, &plan->shapes, &gathered);
    return arena.used +
           (plan->rows_path ? locus_rows_path_bytes(plan) : locus_tiles_path_bytes(plan));
}

size_t locus_ragged_forward_bytes(const locus_plan *plan)
{
    return locus_ragged_most(plan, shape_bytes);
}

/* One sequence as a call of its own. */
typedef struct own_call {
    locus_tensors in;
    locus_results results;
    locus_forward_call call;
} own_call;

static void begin_call(const locus_forward_call *whole, const locus_ragged_sequence *s,
                       own_call *own)
{
    locus_ragged_tensors(s, whole->in, &own->in);
    locus_ragged_results(s, whole->results, &own->results);
    own->call = (locus_forward_call){
        .plan = s->plan,
        .in = &own->in,
        .results = &own->results,
        .bias = locus_biases_of_shape(whole->bias, s->plan),
        .shared = whole->shared,
        .sequence = s->number,
        .task_step = 1,
        .partial = whole->partial + s->partial,
    };
}

static void run_unit(void *context, size_t index, uint32_t thread)
{
    const locus_forward_call *whole = context;
    int64_t from, to;
    const locus_ragged_sequence *s = locus_ragged_unit(whole->plan, (int64_t)index, &from, &to);
    locus_arena arena = locus_forward_scratch(whole, thread);
    own_call own;
    begin_call(whole, s, &own);
    locus_gather_carve(s->plan, LOCUS_FORWARD, &arena, &own.in, &own.call.gathered);
    if (s->plan->gathers) {
        locus_gather(s->plan, LOCUS_FORWARD, &own.in, &own.call.gathered);
        own.call.in = &own.call.gathered;
    }
    own.call.scratch = arena.base + arena.used;
    for (int64_t task = from; task < to; task++) {
        if (s->plan->rows_path)
            locus_rows_path_run(&own.call, task, 0);
        else
            locus_tiles_path_run(&own.call, task, 0);
    }
}

static void join_sequence(void *context, size_t index, uint32_t thread)
{
    const locus_forward_call *whole = context;
    const locus_ragged_sequence *s = &whole->plan->ragged->sequences[index];
    (void)thread;
    if (locus_rows_path_partial(s->plan) == 0) return;
    own_call own;
    begin_call(whole, s, &own);
    for (int64_t h = 0; h < s->plan->call.H; h++) locus_rows_path_join(&own.call, h);
}

void locus_ragged_forward(const locus_forward_call *call)
{
    const locus_ragged *ragged = call->plan->ragged;
    void *context = (void *)(uintptr_t)call;
    locus_parallel_for(call->plan->threads, (size_t)ragged->units, run_unit, context);
    if (ragged->partial > 0)
        locus_parallel_for(call->plan->threads, (size_t)ragged->count, join_sequence, context);
}
