/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/ragged_backward.h"

#include "attention/backward_run.h"
#include "attention/backward_worker.h"
#include "attention/gathered.h"
#include "attention/ragged.h"

/* What a thread has made of the tables, for the shape that it met last. */
typedef struct kept_tables {
    const locus_plan *plan;
} kept_tables;

/* Entries in place of rows, where the map of a shape jumps; relative tables that heads share. */
static kept_tables *carve(const locus_plan *plan, locus_arena *arena, const locus_tensors *in,
                          locus_tensors *gathered, locus_head_tables *relative)
{
    kept_tables *kept = locus_take(arena, 1, sizeof *kept);
    locus_gather_carve(plan, LOCUS_BACKWARD, arena, in, gathered);
    if (locus_heads_share_tables(plan)) locus_carve_relative_backward(plan, arena, relative);
    return kept;
}

static size_t shape_bytes(const locus_plan *plan)
{
    locus_arena arena = {NULL, 0};
    locus_tensors gathered;
    locus_head_tables relative;
    locus_backward_worker worker;
    carve(plan, &arena, &plan->shapes, &gathered, &relative);
    locus_backward_worker_carve(plan, &arena, &worker);
    return arena.used;
}

size_t locus_ragged_backward_bytes(const locus_plan *plan)
{
    return locus_ragged_most(plan, shape_bytes);
}

static char *scratch_of(const locus_backward_call *call, uint32_t thread)
{
    return call->scratch + thread * call->scratch_bytes;
}

void locus_ragged_backward_begin(const locus_backward_call *call)
{
    for (uint32_t thread = 0; call->scratch_bytes > 0 && thread < call->plan->threads; thread++) {
        kept_tables *kept = (void *)scratch_of(call, thread);
        kept->plan = NULL;
    }
}

/* One sequence as a call of its own. */
typedef struct own_call {
    locus_tensors in, grad;
    locus_results results, dresults;
    locus_backward_call call;
} own_call;

static void begin_call(const locus_backward_call *whole, const locus_ragged_sequence *s,
                       own_call *own)
{
    locus_results dresults = {.out = *whole->dout};
    if (whole->dlse != NULL) dresults.lse = *whole->dlse;
    locus_ragged_tensors(s, whole->in, &own->in);
    locus_ragged_tensors(s, whole->grad, &own->grad);
    locus_ragged_results(s, whole->results, &own->results);
    locus_ragged_results(s, &dresults, &own->dresults);
    own->call = *whole;
    own->call.plan = s->plan;
    own->call.tables = NULL; /* biases and what is gathered were taken from them */
    own->call.in = &own->in;
    own->call.grad = &own->grad;
    own->call.results = &own->results;
    own->call.dout = &own->dresults.out;
    own->call.dlse = whole->dlse != NULL ? &own->dresults.lse : NULL;
    own->call.bias = locus_biases_of_shape(whole->bias, s->plan);
    own->call.sequence = s->number;
}

/* Tasks of one shape follow each other: what heads and sequences share is made once. */
static void begin_tables(const locus_ragged_sequence *s, char *scratch, locus_backward_call *call)
{
    const locus_plan *plan = s->plan;
    locus_arena arena = {scratch, 0};
    kept_tables *kept = carve(plan, &arena, call->in, &call->gathered, &call->relative);
    const int fresh = kept->plan != plan;
    if (plan->gathers) {
        if (fresh) locus_gather(plan, LOCUS_BACKWARD, call->in, &call->gathered);
        call->in = &call->gathered;
    }
    if (fresh && plan->index != NULL && locus_heads_share_tables(plan)) {
        const head_context head = locus_head_at(plan, &plan->backward, call->in, 0, 0);
        locus_pack_relative(&head, &call->relative);
    }
    kept->plan = plan;
    call->scratch = arena.base + arena.used;
    call->scratch_bytes = 0;
}

void locus_ragged_backward_run(const locus_backward_call *call, int64_t task, char *slot_room,
                               uint32_t thread)
{
    const locus_ragged_sequence *s = locus_ragged_task(call->plan, task);
    own_call own;
    begin_call(call, s, &own);
    begin_tables(s, scratch_of(call, thread), &own.call);
    locus_backward_run(&own.call, task - s->first_task, slot_room, 0);
}
