/* SPDX-License-Identifier: Apache-2.0 */
#include "model/ops/ops.h"
#include "model/run.h"
#include "nn/activation.h"

/* Maps that see the tokens beside each one: in groups of channels, and channel by channel. */
enum { X, WEIGHT, BIAS, RESIDUAL };

locus_convolution convolution_of(const program *p, const op *o, const float *weight)
{
    const value_info *w = &p->values[o->in[WEIGHT]];
    return (locus_convolution){.workers = p->workers,
                               .second_cache = p->linear.second_cache,
                               .inputs = p->values[o->in[X]].width,
                               .outputs = w->count,
                               .groups = o->as.convolve.groups,
                               .taps = o->as.convolve.taps,
                               .before = o->as.convolve.before,
                               .packed = w->packed,
                               .weight = weight,
                               .activation = o->as.convolve.activation};
}

static locus_status convolve_forward(const run *r, const op *o)
{
    const int apart = r->keeps && o->inside != NONE;
    const locus_rows x = rows_like(r, run_at(r, o->in[X]), o->in[X]);
    const locus_rows y = rows_like(r, run_at(r, apart ? o->inside : o->out), o->out);
    const locus_rows residual = rows_like(r, run_at(r, o->in[RESIDUAL]), o->out);
    const int added = residual.data != NULL;
    locus_convolution f = convolution_of(r->p, o, run_at(r, o->in[WEIGHT]));
    f.bias = run_at(r, o->in[BIAS]);
    f.workspace = r->convolution;
    if (apart) f.activation = LOCUS_IDENTITY;
    locus_convolution_forward(&f, &y, &x, !apart && added ? &residual : NULL,
                              &r->pass->ragged[stack_of(r, o->out)]);
    if (!apart) return LOCUS_OK;
    const locus_rows to = rows_like(r, run_at(r, o->out), o->out);
    locus_activation_forward(&r->p->workers, o->as.convolve.activation, &to, &y, NULL, to.stride);
    if (added) r->p->workers.kernels->add(to.data, residual.data, run_size(r, o->out));
    return LOCUS_OK;
}

static locus_status convolve_backward(const run *r, const op *o)
{
    const locus_rows d = rows_like(r, run_grad(r, o->out), o->out);
    const locus_rows x = rows_like(r, run_at(r, o->in[X]), o->in[X]);
    const locus_rows dx = rows_like(r, r->other, o->in[X]);
    run_add(r, o->in[RESIDUAL], d.data);
    if (o->inside != NONE) {
        const locus_rows z = rows_like(r, run_at(r, o->inside), o->out);
        locus_activation_backward(&r->p->workers, o->as.convolve.activation, &d, NULL, &d, &z, NULL,
                                  d.stride);
    }
    locus_convolution f = convolution_of(r->p, o, run_at(r, o->in[WEIGHT]));
    f.bias = run_at(r, o->in[BIAS]);
    f.workspace = r->convolution;
    f.packed = NULL;
    const locus_convolution_grad grad = {.x = &dx,
                                         .weight = run_grad(r, o->in[WEIGHT]),
                                         .bias = run_grad(r, o->in[BIAS]),
                                         .add_parameters = 1};
    locus_convolution_backward(&f, &grad, &d, &x, &r->pass->ragged[stack_of(r, o->out)]);
    run_add(r, o->in[X], dx.data);
    return LOCUS_OK;
}

/* ---- channel by channel: taps [taps, width], and a shift behind them ---- */

static float *shift_of(const op *o, float *taps, int64_t width)
{
    return taps != NULL && o->as.convolve.groups ? taps + o->as.convolve.taps * width : NULL;
}

static locus_depthwise depthwise_of(const run *r, const op *o)
{
    const int64_t width = r->p->values[o->out].width;
    float *taps = run_at(r, o->in[WEIGHT]);
    return (locus_depthwise){.weight = taps,
                             .bias = shift_of(o, taps, width),
                             .taps = o->as.convolve.taps,
                             .before = o->as.convolve.before,
                             .width = width};
}

static locus_status depthwise_forward(const run *r, const op *o)
{
    const locus_depthwise f = depthwise_of(r, o);
    const locus_rows x = rows_like(r, run_at(r, o->in[X]), o->out);
    const locus_rows y = rows_like(r, run_at(r, o->out), o->out);
    locus_depthwise_forward(&r->p->workers, &f, &y, &x, &r->pass->ragged[stack_of(r, o->out)]);
    return LOCUS_OK;
}

static locus_status depthwise_backward(const run *r, const op *o)
{
    const locus_depthwise f = depthwise_of(r, o);
    const locus_rows x = rows_like(r, run_at(r, o->in[X]), o->out);
    const locus_rows dx = rows_like(r, r->other, o->out);
    const locus_rows dy = rows_like(r, run_grad(r, o->out), o->out);
    float *taps = run_grad(r, o->in[WEIGHT]);
    const locus_depthwise_grad grad = {
        .x = &dx, .weight = taps, .bias = shift_of(o, taps, f.width), .add_parameters = 1};
    locus_depthwise_backward(&r->p->workers, &f, &grad, &dy, &x,
                             &r->pass->ragged[stack_of(r, o->out)]);
    run_add(r, o->in[X], dx.data);
    return LOCUS_OK;
}

const op_kind op_convolve = {.name = "convolve",
                             .reads = 1u << X,
                             .forward = convolve_forward,
                             .backward = convolve_backward};
const op_kind op_depthwise = {.name = "depthwise",
                              .reads = 1u << X,
                              .forward = depthwise_forward,
                              .backward = depthwise_backward};
