/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tape.h"
#include "nn/activation.h"
#include "nn/depthwise.h"

/* The parts of a conformer block beside attention and feed-forward. */

static locus_rows rows_of(const locus_model_pass *p, const float *data)
{
    return (locus_rows){(float *)(uintptr_t)data, p->tokens, p->model->description.width};
}

/* to = h + map(activation(norm(depthwise(value(y) sigmoid(gate(y)))))), y = norm(h) */
void model_depth_forward(const locus_model_pass *p, const model_layer *layer, const pass_work *w,
                         float *to, const float *h, float *room)
{
    const locus_model *m = p->model;
    const model_description *d = &m->description;
    const int64_t N = p->tokens, E = d->width;
    const locus_rows y = rows_of(p, room), z = rows_of(p, w->glu);
    locus_norm_rule rule = model_norm_rule(d, &layer->glu_norm, E);
    model_norm_apply(m, &rule, room, h, N);
    model_map_apply(m, w->linear, &layer->value, to, room, N, NULL);
    model_map_apply(m, w->linear, &layer->gated, w->glu, room, N,
                    &(model_end){.activation = LOCUS_SIGMOID, .gate = to});
    const locus_depthwise f = {.weight = layer->depth,
                               .bias = layer->depth_shift,
                               .taps = d->depth_taps,
                               .before = d->depth_before,
                               .width = E};
    if (m->tape != NULL)
        model_tape_depth(m, &f, &y, &z, &p->ragged);
    else
        locus_depthwise_forward(&m->workers, &f, &y, &z, &p->ragged);
    rule = model_norm_rule(d, &layer->depth_norm, E);
    if (!d->depth_batch_norm) model_norm_apply(m, &rule, room, room, N);
    if (m->tape != NULL)
        model_tape_activate(m, d->activation, &y, E);
    else
        locus_activation_forward(&m->workers, d->activation, &y, &y, NULL, E);
    model_map_apply(m, w->linear, &layer->depth_out, to, room, N, &(model_end){.residual = h});
}

void model_turns_apply(const locus_model_pass *p, const pass_work *w, const float *x)
{
    const model_description *d = &p->model->description;
    const int64_t D = d->head_dim, E = d->width;
    if (p->model->tape != NULL) {
        model_tape_turn(p->model, w->turned, x, w->turns, p->tokens);
        return;
    }
    for (int64_t h = 0; h < d->heads; h++)
        p->model->workers.kernels->turn(w->turned + h * D, E, x + h * D, E, w->turns, D / 2, 0,
                                        1.0f, p->tokens, D, (locus_prefetch_rows){.rows = NULL});
}
