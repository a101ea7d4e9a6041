/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/memory.h"
#include "core/parallel.h"
#include "model/pass.h"

/* Tables by distance, as Transformer-XL, XLNet and the Conformer have them: row r is the sinusoid of
 * distance first + r, projected by a map of each layer. The sinusoids depend on lengths alone, so a
 * pass has them. */

void model_distances(const attention *a, int64_t longest, int64_t *first, int64_t *count)
{
    const int64_t most = longest > 0 ? longest - 1 + a->memory : 0, clamp = a->config.options.clamp;
    const int64_t last = clamp > 0 && clamp < most ? clamp : most;
    *first = a->config.causal ? 0 : -last;
    *count = last - *first + 1;
}

typedef struct job {
    const attention *attention;
    double *rows; /* [workers, width] */
    float *to;
    int64_t first, width;
} job;

static void fill_row(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    double *row = j->rows + (int64_t)worker * j->width;
    float *to = j->to + (int64_t)index * j->width;
    locus_sinusoid(j->attention->config.options.table, j->width, j->first + (int64_t)index, row);
    for (int64_t i = 0; i < j->width; i++) to[i] = (float)row[i];
}

locus_status model_sinusoids(const locus_model *m, const attention *a, int64_t first, int64_t count,
                             float *to, locus_error *error)
{
    const uint32_t threads = m->workers.threads;
    const int64_t width = m->program.values[m->program.sinusoid].width;
    job j = {a, locus_allocate(m->allocator, threads, (size_t)width * sizeof(double)), to, first,
             width};
    if (j.rows == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    locus_parallel_for(threads, (size_t)count, fill_row, &j);
    locus_release(m->allocator, j.rows);
    return LOCUS_OK;
}

static const attention *by_distance(const program *p)
{
    for (int i = 0; i < p->attention_count; i++)
        if (p->attentions[i].distances) return &p->attentions[i];
    return NULL;
}

locus_status model_distances_new(locus_model_pass *p, locus_error *error)
{
    const locus_model *m = p->model;
    const attention *a = by_distance(&m->program);
    int64_t longest = 0;
    if (a == NULL || !pass_runs(p, a->stack)) return LOCUS_OK;
    for (int64_t s = 0; s < p->sequences; s++) {
        const int64_t *offset = p->offsets[a->stack] + s;
        const int64_t all = pass_past(p, s) + offset[1] - offset[0];
        if (all > longest) longest = all;
    }
    model_distances(a, longest, &p->first_distance, &p->distance_rows);
    locus_release(m->allocator, p->sinusoid); /* of the lengths before */
    p->sinusoid =
        locus_allocate(m->allocator, (size_t)p->distance_rows,
                       (size_t)m->program.values[m->program.sinusoid].width * sizeof(float));
    if (p->sinusoid == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "model: out of memory");
    return model_sinusoids(m, a, p->first_distance, p->distance_rows, p->sinusoid, error);
}
