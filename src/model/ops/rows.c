/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/ops.h"
#include "model/run.h"
#include "nn/activation.h"

/* activate: an activation by itself. pool: one row of each sequence,
 * several ways side by side. unit: rows of length 1. */

static locus_status activate_forward(const run *r, const op *o)
{
    const locus_rows y = rows_like(r, run_at(r, o->out), o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[0]), o->out);
    locus_activation_forward(&r->p->workers, o->as.activation, &y, &x, NULL, y.stride);
    return LOCUS_OK;
}

static locus_status activate_backward(const run *r, const op *o)
{
    const locus_rows d = rows_like(r, run_grad(r, o->out), o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[0]), o->out);
    locus_activation_backward(&r->p->workers, o->as.activation, &d, NULL, &d, &x, NULL, d.stride);
    run_add(r, o->in[0], d.data);
    return LOCUS_OK;
}

/* The columns of the i-th pooling. */
static locus_rows pooled(const run *r, const op *o, float *at, int i)
{
    locus_rows rows = rows_like(r, at, o->out);
    rows.data += i * r->p->values[o->in[0]].width;
    return rows;
}

static locus_status pool_forward(const run *r, const op *o)
{
    const locus_rows x = rows_like(r, run_at(r, o->in[0]), o->in[0]);
    for (int i = 0; i < o->as.pool.count; i++) {
        const locus_rows y = pooled(r, o, run_at(r, o->out), i);
        locus_pooling_forward(&r->p->workers, o->as.pool.poolings[i], &y, &x, &r->pass->ragged[0],
                              x.stride);
    }
    return LOCUS_OK;
}

static locus_status pool_backward(const run *r, const op *o)
{
    const locus_rows dx = rows_like(r, r->other, o->in[0]);
    const locus_rows x = rows_like(r, run_at(r, o->in[0]), o->in[0]);
    for (int i = 0; i < o->as.pool.count; i++) {
        const locus_rows dy = pooled(r, o, run_grad(r, o->out), i);
        locus_pooling_backward(&r->p->workers, o->as.pool.poolings[i], &dx, &dy, &x,
                               &r->pass->ragged[0], x.stride);
        run_add(r, o->in[0], dx.data);
    }
    return LOCUS_OK;
}

static locus_status unit_forward(const run *r, const op *o)
{
    const locus_rows y = rows_like(r, run_at(r, o->out), o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[0]), o->out);
    locus_unit_forward(&r->p->workers, &y, &x, y.stride);
    return LOCUS_OK;
}

static locus_status unit_backward(const run *r, const op *o)
{
    const locus_rows dy = rows_like(r, run_grad(r, o->out), o->out);
    const locus_rows dx = rows_like(r, r->other, o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[0]), o->out);
    locus_unit_backward(&r->p->workers, &dx, &dy, &x, dy.stride);
    run_add(r, o->in[0], dx.data);
    return LOCUS_OK;
}

const op_kind op_activate = {
    .name = "activate", .reads = 1, .forward = activate_forward, .backward = activate_backward};
const op_kind op_pool = {.name = "pool", .forward = pool_forward, .backward = pool_backward};
const op_kind op_pool_max = {
    .name = "pool", .reads = 1, .forward = pool_forward, .backward = pool_backward};
const op_kind op_unit = {
    .name = "unit", .reads = 1, .forward = unit_forward, .backward = unit_backward};
