/* SPDX-License-Identifier: Apache-2.0 */
#include "model/tape.h"

/* A word table that is stored in parts, of a model that is trained: put together in every pass. */
const float *model_words(const locus_model_pass *p, const pass_work *w)
{
    const locus_model *m = p->model;
    const model_description *d = &m->description;
    if (w->words == NULL) return m->word;
    for (int64_t i = 0, first = 0; i < d->clusters; first = d->cluster_end[i++]) {
        const int64_t count = d->cluster_end[i] - first, E = d->width;
        float *to = w->words + first * E;
        if (m->cluster[i].map.packed.outputs > 0)
            model_map_apply(m, w->linear, &m->cluster[i].map, to, m->cluster[i].rows, count, NULL);
        else
            model_copy_apply(m, to, E, m->cluster[i].rows, E, count, E);
    }
    return w->words;
}
