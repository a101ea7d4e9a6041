/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/pooling.h"

#include <math.h>
#include <string.h>

typedef struct pooling_job {
    const locus_kernels *kernels;
    locus_pooling pooling;
    const locus_rows *y, *x, *dx, *dy;
    const locus_ragged *tokens;
    int64_t width;
} pooling_job;

/* ---- one row per sequence ---- */

/* What sums of `count` rows are divided by. */
static float divisor_of(locus_pooling pooling, int64_t count)
{
    if (pooling == LOCUS_POOL_ROOT) return sqrtf((float)count);
    return pooling == LOCUS_POOL_RISING ? (float)(0.5 * (double)count * (double)(count + 1))
                                        : (float)count;
}

static int is_sum(locus_pooling pooling)
{
    return pooling == LOCUS_POOL_MEAN || pooling == LOCUS_POOL_ROOT || pooling == LOCUS_POOL_RISING;
}

static void add_weighted(float *part, const float *x, float weight, int64_t columns)
{
    for (int64_t c = 0; c < columns; c++) part[c] += weight * x[c];
}

/* Sums of blocks of rows, as everywhere. */
static void sum_of(const pooling_job *j, float *y, int64_t first, int64_t past)
{
    float part[LOCUS_PANEL];
    for (int64_t column = 0; column < j->width; column += LOCUS_PANEL) {
        const int64_t columns = locus_least(LOCUS_PANEL, j->width - column);
        for (int64_t at = first; at < past; at += LOCUS_ROW_BLOCK) {
            const int64_t end = locus_least(at + LOCUS_ROW_BLOCK, past);
            memset(part, 0, sizeof part);
            for (int64_t i = at; i < end; i++) {
                const float *x = locus_row(j->x, i) + column;
                if (j->pooling == LOCUS_POOL_RISING)
                    add_weighted(part, x, (float)(i - first + 1), columns);
                else
                    j->kernels->add(part, x, columns);
            }
            j->kernels->add(y + column, part, columns);
        }
    }
    const float divisor = divisor_of(j->pooling, past - first);
    for (int64_t c = 0; c < j->width; c++) y[c] /= divisor;
}

/* Not below a NaN, nor below what is not above it. */
static int replaces(float candidate, float best) { return candidate > best || isnan(candidate); }

static int64_t greatest_row(const locus_rows *x, int64_t first, int64_t past, int64_t column)
{
    int64_t best = first;
    for (int64_t i = first; i < past && !isnan(locus_row(x, best)[column]); i++)
        if (replaces(locus_row(x, i)[column], locus_row(x, best)[column])) best = i;
    return best;
}

static void max_of(const pooling_job *j, float *y, int64_t first, int64_t past)
{
    memcpy(y, locus_row(j->x, first), (size_t)j->width * sizeof(float));
    for (int64_t i = first + 1; i < past; i++) {
        const float *x = locus_row(j->x, i);
        for (int64_t c = 0; c < j->width; c++) y[c] = replaces(x[c], y[c]) ? x[c] : y[c];
    }
}

static void pool_sequence(void *context, size_t index, uint32_t worker)
{
    const pooling_job *j = context;
    const int64_t first = j->tokens->offsets[index], past = j->tokens->offsets[index + 1];
    float *y = locus_row(j->y, (int64_t)index);
    (void)worker;
    memset(y, 0, (size_t)j->width * sizeof(float));
    if (first == past) return;
    switch (j->pooling) {
    case LOCUS_POOL_FIRST:
        memcpy(y, locus_row(j->x, first), (size_t)j->width * sizeof(float));
        break;
    case LOCUS_POOL_LAST:
        memcpy(y, locus_row(j->x, past - 1), (size_t)j->width * sizeof(float));
        break;
    case LOCUS_POOL_MAX: max_of(j, y, first, past); break;
    default: sum_of(j, y, first, past);
    }
}

