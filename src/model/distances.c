/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "model/tape.h"
#include "schemes/scheme.h"

/* Tables by distance, as Transformer-XL, XLNet and the Conformer have them: row r is the sinusoid of
 * distance first + r, projected by a map of each layer. The sinusoids depend on lengths alone, so a
 * pass has them; the projected rows are made anew in every layer, in one buffer. */

/* Tokens of the longest sequence with those of the cache. */
static int64_t longest_of(const locus_model_pass *p)
{
    int64_t longest = 0;
    for (int64_t s = 0; s < p->ragged.sequences; s++) {
        const int64_t past = p->cache != NULL ? p->cache->past[s] : 0;
        const int64_t all = past + p->offsets[s + 1] - p->offsets[s];
        if (all > longest) longest = all;
    }
    return longest;
}

static int64_t last_distance(const locus_model_pass *p)
{
    const model_description *d = &p->model->description;
    const int64_t longest = longest_of(p), most = longest > 0 ? longest - 1 + d->memory : 0;
    return d->options.clamp > 0 && d->options.clamp < most ? d->options.clamp : most;
}

int64_t model_first_distance(const locus_model_pass *p)
{
    return p->model->description.causal ? 0 : -last_distance(p);
}

int64_t model_distance_rows(const locus_model_pass *p)
{
    return last_distance(p) - model_first_distance(p) + 1;
}

typedef struct job {
    const locus_model_pass *pass;
    double *rows; /* [workers, E] */
} job;

static void fill_row(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    const model_description *d = &j->pass->model->description;
    double *row = j->rows + (int64_t)worker * d->width;
    float *to = j->pass->sinusoid + (int64_t)index * d->width;
    locus_sinusoid(d->options.table, d->width, model_first_distance(j->pass) + (int64_t)index, row);
    for (int64_t i = 0; i < d->width; i++) to[i] = (float)row[i];
}

locus_status model_distances_new(locus_model_pass *p, locus_error *error)
{
    const locus_model *m = p->model;
    const size_t width = (size_t)m->description.width;
    if (!m->description.distances) return LOCUS_OK;
    p->distance_rows = model_distance_rows(p);
    locus_release(m->allocator, p->sinusoid); /* of the lengths before */
    job j = {p, locus_allocate(m->allocator, m->workers.threads, width * sizeof(double))};
    p->sinusoid = locus_allocate(m->allocator, (size_t)p->distance_rows, width * sizeof(float));
    const int there = j.rows != NULL && p->sinusoid != NULL;
    if (there) locus_parallel_for(m->workers.threads, (size_t)p->distance_rows, fill_row, &j);
    locus_release(m->allocator, j.rows);
    return there ? LOCUS_OK : locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
}

locus_tensor model_distance_table(const locus_model_pass *p, float *data)
{
    const model_description *d = &p->model->description;
    return (locus_tensor){.data = data,
                          .dtype = LOCUS_F32,
                          .rank = 3,
                          .shape = {d->heads, p->distance_rows, d->head_dim},
                          .stride = {d->head_dim, d->heads * d->head_dim, 1}};
}

void model_distances_project(const locus_model_pass *p, const model_layer *layer,
                             const pass_work *w)
{
    const int64_t A = layer->relative.packed.outputs;
    if (w->distances == NULL) return;
    model_map_apply(p->model, w->linear, &layer->relative, w->distances, p->sinusoid,
                    p->distance_rows, NULL);
    model_tape_hold(p->model, w->distances, p->distance_rows * A);
}
