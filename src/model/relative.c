/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tape.h"

/* Every layer of DeBERTa projects one table of relative positions. */

void model_relative_norm(const locus_model_pass *p, const pass_work *w)
{
    const model_description *d = &p->model->description;
    const locus_norm_rule rule = model_norm_rule(d, &p->model->relative_norm, d->width);
    if (w->relative != NULL)
        model_norm_apply(p->model, &rule, w->relative, p->model->relative, d->relative_rows);
}

static void project(const locus_model_pass *p, const model_map *map, float *to, const pass_work *w)
{
    const int64_t rows = p->model->description.relative_rows;
    const float *x = w->relative != NULL ? w->relative : p->model->relative;
    if (to == NULL) return;
    model_map_apply(p->model, w->linear, map, to, x, rows, NULL);
    model_tape_hold(p->model, to, rows * map->packed.outputs);
}

void model_relative_project(const locus_model_pass *p, const model_layer *layer, const pass_work *w)
{
    project(p, &layer->relative_k, w->relative_k, w);
    project(p, &layer->relative_q, w->relative_q, w);
}
