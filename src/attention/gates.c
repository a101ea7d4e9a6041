/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/gates.h"

#include <string.h>

#include "core/parallel.h"

/* ---- sums over positions ---- */

/* A tensor of gates: `width` numbers of each position. */
typedef struct gate_slot {
    size_t offset; /* in locus_tensors */
    int64_t width;
} gate_slot;

enum { GATE_SLOTS = 2 };

/* 0: the plan has no such gates. */
static int find_slot(const locus_plan *plan, int number, gate_slot *slot)
{
    const size_t decay = plan->call.scheme->log_decay;
    *slot = number == 0 ? (gate_slot){offsetof(locus_tensors, log_gate), 1}
                        : (gate_slot){decay, plan->call.D};
    return slot->offset != 0 && locus_tensor_slot(&plan->shapes, slot->offset) != NULL;
}

static locus_tensor *tensor_at(locus_tensors *tensors, size_t offset)
{
    return (locus_tensor *)(void *)((char *)tensors + offset);
}

double *locus_gates_carve(const locus_plan *plan, locus_arena *arena)
{
    int64_t numbers = 0;
    gate_slot slot;
    for (int i = 0; i < GATE_SLOTS; i++)
        if (find_slot(plan, i, &slot))
            numbers += locus_tensor_elements(locus_tensor_slot(&plan->shapes, slot.offset));
    return locus_take(arena, numbers, sizeof(double));
}

/* The tensor in `room`, as doubles; returns what is left of the room. */
static double *view_sums(const locus_plan *plan, const gate_slot *slot, double *room,
                         locus_tensors *summed)
{
    const locus_tensor *shape = locus_tensor_slot(&plan->shapes, slot->offset);
    *tensor_at(summed, slot->offset) = locus_view(room, LOCUS_F64, shape->rank, shape->shape);
    return room + locus_tensor_elements(shape);
}

typedef struct sum_job {
    const locus_plan *plan;
    const gate_slot *slot;
    const locus_tensor *gates, *sums; /* or their gradients */
    int accumulate;
} sum_job;

/* Rows [*from, *to) of the gates are those of sequence `number`. */
static void rows_of_sequence(const sum_job *job, int64_t number, int64_t *from, int64_t *to)
{
    const locus_call *call = &job->plan->call;
    const locus_sequence s = locus_call_sequence(call, number);
    *from = call->sequences > 0 ? s.first_key : 0;
    *to = call->sequences > 0 ? s.first_key + s.keys : job->sums->shape[2];
}

static double *sums_row(const sum_job *job, int64_t b, int64_t h, int64_t row)
{
    return (double *)job->sums->data + locus_offset(job->sums, b, h, row, 0);
}

static void sum_head(void *context, size_t index, uint32_t worker)
{
    const sum_job *job = context;
    const locus_call *call = &job->plan->call;
    const int64_t b = (int64_t)index / call->H, h = (int64_t)index % call->H;
    const int64_t width = job->slot->width;
    (void)worker;
    for (int64_t s = 0; s < locus_sequence_count(call); s++) {
        int64_t from, to;
        rows_of_sequence(job, s, &from, &to);
        for (int64_t t = from; t < to; t++) {
            double *row = sums_row(job, b, h, t);
            for (int64_t d = 0; d < width; d++)
                row[d] = locus_get(job->gates, b, h, t, d) + (t > from ? row[d - width] : 0.0);
        }
    }
}

void locus_gates_sum(const locus_plan *plan, const locus_tensors *in, double *room,
                     locus_tensors *summed)
{
    gate_slot slot;
    for (int i = 0; i < GATE_SLOTS; i++) {
        if (!find_slot(plan, i, &slot)) continue;
        const locus_tensor gates = *locus_tensor_slot(in, slot.offset);
        room = view_sums(plan, &slot, room, summed);
        sum_job job = {plan, &slot, &gates, tensor_at(summed, slot.offset), 0};
        locus_parallel_for(plan->threads, (size_t)(plan->call.B * plan->call.H), sum_head, &job);
    }
}

