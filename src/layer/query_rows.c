/* SPDX-License-Identifier: Apache-2.0 */
/* What a query has of its own, from x alone. A gate is made of numbers that are linear in its head's
 * columns of x; for all heads together they are one map, W [H*2, E], whose rows are 0 outside their
 * own columns. */
#include <string.h>

#include "core/tensor.h"
#include "layer/layer.h"

enum { OUTPUTS = LOCUS_GATE_OUTPUTS };

static layer_map gate_map(const locus_layer *layer, const layer_rows *rows, locus_tensor *weight,
                          locus_tensor *bias)
{
    const locus_call *call = &layer->call;
    const int64_t outputs = call->H * OUTPUTS;
    *weight = locus_view(rows->gate_weight, LOCUS_F32, 2, (const int64_t[]){outputs, call->E});
    *bias = locus_view(rows->gate_bias, LOCUS_F32, 1, (const int64_t[]){outputs});
    return (layer_map){.weight = weight,
                       .bias = bias,
                       .y = locus_layer_buffer_rows(rows->gate_inputs, call->B, call->T, outputs, 0,
                                                    call->T)};
}

static void fill_gate_map(const locus_call *call, const locus_tensors *in, const layer_rows *rows)
{
    const locus_gate_rule *rule = call->scheme->gate;
    const int64_t outputs = call->H * OUTPUTS, D = call->D;
    memset(rows->gate_weight, 0, (size_t)(outputs * call->E) * sizeof(float));
    for (int64_t y = 0; y < outputs; y++) {
        const int64_t h = y / OUTPUTS, o = y % OUTPUTS;
        float *row = rows->gate_weight + y * call->E + h * D;
        for (int64_t d = 0; d < D; d++) row[d] = (float)rule->weight(call, in, h, o, d);
        rows->gate_bias[y] = (float)rule->weight(call, in, h, o, D);
    }
}

/* The numbers behind gate number `row` of [B,H,T]. */
static float *inputs_of(const locus_call *call, const layer_rows *rows, int64_t row)
{
    const int64_t b = row / (call->H * call->T), h = row / call->T % call->H, t = row % call->T;
    return rows->gate_inputs + ((b * call->T + t) * call->H + h) * OUTPUTS;
}

static void make_gates(const locus_call *call, const locus_tensors *in, const layer_rows *rows)
{
    for (int64_t row = 0; row < call->B * call->H * call->T; row++) {
        const float *from = inputs_of(call, rows, row);
        double y[OUTPUTS];
        for (int o = 0; o < OUTPUTS; o++) y[o] = (double)from[o];
        rows->gate[row] = (float)call->scheme->gate->gate(call, in, row / call->T % call->H, y);
    }
}

void locus_layer_project_query_rows(const locus_layer *layer, const layer_multiplier *multiplier,
                                    const locus_tensors *in, const layer_matrix *x,
                                    const layer_rows *rows)
{
    const locus_call *call = &layer->call;
    if (layer->query_width > 0) {
        const layer_map map = {.weight = &in->w_r,
                               .bias = locus_present(&in->b_r) ? &in->b_r : NULL,
                               .x = *x,
                               .y = locus_layer_buffer_rows(rows->pos_query, call->B, call->T,
                                                            call->H * layer->query_width, 0,
                                                            call->T)};
        locus_layer_map_forward(multiplier, &map);
    }
    if (call->scheme->gate == NULL) return;
    locus_tensor weight, bias;
    layer_map map = gate_map(layer, rows, &weight, &bias);
    map.x = *x;
    fill_gate_map(call, in, rows);
    locus_layer_map_forward(multiplier, &map);
    make_gates(call, in, rows);
}

/* ---- gradients: sums in double, then added once ---- */

int64_t locus_layer_gate_numbers(const locus_layer *layer)
{
    int64_t numbers = 0;
    for (size_t i = 0; layer->call.scheme->gate != NULL && i < LOCUS_OWN_TENSORS; i++)
        numbers += locus_tensor_elements(&layer->shapes.own[i]);
    return numbers;
}

/* F64 twins, in `room`, of the gradients that are wanted. */
static locus_tensors twins_of(const locus_tensors *grad, double *room)
{
    locus_tensors twins = {.size = sizeof twins};
    for (size_t i = 0; i < LOCUS_OWN_TENSORS; i++) {
        const locus_tensor *t = &grad->own[i];
        if (!locus_present(t)) continue;
        twins.own[i] = locus_view(room, LOCUS_F64, t->rank, t->shape);
        room += locus_tensor_elements(t);
    }
    return twins;
}

static void add_twin(const locus_tensor *to, const double *sums, int add)
{
    const int64_t columns = to->rank == 2 ? to->shape[1] : 1;
    for (int64_t i = 0; i < locus_tensor_elements(to); i++) {
        const int64_t r = i / columns, c = i % columns;
        const double old = add ? locus_get(to, r, c, 0, 0) : 0.0;
        locus_put(to, locus_offset(to, r, c, 0, 0), (float)(old + sums[i]));
    }
}

void locus_layer_gates_backward(const locus_layer *layer, const locus_tensors *in,
                                const layer_rows *rows, const layer_rows *drows,
                                const locus_tensors *grad, double *room)
{
    const locus_call *call = &layer->call;
    const locus_tensors twins = twins_of(grad, room);
    memset(room, 0, (size_t)locus_layer_gate_numbers(layer) * sizeof *room);
    for (int64_t row = 0; row < call->B * call->H * call->T; row++) {
        const float *from = inputs_of(call, rows, row);
        float *to = inputs_of(call, drows, row);
        double y[OUTPUTS], dy[OUTPUTS];
        for (int o = 0; o < OUTPUTS; o++) y[o] = (double)from[o];
        call->scheme->gate->gate_grad(call, in, row / call->T % call->H, y,
                                      (double)drows->gate[row], dy, &twins);
        for (int o = 0; o < OUTPUTS; o++) to[o] = (float)dy[o];
    }
}

layer_map locus_layer_gate_map(const locus_layer *layer, const layer_rows *rows,
                               const layer_rows *drows, const layer_matrix *x, locus_tensor *weight)
{
    locus_tensor bias;
    layer_map map = gate_map(layer, rows, weight, &bias);
    map.bias = NULL;
    map.x = *x;
    map.y.data = drows->gate_inputs;
    return map;
}

void locus_layer_gate_parameters(const locus_layer *layer, const layer_multiplier *multiplier,
                                 const layer_map *map, const layer_rows *drows,
                                 const locus_tensors *grad, double *room, int add)
{
    const locus_call *call = &layer->call;
    const locus_gate_rule *rule = call->scheme->gate;
    const locus_tensors twins = twins_of(grad, room);
    locus_tensor dweight, dbias;
    gate_map(layer, drows, &dweight, &dbias);
    locus_layer_weight_gradient(multiplier, map, 1, &dweight, 0);
    locus_layer_bias_gradient(multiplier, map, 1, &dbias, 0);
    for (int64_t y = 0; y < call->H * OUTPUTS; y++) {
        const int64_t h = y / OUTPUTS, o = y % OUTPUTS;
        const float *row = drows->gate_weight + y * call->E + h * call->D;
        for (int64_t d = 0; d < call->D; d++)
            rule->weight_grad(call, h, o, d, (double)row[d], &twins);
        rule->weight_grad(call, h, o, call->D, (double)drows->gate_bias[y], &twins);
    }
    for (size_t i = 0; i < LOCUS_OWN_TENSORS; i++)
        if (locus_present(&grad->own[i])) add_twin(&grad->own[i], twins.own[i].data, add);
}
