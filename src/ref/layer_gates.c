/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/layer.h"

#include <math.h>

#include "core/tensor.h"

/* log_gate = ln sigmoid(y), y = w_f X + b_f, and log_decay alike with a row of weights for every
 * channel. ln sigmoid(y) = -ln(1 + e^-y), and its derivative is sigmoid(-y). */

typedef struct gate_map {
    const locus_tensor *weight, *bias, *dweight, *dbias; /* NULL: absent */
    locus_tensor *gates, *dgates;                        /* of the attention inside */
    int64_t width;                                       /* numbers of a head */
} gate_map;

static int find_map(ref_layer *l, int number, gate_map *map)
{
    const locus_scheme *scheme = l->call->scheme;
    const size_t none = LOCUS_NO_TENSOR;
    const size_t made[] = {offsetof(locus_tensors, log_gate),
                           scheme->log_decay != 0 ? scheme->log_decay : none};
    const size_t weight[] = {offsetof(locus_tensors, w_f), scheme->decay_weight};
    const size_t bias[] = {offsetof(locus_tensors, b_f), scheme->decay_bias};
    if (made[number] == none || locus_tensor_slot(l->in, weight[number]) == NULL) return 0;
    *map =
        (gate_map){.weight = locus_tensor_slot(l->in, weight[number]),
                   .bias = locus_tensor_slot(l->in, bias[number]),
                   .dweight = l->grad != NULL ? locus_tensor_slot(l->grad, weight[number]) : NULL,
                   .dbias = l->grad != NULL ? locus_tensor_slot(l->grad, bias[number]) : NULL,
                   .gates = locus_ref_slot(&l->inner, made[number]),
                   .dgates = locus_ref_slot(&l->dinner, made[number]),
                   .width = number == 0 ? 1 : l->call->D};
    return 1;
}

/* [B,H,M+T(,D)] */
static locus_tensor take(ref_layer *l, const gate_map *map, int number)
{
    const locus_call *c = l->call;
    const int64_t shape[] = {c->B, c->H, c->M + c->T, c->D};
    void *data = locus_ref_take(l->memory, c->B * c->H * (c->M + c->T), map->width, sizeof(double));
    return locus_view(data, LOCUS_F64, number == 0 ? 3 : 4, shape);
}

/* Row t of memory, then x; of `grad` its gradient, or NULL. */
static double *input_row(const ref_layer *l, const locus_tensors *from, int64_t b, int64_t t)
{
    const int64_t M = l->call->M;
    return t < M ? locus_ref_at(&from->memory, b, t, 0) : locus_ref_at(&from->x, b, t - M, 0);
}

/* Number `o` of head h in row t. */
static double *gate_at(const ref_layer *l, const gate_map *map, const locus_tensor *t, int64_t b,
                       int64_t row, int64_t out)
{
    const int64_t h = out / map->width, d = out % map->width;
    const int64_t N = l->call->M + l->call->T;
    return (double *)t->data + ((b * l->call->H + h) * N + row) * map->width + d;
}

static double log_sigmoid(double y) { return y < 0.0 ? y - log1p(exp(y)) : -log1p(exp(-y)); }

static double map_row(const ref_layer *l, const gate_map *map, const double *x, int64_t out)
{
    const double *bias = map->bias != NULL ? locus_ref_at(map->bias, 0, 0, 0) : NULL;
    return locus_ref_dot(locus_ref_at(map->weight, out, 0, 0), x, l->call->E) +
           (bias != NULL ? bias[out] : 0.0);
}

void locus_ref_project_gates(ref_layer *l)
{
    const int64_t N = l->call->M + l->call->T;
    gate_map map;
    for (int number = 0; number < 2; number++) {
        if (!find_map(l, number, &map)) continue;
        *map.gates = take(l, &map, number);
        if (l->memory->failed) return;
        for (int64_t row = 0; row < l->call->B * N; row++)
            for (int64_t out = 0; out < map.weight->shape[0]; out++)
                *gate_at(l, &map, map.gates, row / N, row % N, out) =
                    log_sigmoid(map_row(l, &map, input_row(l, l->in, row / N, row % N), out));
    }
}

void locus_ref_take_gate_gradients(ref_layer *l)
{
    gate_map map;
    for (int number = 0; number < 2; number++)
        if (find_map(l, number, &map)) *map.dgates = take(l, &map, number);
}

void locus_ref_project_gates_grad(ref_layer *l)
{
    const int64_t N = l->call->M + l->call->T, E = l->call->E;
    gate_map map;
    for (int number = 0; number < 2; number++) {
        if (!find_map(l, number, &map)) continue;
        double *dbias = map.dbias != NULL ? locus_ref_at(map.dbias, 0, 0, 0) : NULL;
        for (int64_t row = 0; row < l->call->B * N; row++)
            for (int64_t out = 0; out < map.weight->shape[0]; out++) {
                const double *x = input_row(l, l->in, row / N, row % N);
                const double dy = *gate_at(l, &map, map.dgates, row / N, row % N, out) /
                                  (1.0 + exp(map_row(l, &map, x, out)));
                locus_ref_add(input_row(l, l->grad, row / N, row % N), dy,
                              locus_ref_at(map.weight, out, 0, 0), E);
                if (map.dweight != NULL)
                    locus_ref_add(locus_ref_at(map.dweight, out, 0, 0), dy, x, E);
                if (dbias != NULL) dbias[out] += dy;
            }
    }
}
