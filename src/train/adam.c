/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/parallel.h"
#include "train/model.h"

/* AdamW (Loshchilov and Hutter 2019), bias-corrected, with decoupled decay:
 *     g <- g min(1, 1 / |g|)
 *     m <- 0.9 m + 0.1 g,  v <- 0.98 v + 0.02 g^2
 *     p <- p - rate (m^ / (sqrt(v^) + 1e-8) + decay p) */

enum { NORM_BLOCK = 4096, LANES = 8 };

/* ---- |g| ---- */

/* Sums of squares of a block, in LANES interleaved sums, whatever the threads. */
static void square_block(void *context, size_t index, uint32_t worker)
{
    train_model *m = context;
    const size_t first = index * NORM_BLOCK;
    const size_t past = first + NORM_BLOCK < m->list.floats ? first + NORM_BLOCK : m->list.floats;
    double sums[LANES] = {0.0}, total = 0.0;
    (void)worker;
    for (size_t i = first; i + LANES <= past; i += LANES) /* floats is a multiple of LANES */
        for (size_t lane = 0; lane < LANES; lane++) {
            const double g = (double)m->gradients[i + lane];
            sums[lane] += g * g;
        }
    for (size_t lane = 0; lane < LANES; lane++) total += sums[lane];
    m->partial[index] = total;
}

static double gradient_norm(train_model *m)
{
    const size_t blocks = (m->list.floats + NORM_BLOCK - 1) / NORM_BLOCK;
    double sum = 0.0;
    locus_parallel_for(m->threads, blocks, square_block, m);
    for (size_t i = 0; i < blocks; i++) sum += m->partial[i];
    return sqrt(sum);
}

/* ---- the update ---- */

typedef struct adam_job {
    train_model *model;
    float clip, first, second; /* factors: of g, of m and v (bias corrections) */
    float rate, decay;
} adam_job;

static void update_parameter(void *context, size_t index, uint32_t worker)
{
    const adam_job *job = context;
    train_model *model = job->model;
    const train_parameter *item = &model->list.items[index];
    float *p = model->weights + item->at, *m = model->m + item->at, *v = model->v + item->at;
    const float *g = model->gradients + item->at;
    const float decay = item->decays ? job->decay : 0.0f, least = (float)item->least;
    (void)worker;
    for (size_t i = 0; i < item->count; i++) {
        const float clipped = g[i] * job->clip;
        m[i] = 0.9f * m[i] + 0.1f * clipped;
        v[i] = 0.98f * v[i] + 0.02f * (clipped * clipped);
        const float change = m[i] * job->first / (sqrtf(v[i] * job->second) + 1e-8f);
        p[i] -= job->rate * (change + decay * p[i]);
        if (p[i] < least) p[i] = least;
    }
}

double train_adam(train_model *model, const train_update *update)
{
    const double norm = gradient_norm(model), step = (double)update->step;
    adam_job job = {.model = model,
                    .clip = norm > 1.0 ? (float)(1.0 / norm) : 1.0f,
                    .first = (float)(1.0 / (1.0 - pow(0.9, step))),
                    .second = (float)(1.0 / (1.0 - pow(0.98, step))),
                    .rate = (float)update->rate,
                    .decay = (float)update->decay};
    locus_parallel_for(model->threads, model->list.count, update_parameter, &job);
    return norm;
}

double train_rate(double peak, int64_t step, int64_t steps)
{
    const int64_t warm = steps / 20 > 1 ? steps / 20 : 1;
    if (step <= warm) return peak * (double)step / (double)warm;
    const double part = (double)(step - warm) / (double)(steps - warm);
    return peak * (0.1 + 0.45 * (1.0 + cos(3.14159265358979323846 * part)));
}
