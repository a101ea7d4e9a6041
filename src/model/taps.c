/* SPDX-License-Identifier: Apache-2.0 */
#include "model/pass.h"

/* Maps that see the tokens beside each one: beside the first layer of DeBERTa v2, and in the
 * feed-forward sublayers of VITS. */

locus_convolution model_convolution(const locus_model *m)
{
    const model_description *d = &m->description;
    return (locus_convolution){.workers = m->workers,
                               .second_cache = m->linear.second_cache,
                               .inputs = d->width,
                               .outputs = d->width,
                               .groups = d->groups,
                               .taps = d->taps,
                               .before = (d->taps - 1) / 2,
                               .packed = m->convolution,
                               .weight = m->convolution_weight,
                               .bias = m->convolution_bias,
                               .activation = d->convolution_activation};
}

static locus_convolution convolution(const locus_model *m, const model_taps *map,
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
                               .packed = map->plain == NULL ? &map->packed : NULL,
                               .weight = map->plain,
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
    model_convolution_apply(m, &f, &inner, &from, NULL, &p->ragged);
    f = model_taps_out(m, layer);
    f.workspace = w->convolution;
    model_convolution_apply(m, &f, &y, &inner, &beside, &p->ragged);
}
