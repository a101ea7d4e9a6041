/* SPDX-License-Identifier: Apache-2.0 */
/* Gates of every position, of memory and x: log_gate = ln sigmoid(y), y = w_f X + b_f, and
 * log_decay alike, with a row of weights for every channel. With g = ln sigmoid(y),
 *     dy = dg sigmoid(-y) = dg (1 - e^g). */
#include <math.h>

#include "core/parallel.h"
#include "core/tensor.h"
#include "layer/layer.h"

#define SLOT(name) offsetof(locus_tensors, name)

int locus_layer_position_gate(const locus_layer *layer, int number, layer_position_gate *gate)
{
    const locus_scheme *scheme = layer->call.scheme;
    *gate = number == 0 ? (layer_position_gate){SLOT(w_f), SLOT(b_f), LAYER_LOG_GATE, layer->call.H}
                        : (layer_position_gate){scheme->decay_weight, scheme->decay_bias,
                                                LAYER_LOG_DECAY, layer->call.H * layer->call.D};
    const int exists = number == 0 || scheme->log_decay != 0;
    return exists && locus_tensor_slot(&layer->shapes, gate->weight) != NULL;
}

float *locus_layer_gate_rows(const layer_rows *rows, const layer_position_gate *gate)
{
    return gate->part == LAYER_LOG_GATE ? rows->gate_rows : rows->log_decay;
}

layer_matrix locus_layer_gate_side(const locus_layer *layer, const layer_rows *rows,
                                   const layer_position_gate *gate, int of_memory)
{
    const locus_call *call = &layer->call;
    return locus_layer_buffer_rows(locus_layer_gate_rows(rows, gate), call->B, call->M + call->T,
                                   gate->width, of_memory ? 0 : call->M,
                                   of_memory ? call->M : call->T);
}

/* Number `at` of [B,N,H] in [B,H,N]. */
static int64_t by_head(const locus_call *call, int64_t at)
{
    const int64_t N = call->M + call->T, H = call->H;
    const int64_t h = at % H, row = at / H;
    return (row / N * H + h) * N + row % N;
}

typedef struct gate_job {
    const locus_layer *layer;
    const layer_position_gate *gate;
    const layer_rows *rows, *drows;
} gate_job;

static float log_sigmoid(float y) { return (y < 0.0f ? y : 0.0f) - log1pf(expf(-fabsf(y))); }

static void finish_row(void *context, size_t index, uint32_t worker)
{
    const gate_job *job = context;
    const int64_t width = job->gate->width, first = (int64_t)index * width;
    float *rows = locus_layer_gate_rows(job->rows, job->gate);
    (void)worker;
    for (int64_t at = first; at < first + width; at++) {
        const float value = isnan(rows[at]) ? rows[at] : log_sigmoid(rows[at]);
        if (job->gate->part == LAYER_LOG_GATE)
            job->rows->log_gate[by_head(&job->layer->call, at)] = value;
        else
            rows[at] = value;
    }
}

static void gradient_row(void *context, size_t index, uint32_t worker)
{
    const gate_job *job = context;
    const int64_t width = job->gate->width, first = (int64_t)index * width;
    float *drows = locus_layer_gate_rows(job->drows, job->gate);
    (void)worker;
    for (int64_t at = first; at < first + width; at++) {
        const int one = job->gate->part == LAYER_LOG_GATE;
        const int64_t from = one ? by_head(&job->layer->call, at) : at;
        const float value = one ? job->rows->log_gate[from] : job->rows->log_decay[from];
        const float dvalue = one ? job->drows->log_gate[from] : job->drows->log_decay[from];
        drows[at] = dvalue * -expm1f(value);
    }
}

static void each_row(const locus_layer *layer, gate_job *job, locus_task task)
{
    const locus_call *call = &layer->call;
    locus_parallel_for(layer->threads, (size_t)(call->B * (call->M + call->T)), task, job);
}

void locus_layer_project_position_gates(const locus_layer *layer,
                                        const layer_multiplier *multiplier, const locus_tensors *in,
                                        const layer_rows *rows)
{
    for (int number = 0; number < LAYER_POSITION_GATES; number++) {
        layer_position_gate gate;
        if (!locus_layer_position_gate(layer, number, &gate)) continue;
        layer_map map = {.weight = locus_tensor_slot(in, gate.weight),
                         .bias = locus_tensor_slot(in, gate.bias),
                         .x = locus_layer_tensor_rows(&in->x),
                         .y = locus_layer_gate_side(layer, rows, &gate, 0)};
        locus_layer_map_forward(multiplier, &map);
        if (locus_present(&in->memory)) {
            map.x = locus_layer_tensor_rows(&in->memory);
            map.y = locus_layer_gate_side(layer, rows, &gate, 1);
            locus_layer_map_forward(multiplier, &map);
        }
        gate_job job = {layer, &gate, rows, NULL};
        each_row(layer, &job, finish_row);
    }
}

void locus_layer_position_gate_gradient(const locus_layer *layer, const layer_position_gate *gate,
                                        const layer_rows *rows, const layer_rows *drows)
{
    gate_job job = {layer, gate, rows, drows};
    each_row(layer, &job, gradient_row);
}
