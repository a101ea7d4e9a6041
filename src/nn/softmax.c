/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/softmax.h"

#include <math.h>

typedef struct softmax_job {
    const locus_kernels *kernels;
    const locus_rows *to, *from, *y;
    int logarithm;
    int64_t width, rows;
} softmax_job;

static void forward_rows(void *context, size_t index, uint32_t worker)
{
    const softmax_job *j = context;
    const int64_t first = (int64_t)index * j->rows,
                  past = locus_least(first + j->rows, j->to->count);
    (void)worker;
    for (int64_t i = first; i < past; i++) {
        float top, sum;
        j->kernels->exp_sum(&top, &sum, locus_row(j->from, i), j->width);
        if (j->logarithm)
            j->kernels->shift_row(locus_row(j->to, i), locus_row(j->from, i), top, logf(sum),
                                  j->width);
        else
            j->kernels->exp_row(locus_row(j->to, i), locus_row(j->from, i), top, 1.0f / sum,
                                j->width);
    }
}

static void backward_rows(void *context, size_t index, uint32_t worker)
{
    const softmax_job *j = context;
    const int64_t first = (int64_t)index * j->rows,
                  past = locus_least(first + j->rows, j->to->count);
    (void)worker;
    for (int64_t i = first; i < past; i++)
        j->kernels->softmax_row_grad(locus_row(j->to, i), locus_row(j->from, i), locus_row(j->y, i),
                                     j->logarithm, j->width);
}

void locus_softmax_forward(const locus_workers *workers, const locus_rows *y, const locus_rows *x,
                           int logarithm, int64_t width)
{
    softmax_job j = {.kernels = workers->kernels,
                     .to = y,
                     .from = x,
                     .logarithm = logarithm,
                     .width = width,
                     .rows = locus_task_rows(width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(y->count, j.rows), forward_rows, &j);
}

void locus_softmax_backward(const locus_workers *workers, const locus_rows *dx,
                            const locus_rows *dy, const locus_rows *y, int logarithm, int64_t width)
{
    softmax_job j = {.kernels = workers->kernels,
                     .to = dx,
                     .from = dy,
                     .y = y,
                     .logarithm = logarithm,
                     .width = width,
                     .rows = locus_task_rows(width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(dx->count, j.rows), backward_rows,
                       &j);
}
