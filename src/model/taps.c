/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pass.h"

/* Feed-forward sublayers whose maps see the tokens beside each one, as VITS has them. */

static locus_convolution convolution(const locus_model *m, const locus_packed *packed,
                                     const locus_tensor *bias, int64_t inputs, int64_t outputs)
{
    const int64_t taps = m->description.forward_taps;
    return (locus_convolution){.workers = m->workers,
                               .second_cache = m->linear.second_cache,
                               .inputs = inputs,
                               .outputs = outputs,
                               .groups = 1,
                               .taps = taps,
                               .before = (taps - 1) / 2,
                               .packed = packed,
                               .bias = bias->data};
}

locus_convolution model_taps_in(const locus_model *m, const model_layer *layer)
{
    const model_description *d = &m->description;
    locus_convolution f =
        convolution(m, &layer->in_taps, &layer->in.bias, d->width, d->feed_forward);
    f.activation = d->activation;
    return f;
}

locus_convolution model_taps_out(const locus_model *m, const model_layer *layer)
{
    const model_description *d = &m->description;
    return convolution(m, &layer->out_taps, &layer->out.bias, d->feed_forward, d->width);
}

void model_taps_forward(const locus_model_pass *p, const model_layer *layer, const pass_work *w,
                        float *to, const float *x, const float *residual)
{
    const locus_model *m = p->model;
    const int64_t N = p->tokens, E = m->description.width, F = m->description.feed_forward;
    const locus_rows from = {(float *)(uintptr_t)x, N, E}, inner = {w->inner, N, F};
    const locus_rows y = {to, N, E}, beside = {(float *)(uintptr_t)residual, N, E};
    locus_convolution f = model_taps_in(m, layer);
    f.workspace = w->convolution;
    locus_convolution_forward(&f, &inner, &from, NULL, &p->ragged);
    f = model_taps_out(m, layer);
    f.workspace = w->convolution;
    locus_convolution_forward(&f, &y, &inner, &beside, &p->ragged);
}
