/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/ops.h"
#include "model/run.h"
#include "nn/activation.h"

/* out = activation(x W^T + b) gate + residual */
enum { X, WEIGHT, BIAS, GATE, RESIDUAL };

typedef struct map_parts {
    locus_tensor weight, bias;
    locus_linear linear;
} map_parts;

/* The map with its weights at `weight` and `bias`. */
static void set_map(const program *p, const op *o, const float *weight, const float *bias,
                    map_parts *m)
{
    const value_info *w = &p->values[o->in[WEIGHT]];
    m->weight =
        locus_view((float *)(uintptr_t)weight, LOCUS_F32, 2, (const int64_t[]){w->count, w->width});
    m->bias = locus_view((float *)(uintptr_t)bias, LOCUS_F32, 1, &w->count);
    m->linear = p->linear;
    m->linear.weight = &m->weight;
    m->linear.packed = w->packed;
    m->linear.quantized = w->quantized;
    m->linear.bias = bias != NULL ? &m->bias : NULL;
}

void map_rows(const program *p, const op *o, float *y, const float *x, int64_t rows,
              void *workspace)
{
    const value bias = o->in[BIAS];
    const value_info *w = &p->values[o->in[WEIGHT]];
    const locus_row_batch to = batch_of(y, rows, w->count), from = batch_of(x, rows, w->width);
    map_parts m;
    set_map(p, o, w->data, bias != NONE ? p->values[bias].data : NULL, &m);
    m.linear.workspace = workspace;
    locus_linear_forward(&m.linear, &to, &from, NULL);
}

static locus_status map_forward(const run *r, const op *o)
{
    const int apart = r->keeps && o->inside != NONE; /* z is kept: the rest comes after */
    const float *gate_at = run_at(r, o->in[GATE]), *residual_at = run_at(r, o->in[RESIDUAL]);
    const locus_row_batch x = batch_like(r, run_at(r, o->in[X]), o->in[X]);
    const locus_row_batch y = batch_like(r, run_at(r, apart ? o->inside : o->out), o->out);
    const locus_row_batch gate = batch_like(r, gate_at, o->out);
    const locus_row_batch residual = batch_like(r, residual_at, o->out);
    const locus_linear_end end = {.activation = apart ? LOCUS_IDENTITY : o->as.activation,
                                  .gate = !apart && gate_at != NULL ? &gate : NULL,
                                  .residual = !apart && residual_at != NULL ? &residual : NULL};
    map_parts m;
    set_map(r->p, o, run_at(r, o->in[WEIGHT]), run_at(r, o->in[BIAS]), &m);
    m.linear.workspace = r->linear;
    locus_linear_forward(&m.linear, &y, &x, &end);
    if (!apart) return LOCUS_OK;
    const locus_rows z = rows_like(r, y.data, o->out), g = rows_like(r, gate_at, o->out);
    const locus_rows to = rows_like(r, run_at(r, o->out), o->out);
    locus_activation_forward(&r->p->workers, o->as.activation, &to, &z, gate_at != NULL ? &g : NULL,
                             to.stride);
    if (residual_at != NULL) r->p->workers.kernels->add(to.data, residual_at, run_size(r, o->out));
    return LOCUS_OK;
}

void map_rows_back(const run *r, const op *o, const float *dz, const float *x, float *dx,
                   int64_t rows)
{
    const value_info *w = &r->p->values[o->in[WEIGHT]];
    const locus_row_batch given = batch_of(dz, rows, w->count), from = batch_of(x, rows, w->width);
    const locus_row_batch to = batch_of(dx, rows, w->width);
    float *weight = run_grad(r, o->in[WEIGHT]), *bias = run_grad(r, o->in[BIAS]);
    map_parts m, d;
    set_map(r->p, o, run_at(r, o->in[WEIGHT]), NULL, &m);
    set_map(r->p, o, weight, bias, &d);
    m.linear.workspace = r->linear;
    m.linear.packed = NULL;
    locus_linear_backward(&m.linear, &given, &from,
                          &(locus_linear_grad){.x = dx != NULL ? &to : NULL,
                                               .weight = weight != NULL ? &d.weight : NULL,
                                               .bias = bias != NULL ? &d.bias : NULL,
                                               .add_x = 1,
                                               .add_parameters = 1});
}

static locus_status map_backward(const run *r, const op *o)
{
    float *dy = run_grad(r, o->out);
    run_add(r, o->in[RESIDUAL], dy);
    if (o->inside != NONE) { /* dy becomes dz in place */
        const locus_rows d = rows_like(r, dy, o->out);
        const locus_rows z = rows_like(r, run_at(r, o->inside), o->out);
        const locus_rows gate = rows_like(r, run_at(r, o->in[GATE]), o->out);
        const locus_rows dgate = rows_like(r, r->other, o->out);
        const int gated = gate.data != NULL;
        locus_activation_backward(&r->p->workers, o->as.activation, &d, gated ? &dgate : NULL, &d,
                                  &z, gated ? &gate : NULL, d.stride);
        if (gated) run_add(r, o->in[GATE], r->other);
    }
    map_rows_back(r, o, dy, run_at(r, o->in[X]), run_grad(r, o->in[X]), run_rows(r, o->out));
    return LOCUS_OK;
}

const op_kind op_map = {
    .name = "map", .reads = 1u << X | 1u << GATE, .forward = map_forward, .backward = map_backward};
