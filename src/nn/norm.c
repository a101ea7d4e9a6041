/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/norm.h"

#include <string.h>

typedef struct norm_job {
    const locus_kernels *kernels;
    const locus_norm_rule *rule;
    const locus_rows *y, *x, *dy;
    const locus_norm_grad *grad;
    float (*statistics)[2];
    int64_t rows;
} norm_job;

static void forward_rows(void *context, size_t index, uint32_t worker)
{
    const norm_job *j = context;
    const int64_t first = (int64_t)index * j->rows;
    (void)worker;
    j->kernels->norm_rows(j->rule, locus_row(j->y, first), j->y->stride, locus_row(j->x, first),
                          j->x->stride, locus_least(j->rows, j->x->count - first));
}

void locus_norm_forward(const locus_workers *workers, const locus_norm_rule *rule,
                        const locus_rows *y, const locus_rows *x)
{
    norm_job j = {.kernels = workers->kernels,
                  .rule = rule,
                  .y = y,
                  .x = x,
                  .rows = locus_task_rows(rule->width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(x->count, j.rows), forward_rows, &j);
}

uint64_t locus_norm_workspace(int64_t rows) { return (uint64_t)rows * 2 * sizeof(float); }

static void backward_rows(void *context, size_t index, uint32_t worker)
{
    const norm_job *j = context;
    const int64_t first = (int64_t)index * j->rows;
    const locus_rows *dx = j->grad->x;
    (void)worker;
    j->kernels->norm_grad(j->rule, dx != NULL ? locus_row(dx, first) : NULL,
                          dx != NULL ? dx->stride : 0, j->grad->add_x, j->statistics + first,
                          locus_row(j->dy, first), j->dy->stride, locus_row(j->x, first),
                          j->x->stride, locus_least(j->rows, j->x->count - first));
}

/* The gain and shift of one panel of columns. */
static void backward_panel(void *context, size_t index, uint32_t worker)
{
    const norm_job *j = context;
    const int64_t column = (int64_t)index * LOCUS_PANEL;
    const int64_t columns = locus_least(LOCUS_PANEL, j->rule->width - column);
    float *gain = j->grad->gain != NULL ? j->grad->gain + column : NULL;
    float *shift = j->grad->shift != NULL ? j->grad->shift + column : NULL;
    (void)worker;
    if (!j->grad->add_parameters) {
        if (gain != NULL) memset(gain, 0, (size_t)columns * sizeof(float));
        if (shift != NULL) memset(shift, 0, (size_t)columns * sizeof(float));
    }
    for (int64_t first = 0; first < j->x->count; first += LOCUS_ROW_BLOCK)
        j->kernels->norm_parameter_grad(gain, shift, locus_row(j->dy, first) + column,
                                        j->dy->stride, locus_row(j->x, first) + column,
                                        j->x->stride, (const float(*)[2])(j->statistics + first),
                                        locus_least(LOCUS_ROW_BLOCK, j->x->count - first), columns);
}

void locus_norm_backward(const locus_workers *workers, const locus_norm_rule *rule,
                         const locus_norm_grad *grad, const locus_rows *dy, const locus_rows *x,
                         void *workspace)
{
    norm_job j = {.kernels = workers->kernels,
                  .rule = rule,
                  .x = x,
                  .dy = dy,
                  .grad = grad,
                  .statistics = workspace,
                  .rows = locus_task_rows(rule->width)};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(x->count, j.rows), backward_rows, &j);
    if (grad->gain != NULL || grad->shift != NULL)
        locus_parallel_for(workers->threads, (size_t)locus_blocks(rule->width, LOCUS_PANEL),
                           backward_panel, &j);
}
