/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/depthwise.h"

#include <string.h>

enum { BLOCK = 64 }; /* rows of a task */

typedef struct depthwise_job {
    const locus_kernels *kernels;
    const locus_depthwise *f;
    const locus_rows *y, *x, *dy;
    const locus_depthwise_grad *grad;
    const locus_ragged *tokens;
    int backward;
} depthwise_job;

/* ---- y and dx ---- */

/* Rows t0 .. t1 - 1 of a sequence of `count` rows from `first` on, all of which meet the same taps
 * k0 .. k1 - 1. Backward, dx_t = sum_k w[k] dy_(t + before - k): k runs down, so that rows ascend. */
static void some_rows(const depthwise_job *j, int64_t first, int64_t t0, int64_t t1, int64_t k0,
                      int64_t k1)
{
    const locus_depthwise *f = j->f;
    const int64_t row_stride = j->backward ? -f->width : f->width;
    const float *weight = f->weight + (j->backward ? (f->taps - 1 - k0) * f->width : k0 * f->width);
    const int64_t before = j->backward ? f->taps - 1 - f->before : f->before;
    j->kernels->depthwise(locus_row(j->y, first + t0), j->y->stride,
                          locus_row(j->x, first + t0 + k0 - before), j->x->stride, weight,
                          row_stride, j->backward ? NULL : f->bias, t1 - t0, k1 - k0, f->width);
}

/* Most rows of a long sequence meet all taps; those near its ends are taken one by one. Each meets
 * at least the tap of its own row. */
static void block_rows(const depthwise_job *j, int64_t first, int64_t count, int64_t t,
                       int64_t past)
{
    const locus_depthwise *f = j->f;
    const int64_t before = j->backward ? f->taps - 1 - f->before : f->before;
    const int64_t inside = before, outside = count - (f->taps - 1 - before);
    while (t < past) {
        const int64_t whole = t >= inside && t < outside;
        const int64_t end = whole ? locus_least(past, outside) : t + 1;
        const int64_t k0 = whole || t >= before ? 0 : before - t;
        const int64_t k1 = whole ? f->taps : locus_least(f->taps, count + before - t);
        some_rows(j, first, t, end, k0, k1);
        t = end;
    }
}

static void sequence_rows(void *context, size_t index, uint32_t worker)
{
    const depthwise_job *j = context;
    const int64_t from = (int64_t)index * BLOCK, past = locus_least(from + BLOCK, j->y->count);
    const int64_t *offsets = j->tokens->offsets;
    int64_t low = 0, high = j->tokens->sequences; /* the sequence of row `from` */
    (void)worker;
    while (high - low > 1) {
        const int64_t middle = (low + high) / 2;
        if (offsets[middle] <= from)
            low = middle;
        else
            high = middle;
    }
    for (int64_t s = low, at = from; at < past; s++) {
        const int64_t end = locus_least(past, offsets[s + 1]);
        if (end <= at) continue;
        block_rows(j, offsets[s], offsets[s + 1] - offsets[s], at - offsets[s], end - offsets[s]);
        at = end;
    }
}

void locus_depthwise_forward(const locus_workers *workers, const locus_depthwise *f,
                             const locus_rows *y, const locus_rows *x, const locus_ragged *tokens)
{
    depthwise_job j = {.kernels = workers->kernels, .f = f, .y = y, .x = x, .tokens = tokens};
    locus_parallel_for(workers->threads, (size_t)locus_blocks(y->count, BLOCK), sequence_rows, &j);
}

/* ---- weights ---- */

/* Tap k of one panel of columns: every sequence, in blocks of rows. */
static void tap_grad(const depthwise_job *j, int64_t k, int64_t column, int64_t columns)
{
    float *to = j->grad->weight + k * j->f->width + column;
    for (int64_t s = 0; s < j->tokens->sequences; s++) {
        const int64_t first = j->tokens->offsets[s], past = j->tokens->offsets[s + 1];
        const int64_t shift = k - j->f->before;
        const int64_t from = shift < 0 ? first - shift : first;
        const int64_t to_row = shift > 0 ? past - shift : past;
        for (int64_t t = from; t < to_row; t += LOCUS_ROW_BLOCK)
            j->kernels->product_sums(to, locus_row(j->dy, t) + column, j->dy->stride,
                                     locus_row(j->x, t + shift) + column, j->x->stride,
                                     locus_least(LOCUS_ROW_BLOCK, to_row - t), columns);
    }
}

static void bias_grad(const depthwise_job *j, int64_t column, int64_t columns)
{
    float part[LOCUS_PANEL];
    for (int64_t t = 0; t < j->dy->count; t += LOCUS_ROW_BLOCK) {
        const int64_t end = locus_least(t + LOCUS_ROW_BLOCK, j->dy->count);
        memset(part, 0, sizeof part);
        for (int64_t i = t; i < end; i++)
            j->kernels->add(part, locus_row(j->dy, i) + column, columns);
        j->kernels->add(j->grad->bias + column, part, columns);
    }
}

static void parameter_panel(void *context, size_t index, uint32_t worker)
{
    const depthwise_job *j = context;
    const int64_t column = (int64_t)index * LOCUS_PANEL;
    const int64_t columns = locus_least(LOCUS_PANEL, j->f->width - column);
    const size_t bytes = (size_t)columns * sizeof(float);
    (void)worker;
    for (int64_t k = 0; j->grad->weight != NULL && k < j->f->taps; k++) {
        if (!j->grad->add_parameters) memset(j->grad->weight + k * j->f->width + column, 0, bytes);
        tap_grad(j, k, column, columns);
    }
    if (j->grad->bias == NULL) return;
    if (!j->grad->add_parameters) memset(j->grad->bias + column, 0, bytes);
    bias_grad(j, column, columns);
}

void locus_depthwise_backward(const locus_workers *workers, const locus_depthwise *f,
                              const locus_depthwise_grad *grad, const locus_rows *dy,
                              const locus_rows *x, const locus_ragged *tokens)
{
    if (grad->x != NULL) {
        depthwise_job j = {.kernels = workers->kernels,
                           .f = f,
                           .y = grad->x,
                           .x = dy,
                           .tokens = tokens,
                           .backward = 1};
        locus_parallel_for(workers->threads, (size_t)locus_blocks(dy->count, BLOCK), sequence_rows,
                           &j);
    }
    depthwise_job p = {
        .kernels = workers->kernels, .f = f, .x = x, .dy = dy, .grad = grad, .tokens = tokens};
    if (grad->weight != NULL || grad->bias != NULL)
        locus_parallel_for(workers->threads, (size_t)locus_blocks(f->width, LOCUS_PANEL),
                           parameter_panel, &p);
}
