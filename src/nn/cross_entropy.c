/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/cross_entropy.h"

#include <math.h>
#include <string.h>

typedef struct entropy_job {
    const locus_kernels *kernels;
    const locus_cross_entropy *e;
    const locus_rows *x, *dx;
    float *loss, factor;
    int64_t rows;
} entropy_job;

static float weight_of(const locus_cross_entropy *e, int32_t target)
{
    return e->weight != NULL ? e->weight[target] : 1.0f;
}

/* lse - x[t] as (top - x[t]) + ln sum: neither part is large where the loss is small. */
static void forward_rows(void *context, size_t index, uint32_t worker)
{
    const entropy_job *j = context;
    const int64_t first = (int64_t)index * j->rows,
                  past = locus_least(first + j->rows, j->x->count);
    (void)worker;
    for (int64_t i = first; i < past; i++) {
        const int32_t target = j->e->target[i];
        const float *x = locus_row(j->x, i);
        float top, sum;
        j->loss[i] = 0.0f;
        if (target < 0) continue;
        j->kernels->exp_sum(&top, &sum, x, j->e->width);
        j->loss[i] = weight_of(j->e, target) * ((top - x[target]) + logf(sum));
    }
}

static void backward_rows(void *context, size_t index, uint32_t worker)
{
    const entropy_job *j = context;
    const int64_t first = (int64_t)index * j->rows,
                  past = locus_least(first + j->rows, j->x->count);
    (void)worker;
    for (int64_t i = first; i < past; i++) {
        const int32_t target = j->e->target[i];
        float *dx = locus_row(j->dx, i);
        float top, sum;
        if (target < 0) {
            memset(dx, 0, (size_t)j->e->width * sizeof(float));
            continue;
        }
        const float scale = j->factor * weight_of(j->e, target);
        j->kernels->exp_sum(&top, &sum, locus_row(j->x, i), j->e->width);
        j->kernels->exp_row(dx, locus_row(j->x, i), top, scale / sum, j->e->width);
        dx[target] -= scale;
    }
}

void locus_cross_entropy_forward(const locus_workers *workers, const locus_cross_entropy *e,
                                 const locus_rows *x, float *loss, double *total, double *weight)
{
    entropy_job j = {.kernels = workers->kernels,
                     .e = e,
                     .x = x,
                     .loss = loss,
                     .rows = locus_task_rows(e->width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(x->count, j.rows), forward_rows, &j);
    double sum = 0.0, weights = 0.0;
    for (int64_t i = 0; i < x->count; i++) {
        sum += (double)loss[i];
        if (e->target[i] >= 0) weights += (double)weight_of(e, e->target[i]);
    }
    *total = sum;
    *weight = weights;
}

void locus_cross_entropy_backward(const locus_workers *workers, const locus_cross_entropy *e,
                                  const locus_rows *dx, const locus_rows *x, float factor)
{
    entropy_job j = {.kernels = workers->kernels,
                     .e = e,
                     .x = x,
                     .dx = dx,
                     .factor = factor,
                     .rows = locus_task_rows(e->width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(x->count, j.rows), backward_rows, &j);
}
