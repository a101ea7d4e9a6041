/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "model/ops/ops.h"
#include "model/run.h"

/* add: out = a + b, rows of values. raise: out = a + 1, of a gain that is stored as what it differs from
 * 1 by. cap: out = c tanh(a / c). */

static locus_status add_forward(const run *r, const op *o)
{
    const int64_t count = run_size(r, o->out);
    memcpy(run_at(r, o->out), run_at(r, o->in[0]), (size_t)count * sizeof(float));
    r->p->workers.kernels->add(run_at(r, o->out), run_at(r, o->in[1]), count);
    return LOCUS_OK;
}

static locus_status add_backward(const run *r, const op *o)
{
    run_add(r, o->in[0], run_grad(r, o->out));
    run_add(r, o->in[1], run_grad(r, o->out));
    return LOCUS_OK;
}

static locus_status raise_forward(const run *r, const op *o)
{
    const float *from = run_at(r, o->in[0]);
    float *to = run_at(r, o->out);
    for (int64_t i = 0; i < run_size(r, o->out); i++) to[i] = 1.0f + from[i];
    return LOCUS_OK;
}

static locus_status raise_backward(const run *r, const op *o)
{
    run_add(r, o->in[0], run_grad(r, o->out));
    return LOCUS_OK;
}

static locus_status cap_forward(const run *r, const op *o)
{
    const float *from = run_at(r, o->in[0]), cap = o->as.cap;
    float *to = run_at(r, o->out);
    for (int64_t i = 0; i < run_size(r, o->out); i++) to[i] = cap * tanhf(from[i] / cap);
    return LOCUS_OK;
}

/* dx = dy (1 - tanh(x / c)^2) */
static locus_status cap_backward(const run *r, const op *o)
{
    const float *from = run_at(r, o->in[0]), *given = run_grad(r, o->out), cap = o->as.cap;
    float *to = run_grad(r, o->in[0]);
    for (int64_t i = 0; i < run_size(r, o->out); i++) {
        const float t = tanhf(from[i] / cap);
        to[i] += given[i] * (1.0f - t * t);
    }
    return LOCUS_OK;
}

const op_kind op_add = {.name = "add", .forward = add_forward, .backward = add_backward};
const op_kind op_raise = {.name = "raise", .forward = raise_forward, .backward = raise_backward};
const op_kind op_cap = {
    .name = "cap", .reads = 1, .forward = cap_forward, .backward = cap_backward};
