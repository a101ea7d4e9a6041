/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/activation.h"

typedef struct activation_job {
    const locus_kernels *kernels;
    locus_activation activation;
    const locus_rows *y, *x, *gate; /* y: dx in the backward pass */
    const locus_rows *dgate, *dy;
    int64_t width, rows;
} activation_job;

static const float *row_or_null(const locus_rows *rows, int64_t i)
{
    return rows != NULL ? locus_row(rows, i) : NULL;
}

static void forward_rows(void *context, size_t index, uint32_t worker)
{
    const activation_job *j = context;
    const int64_t first = (int64_t)index * j->rows,
                  past = locus_least(first + j->rows, j->y->count);
    (void)worker;
    for (int64_t i = first; i < past; i++)
        j->kernels->activate_rows(locus_row(j->y, i), locus_row(j->x, i), row_or_null(j->gate, i),
                                  j->activation, j->width);
}

static void backward_rows(void *context, size_t index, uint32_t worker)
{
    const activation_job *j = context;
    const int64_t first = (int64_t)index * j->rows,
                  past = locus_least(first + j->rows, j->y->count);
    (void)worker;
    for (int64_t i = first; i < past; i++)
        j->kernels->activate_grad(locus_row(j->y, i),
                                  j->gate != NULL ? locus_row(j->dgate, i) : NULL,
                                  locus_row(j->dy, i), locus_row(j->x, i), row_or_null(j->gate, i),
                                  j->activation, j->width);
}

void locus_activation_forward(const locus_workers *workers, locus_activation activation,
                              const locus_rows *y, const locus_rows *x, const locus_rows *gate,
                              int64_t width)
{
    activation_job j = {.kernels = workers->kernels,
                        .activation = activation,
                        .y = y,
                        .x = x,
                        .gate = gate,
                        .width = width,
                        .rows = locus_task_rows(width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(y->count, j.rows), forward_rows, &j);
}

void locus_activation_backward(const locus_workers *workers, locus_activation activation,
                               const locus_rows *dx, const locus_rows *dgate, const locus_rows *dy,
                               const locus_rows *x, const locus_rows *gate, int64_t width)
{
    activation_job j = {.kernels = workers->kernels,
                        .activation = activation,
                        .y = dx,
                        .x = x,
                        .gate = gate,
                        .dgate = dgate,
                        .dy = dy,
                        .width = width,
                        .rows = locus_task_rows(width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(dx->count, j.rows), backward_rows,
                       &j);
}