void locus_pooling_forward(const locus_workers *workers, locus_pooling pooling, const locus_rows *y,
                           const locus_rows *x, const locus_ragged *tokens, int64_t width)
{
    pooling_job j = {.kernels = workers->kernels,
                     .pooling = pooling,
                     .y = y,
                     .x = x,
                     .tokens = tokens,
                     .width = width};
    locus_parallel_for(workers->threads, (size_t)tokens->sequences, pool_sequence, &j);
}

static void spread_sequence(void *context, size_t index, uint32_t worker)
{
    const pooling_job *j = context;
    const int64_t first = j->tokens->offsets[index], past = j->tokens->offsets[index + 1];
    const float *dy = locus_row(j->dy, (int64_t)index);
    const float divisor = divisor_of(j->pooling, past - first);
    (void)worker;
    for (int64_t i = first; i < past; i++) {
        float *dx = locus_row(j->dx, i);
        const float weight = j->pooling == LOCUS_POOL_RISING ? (float)(i - first + 1) : 1.0f;
        for (int64_t c = 0; c < j->width; c++)
            dx[c] = is_sum(j->pooling) ? weight * dy[c] / divisor : 0.0f;
    }
    if (first == past || is_sum(j->pooling)) return;
    for (int64_t c = 0; c < j->width; c++) {
        const int64_t row = j->pooling == LOCUS_POOL_FIRST  ? first
                            : j->pooling == LOCUS_POOL_LAST ? past - 1
                                                            : greatest_row(j->x, first, past, c);
        locus_row(j->dx, row)[c] = dy[c];
    }
}

void locus_pooling_backward(const locus_workers *workers, locus_pooling pooling,
                            const locus_rows *dx, const locus_rows *dy, const locus_rows *x,
                            const locus_ragged *tokens, int64_t width)
{
    pooling_job j = {.kernels = workers->kernels,
                     .pooling = pooling,
                     .dx = dx,
                     .dy = dy,
                     .x = x,
                     .tokens = tokens,
                     .width = width};
    locus_parallel_for(workers->threads, (size_t)tokens->sequences, spread_sequence, &j);
}

/* ---- unit length ---- */

static double dot(const float *a, const float *b, int64_t width)
{
    double sum = 0.0;
    for (int64_t c = 0; c < width; c++) sum += (double)a[c] * (double)b[c];
    return sum;
}

static double length_of(const float *x, int64_t width)
{
    const double length = sqrt(dot(x, x, width));
    return length < 1e-12 ? 1e-12 : length; /* NaN stays */
}

static void unit_row(void *context, size_t index, uint32_t worker)
{
    const pooling_job *j = context;
    const float *x = locus_row(j->x, (int64_t)index);
    float *y = locus_row(j->y, (int64_t)index);
    const double factor = 1.0 / length_of(x, j->width);
    (void)worker;
    for (int64_t c = 0; c < j->width; c++) y[c] = (float)((double)x[c] * factor);
}

void locus_unit_forward(const locus_workers *workers, const locus_rows *y, const locus_rows *x,
                        int64_t width)
{
    pooling_job j = {.y = y, .x = x, .width = width};
    locus_parallel_for(workers->threads, (size_t)y->count, unit_row, &j);
}

static void unit_grad_row(void *context, size_t index, uint32_t worker)
{
    const pooling_job *j = context;
    const float *x = locus_row(j->x, (int64_t)index), *dy = locus_row(j->dy, (int64_t)index);
    float *dx = locus_row(j->dx, (int64_t)index);
    const double length = length_of(x, j->width);
    const double along = length == 1e-12 ? 0.0 : dot(x, dy, j->width) / (length * length);
    (void)worker;
    for (int64_t c = 0; c < j->width; c++)
        dx[c] = (float)(((double)dy[c] - (double)x[c] * along) / length);
}

void locus_unit_backward(const locus_workers *workers, const locus_rows *dx, const locus_rows *dy,
                         const locus_rows *x, int64_t width)
{
    pooling_job j = {.dx = dx, .dy = dy, .x = x, .width = width};
    locus_parallel_for(workers->threads, (size_t)dx->count, unit_grad_row, &j);
}
