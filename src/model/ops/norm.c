/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/ops.h"
#include "model/run.h"

/* LayerNorm or RMSNorm of rows. */
enum { X, GAIN, SHIFT };

static locus_norm_rule rule_of(const run *r, const op *o)
{
    return (locus_norm_rule){.centred = o->as.norm.centred,
                             .epsilon = o->as.norm.epsilon,
                             .gain = run_at(r, o->in[GAIN]),
                             .shift = run_at(r, o->in[SHIFT]),
                             .width = r->p->values[o->out].width};
}

static locus_status norm_forward(const run *r, const op *o)
{
    const locus_norm_rule rule = rule_of(r, o);
    const locus_rows y = rows_like(r, run_at(r, o->out), o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[X]), o->out);
    locus_norm_forward(&r->p->workers, &rule, &y, &x);
    return LOCUS_OK;
}

static locus_status norm_backward(const run *r, const op *o)
{
    const locus_norm_rule rule = rule_of(r, o);
    const locus_rows dy = rows_like(r, run_grad(r, o->out), o->out);
    const locus_rows dx = rows_like(r, run_grad(r, o->in[X]), o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[X]), o->out);
    const locus_norm_grad grad = {.x = dx.data != NULL ? &dx : NULL,
                                  .gain = run_grad(r, o->in[GAIN]),
                                  .shift = run_grad(r, o->in[SHIFT]),
                                  .add_x = 1,
                                  .add_parameters = 1};
    locus_norm_backward(&r->p->workers, &rule, &grad, &dy, &x, r->norm);
    return LOCUS_OK;
}

const op_kind op_norm = {
    .name = "norm", .reads = 1u << X, .forward = norm_forward, .backward = norm_backward};
