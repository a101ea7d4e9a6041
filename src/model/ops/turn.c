/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "model/ops/ops.h"
#include "model/run.h"

/* turns: cosines and sines of the position of each token, [tokens, 2, turned / 2].
 * turn: all heads of rows turned by them. */

static locus_status turns_forward(const run *r, const op *o)
{
    const attention *a = &r->p->attentions[o->as.turns];
    const int64_t pairs = a->turned / 2, *offsets = r->pass->offsets[a->stack];
    float frequency[MODEL_MOST_PAIRS], *turns = run_at(r, o->out);
    if (run_rows(r, o->out) == 0) return LOCUS_OK;
    for (int64_t s = 0; s < r->pass->sequences; s++) {
        const int64_t first = offsets[s], end = offsets[s + 1], past = pass_past(r->pass, s);
        if (end == first) continue; /* it has no plan, which would have bounded the pairs */
        const int stretched = r->pass->cache != NULL && r->pass->cache->stretched;
        model_rope_frequencies(&a->rope, a->turned,
                               stretched ? a->rope.trained + 1 : past + end - first, frequency);
        for (int64_t i = first; i < end; i++)
            for (int64_t t = 0; t < pairs; t++) {
                const double angle = (double)(past + i - first) * (double)frequency[t];
                turns[2 * i * pairs + t] = (float)cos(angle);
                turns[(2 * i + 1) * pairs + t] = (float)sin(angle);
            }
    }
    return LOCUS_OK;
}

static locus_status turns_backward(const run *r, const op *o)
{
    (void)r, (void)o; /* positions have no gradients */
    return LOCUS_OK;
}

void turn_rows(const run *r, const attention *a, float *y, int64_t y_stride, const float *x,
               int64_t x_stride, const float *turns, int64_t heads, int64_t rows)
{
    const int64_t D = a->head_dim;
    for (int64_t h = 0; h < heads; h++)
        r->p->workers.kernels->turn(y + h * D, y_stride, x + h * D, x_stride, turns, a->turned / 2,
                                    a->interleaved, 1.0f, rows, D,
                                    (locus_prefetch_rows){.rows = NULL});
}

static locus_status turn_forward(const run *r, const op *o)
{
    const attention *a = &r->p->attentions[o->as.turns];
    const int64_t width = r->p->values[o->out].width;
    turn_rows(r, a, run_at(r, o->out), width, run_at(r, o->in[0]), width, run_at(r, o->in[1]),
              a->heads, run_rows(r, o->out));
    return LOCUS_OK;
}

/* The gradient of a turn is the turn back: by the same cosines and the sines of the other sign. */
static locus_status turn_backward(const run *r, const op *o)
{
    const attention *a = &r->p->attentions[o->as.turns];
    const int64_t width = r->p->values[o->out].width, D = a->head_dim, pairs = D / 2;
    for (int64_t i = 0; i < run_rows(r, o->out); i++)
        for (int64_t h = 0; h < a->heads; h++) {
            const float *from = run_grad(r, o->out) + i * width + h * D;
            const float *c = run_at(r, o->in[1]) + i * D;
            float *to = run_grad(r, o->in[0]) + i * width + h * D;
            for (int64_t t = 0; t < pairs; t++) {
                to[t] += from[t] * c[t] + from[t + pairs] * c[t + pairs];
                to[t + pairs] += from[t + pairs] * c[t] - from[t] * c[t + pairs];
            }
        }
    return LOCUS_OK;
}

const op_kind op_turns = {.name = "turns", .forward = turns_forward, .backward = turns_backward};
const op_kind op_turn = {
    .name = "turn", .reads = 1u << 1, .forward = turn_forward, .backward = turn_backward};
