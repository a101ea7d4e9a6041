/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "model/ops/ops.h"
#include "model/run.h"

/* norm of heads: rows of q, k and v with every head of q and of k normed by itself,
 *     q_h / sqrt(mean of q_h^2 + epsilon) gain_q,  k_h alike,  v as it is */
enum { X, Q_GAIN, K_GAIN };

static locus_rows part_rows(const run *r, const op *o, const float *data, int64_t column)
{
    return (locus_rows){(float *)(uintptr_t)(data + column), run_rows(r, o->out),
                        r->p->values[o->out].width};
}

static locus_norm_rule rule_of(const run *r, const op *o, int gain)
{
    return (locus_norm_rule){.epsilon = o->as.heads.epsilon,
                             .gain = run_at(r, o->in[gain]),
                             .width = o->as.heads.head_dim};
}

static locus_status heads_forward(const run *r, const op *o)
{
    const int64_t H = o->as.heads.heads, K = o->as.heads.kv_heads, D = o->as.heads.head_dim;
    const float *from = run_at(r, o->in[X]);
    float *to = run_at(r, o->out);
    const int64_t width = r->p->values[o->out].width, v = (H + K) * D;
    for (int64_t h = 0; h < H + K; h++) {
        const locus_norm_rule rule = rule_of(r, o, h < H ? Q_GAIN : K_GAIN);
        const locus_rows y = part_rows(r, o, to, h * D), x = part_rows(r, o, from, h * D);
        locus_norm_forward(&r->p->workers, &rule, &y, &x);
    }
    for (int64_t i = 0; i < run_rows(r, o->out); i++)
        memcpy(to + i * width + v, from + i * width + v, (size_t)(width - v) * sizeof *to);
    return LOCUS_OK;
}

static locus_status heads_backward(const run *r, const op *o)
{
    const int64_t H = o->as.heads.heads, K = o->as.heads.kv_heads, D = o->as.heads.head_dim;
    const float *given = run_grad(r, o->out);
    float *to = run_grad(r, o->in[X]);
    const int64_t width = r->p->values[o->out].width, v = (H + K) * D;
    for (int64_t h = 0; h < H + K; h++) {
        const int gain = h < H ? Q_GAIN : K_GAIN;
        const locus_norm_rule rule = rule_of(r, o, gain);
        const locus_rows dy = part_rows(r, o, given, h * D), dx = part_rows(r, o, to, h * D);
        const locus_rows x = part_rows(r, o, run_at(r, o->in[X]), h * D);
        const locus_norm_grad grad = {
            .x = &dx, .gain = run_grad(r, o->in[gain]), .add_x = 1, .add_parameters = 1};
        locus_norm_backward(&r->p->workers, &rule, &grad, &dy, &x, r->norm);
    }
    for (int64_t i = 0; i < run_rows(r, o->out); i++)
        r->p->workers.kernels->add(to + i * width + v, given + i * width + v, width - v);
    return LOCUS_OK;
}

const op_kind op_heads = {.name = "norm of heads",
                          .reads = 1u << X,
                          .forward = heads_forward,
                          .backward = heads_backward};