void locus_gates_begin(const locus_plan *plan, double *room, locus_tensors *summed)
{
    gate_slot slot;
    for (int i = 0; i < GATE_SLOTS; i++) {
        if (!find_slot(plan, i, &slot) || locus_tensor_slot(summed, slot.offset) == NULL) continue;
        double *from = room;
        room = view_sums(plan, &slot, room, summed);
        memset(from, 0, (size_t)(room - from) * sizeof *from);
    }
}

/* Gates behind the last query take no part. */
static void pull_back_head(void *context, size_t index, uint32_t worker)
{
    const sum_job *job = context;
    const locus_call *call = &job->plan->call;
    const int64_t b = (int64_t)index / call->H, h = (int64_t)index % call->H;
    (void)worker;
    for (int64_t number = 0; number < locus_sequence_count(call); number++) {
        const locus_sequence s = locus_call_sequence(call, number);
        const int64_t end = locus_gate_row(call, &s, s.query_offset + s.queries);
        int64_t from, to;
        rows_of_sequence(job, number, &from, &to);
        for (int64_t d = 0; d < job->slot->width; d++) {
            double before = 0.0;
            for (int64_t t = from; t < to; t++) {
                const double old = job->accumulate ? locus_get(job->gates, b, h, t, d) : 0.0;
                locus_put(job->gates, locus_offset(job->gates, b, h, t, d),
                          (float)(old - (t < end ? before : 0.0)));
                before += sums_row(job, b, h, t)[d];
            }
        }
    }
}

void locus_gates_pull_back(const locus_plan *plan, const locus_tensors *summed,
                           const locus_tensors *grad, int accumulate)
{
    gate_slot slot;
    for (int i = 0; i < GATE_SLOTS; i++) {
        if (!find_slot(plan, i, &slot) || locus_tensor_slot(grad, slot.offset) == NULL) continue;
        sum_job job = {plan, &slot, locus_tensor_slot(grad, slot.offset),
                       locus_tensor_slot(summed, slot.offset), accumulate};
        locus_parallel_for(plan->threads, (size_t)(plan->call.B * plan->call.H), pull_back_head,
                           &job);
    }
}

/* ---- tiles ---- */

double *locus_gate_sums_of(const head_context *head, const locus_tensor *sums)
{
    return (double *)sums->data +
           locus_offset(sums, head->b, head->h, head->plan->call.key_offset, 0);
}

/* x = high + low */
static void split(double x, float *high, float *low)
{
    *high = (float)x;
    *low = (float)(x - (double)*high);
}

void locus_add_gates(const locus_scores *s, const locus_tile *tile)
{
    const head_context *head = s->head;
    const double *sums = locus_gate_sums_of(head, &head->in->log_gate);
    const double reference = sums[tile->key];
    float high[MAX_TILE_KEYS], low[MAX_TILE_KEYS];
    for (int64_t j = 0; j < tile->columns; j++)
        split(reference - sums[tile->key + j], &high[j], &low[j]);
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        float row_high, row_low;
        if (count <= 0) continue;
        split(sums[s->queries->position + i] - reference, &row_high, &row_low);
        head->plan->kernels->add_split(s->score + i * head->geometry->stride + from, high + from,
                                       low + from, row_high, row_low, count);
    }
}

void locus_spread_gates(const head_context *head, const locus_tile *tile, const float *ds,
                        float *room, double *to_rows, double *to_keys)
{
    const locus_kernels *kernels = head->plan->kernels;
    memset(room, 0, (size_t)tile->columns * sizeof *room);
    for (int64_t i = 0; i < tile->rows; i++) {
        const float *row = ds + i * head->geometry->stride;
        double sums[2] = {0.0, 0.0};
        kernels->moments(sums, row, row, tile->columns);
        kernels->add(room, row, tile->columns);
        to_rows[i] += sums[0];
    }
    for (int64_t j = 0; j < tile->columns; j++) to_keys[tile->key + j] += (double)room[j];
}
