/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/random.h"
#include "nn/activation.h"
#include "nn/depthwise.h"
#include "nn/embedding.h"
#include "nn/norm.h"
#include "nn/softmax.h"

enum { TABLE = 4096, TAPS = 31 };
static const float epsilon = 1e-5f;

/* ---- memory ---- */

static float *filled(int64_t count, uint32_t stream)
{
    float *block = malloc((size_t)count * sizeof *block);
    const uint32_t key[2] = {2017, stream};
    for (int64_t i = 0; block != NULL && i < count; i++) {
        uint32_t words[4];
        locus_philox(key, (const uint32_t[4]){(uint32_t)i, 0, 0, 0}, words);
        block[i] = (float)((double)words[0] / 1073741824.0 - 2.0);
    }
    return block;
}

int operator_pool_new(operator_pool *pool, int64_t rows, int64_t width)
{
    const int64_t count = rows * width;
    *pool = (operator_pool){.rows = rows, .width = width};
    float **const blocks[] = {&pool->x, &pool->gate, &pool->dy, &pool->to, &pool->plain};
    int complete = 1;
    for (uint32_t i = 0; i < 5; i++) complete &= (*blocks[i] = filled(count, i)) != NULL;
    complete &= (pool->row = filled(4 * width, 5)) != NULL;
    complete &= (pool->parameters = filled(TABLE * width, 6)) != NULL;
    complete &= (pool->id = malloc((size_t)rows * sizeof *pool->id)) != NULL;
    complete &= (pool->workspace = malloc((size_t)locus_norm_workspace(rows))) != NULL;
    for (int64_t i = 0; complete && i < rows; i++) pool->id[i] = (int32_t)(i * 2654435761 % TABLE);
    return complete;
}

void operator_pool_free(operator_pool *pool)
{
    void *const blocks[] = {pool->x,   pool->gate,       pool->dy, pool->to,       pool->plain,
                            pool->row, pool->parameters, pool->id, pool->workspace};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    memset(pool, 0, sizeof *pool);
}

static locus_rows rows_of(const operator_pool *p, float *data)
{
    return (locus_rows){.data = data, .count = p->rows, .stride = p->width};
}

static locus_norm_rule norm_of(const operator_pool *p, int centred)
{
    return (locus_norm_rule){.centred = centred,
                             .epsilon = epsilon,
                             .gain = p->row,
                             .shift = centred ? p->row + p->width : NULL,
                             .width = p->width};
}

/* ---- ours ---- */

typedef void (*run_fn)(operator_pool *p, const locus_workers *workers);

static void layer_norm(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to), x = rows_of(p, p->x);
    const locus_norm_rule rule = norm_of(p, 1);
    locus_norm_forward(workers, &rule, &y, &x);
}

static void layer_norm_grad(operator_pool *p, const locus_workers *workers)
{
    const locus_rows dx = rows_of(p, p->to), x = rows_of(p, p->x), dy = rows_of(p, p->dy);
    const locus_norm_rule rule = norm_of(p, 1);
    const locus_norm_grad grad = {.x = &dx,
                                  .gain = p->row + 2 * p->width,
                                  .shift = p->row + 3 * p->width};
    locus_norm_backward(workers, &rule, &grad, &dy, &x, p->workspace);
}

static void rms_norm(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to), x = rows_of(p, p->x);
    const locus_norm_rule rule = norm_of(p, 0);
    locus_norm_forward(workers, &rule, &y, &x);
}

static void gelu(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to), x = rows_of(p, p->x);
    locus_activation_forward(workers, LOCUS_GELU, &y, &x, NULL, p->width);
}

static void gelu_grad(operator_pool *p, const locus_workers *workers)
{
    const locus_rows dx = rows_of(p, p->to), x = rows_of(p, p->x), dy = rows_of(p, p->dy);
    locus_activation_backward(workers, LOCUS_GELU, &dx, NULL, &dy, &x, NULL, p->width);
}

static void gated_silu(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to), x = rows_of(p, p->x), gate = rows_of(p, p->gate);
    locus_activation_forward(workers, LOCUS_SILU, &y, &x, &gate, p->width);
}

static void softmax(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to), x = rows_of(p, p->x);
    locus_softmax_forward(workers, &y, &x, 0, p->width);
}

static void embedding(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to);
    const locus_embedding terms[2] = {
        {.table = p->parameters, .stride = p->width, .id = p->id, .factor = 1.0f},
        {.table = p->row, .stride = p->width, .factor = 1.0f}};
    locus_embedding_forward(workers, &y, terms, 2, p->width);
}

static void depthwise(operator_pool *p, const locus_workers *workers)
{
    const locus_rows y = rows_of(p, p->to), x = rows_of(p, p->x);
    const locus_depthwise f = {p->parameters, p->row, TAPS, TAPS / 2, p->width};
    const int64_t offsets[2] = {0, p->rows};
    locus_depthwise_forward(workers, &f, &y, &x, &(locus_ragged){offsets, 1});
}

/* ---- the loops that one writes down ---- */

typedef void (*plain_fn)(operator_pool *p, float *y, const float *x, int64_t row);

static void plain_statistics(const operator_pool *p, const float *x, int centred, float *mean,
                             float *factor)
{
    float sum = 0.0f, square = 0.0f;
    for (int64_t c = 0; centred && c < p->width; c++) sum += x[c];
    *mean = sum / (float)p->width;
    for (int64_t c = 0; c < p->width; c++) square += (x[c] - *mean) * (x[c] - *mean);
    *factor = 1.0f / sqrtf(square / (float)p->width + epsilon);
}

static void plain_layer_norm(operator_pool *p, float *y, const float *x, int64_t row)
{
    float mean, factor;
    (void)row;
    plain_statistics(p, x, 1, &mean, &factor);
    for (int64_t c = 0; c < p->width; c++)
        y[c] = (x[c] - mean) * factor * p->row[c] + p->row[p->width + c];
}

static void plain_layer_norm_grad(operator_pool *p, float *y, const float *x, int64_t row)
{
    const float *dy = p->dy + row * p->width;
    float *dgain = p->row + 2 * p->width, *dshift = p->row + 3 * p->width;
    float mean, factor, sum = 0.0f, dot = 0.0f;
    plain_statistics(p, x, 1, &mean, &factor);
    for (int64_t c = 0; c < p->width; c++) {
        sum += dy[c] * p->row[c];
        dot += dy[c] * p->row[c] * (x[c] - mean) * factor;
        dgain[c] = (row == 0 ? 0.0f : dgain[c]) + dy[c] * (x[c] - mean) * factor;
        dshift[c] = (row == 0 ? 0.0f : dshift[c]) + dy[c];
    }
    for (int64_t c = 0; c < p->width; c++)
        y[c] = factor * (dy[c] * p->row[c] - sum / (float)p->width -
                         (x[c] - mean) * factor * dot / (float)p->width);
}

static void plain_rms_norm(operator_pool *p, float *y, const float *x, int64_t row)
{
    float mean, factor;
    (void)row;
    plain_statistics(p, x, 0, &mean, &factor);
    for (int64_t c = 0; c < p->width; c++) y[c] = x[c] * factor * p->row[c];
}

static void plain_gelu(operator_pool *p, float *y, const float *x, int64_t row)
{
    (void)row;
    for (int64_t c = 0; c < p->width; c++) y[c] = 0.5f * x[c] * (1.0f + erff(x[c] * 0.707106781f));
}

static void plain_gelu_grad(operator_pool *p, float *y, const float *x, int64_t row)
{
    const float *dy = p->dy + row * p->width;
    for (int64_t c = 0; c < p->width; c++)
        y[c] = dy[c] * (0.5f * (1.0f + erff(x[c] * 0.707106781f)) +
                        x[c] * expf(-0.5f * x[c] * x[c]) * 0.39894228f);
}

static void plain_gated_silu(operator_pool *p, float *y, const float *x, int64_t row)
{
    const float *gate = p->gate + row * p->width;
    for (int64_t c = 0; c < p->width; c++) y[c] = x[c] / (1.0f + expf(-x[c])) * gate[c];
}

static void plain_softmax(operator_pool *p, float *y, const float *x, int64_t row)
{
    float top = x[0], sum = 0.0f;
    (void)row;
    for (int64_t c = 0; c < p->width; c++) top = x[c] > top ? x[c] : top;
    for (int64_t c = 0; c < p->width; c++) sum += y[c] = expf(x[c] - top);
    for (int64_t c = 0; c < p->width; c++) y[c] /= sum;
}

static void plain_embedding(operator_pool *p, float *y, const float *x, int64_t row)
{
    const float *from = p->parameters + p->id[row] * p->width;
    (void)x;
    for (int64_t c = 0; c < p->width; c++) y[c] = from[c] + p->row[c];
}

static void plain_depthwise(operator_pool *p, float *y, const float *x, int64_t row)
{
    for (int64_t c = 0; c < p->width; c++) y[c] = p->row[c];
    for (int64_t k = 0; k < TAPS; k++) {
        const int64_t from = row + k - TAPS / 2;
        if (from < 0 || from >= p->rows) continue;
        for (int64_t c = 0; c < p->width; c++)
            y[c] += p->parameters[k * p->width + c] * x[(from - row) * p->width + c];
    }
}

/* ---- the list ---- */

static const struct {
    const char *name;
    int arrays; /* of rows, read and written */
    run_fn run;
    plain_fn plain;
} operators[] = {
    {"layer norm", 2, layer_norm, plain_layer_norm},
    {"layer norm, backward", 3, layer_norm_grad, plain_layer_norm_grad},
    {"rms norm", 2, rms_norm, plain_rms_norm},
    {"gelu", 2, gelu, plain_gelu},
    {"gelu, backward", 3, gelu_grad, plain_gelu_grad},
    {"gated silu", 3, gated_silu, plain_gated_silu},
    {"softmax", 2, softmax, plain_softmax},
    {"embedding", 2, embedding, plain_embedding},
    {"depthwise, 31 taps", 2, depthwise, plain_depthwise},
};
enum { OPERATORS = sizeof operators / sizeof *operators };

const char *operator_name(size_t which) { return which < OPERATORS ? operators[which].name : NULL; }

double operator_bytes(const operator_pool *pool, size_t which)
{
    return (double)operators[which].arrays * (double)(pool->rows * pool->width) * sizeof(float);
}

void operator_run(operator_pool *pool, size_t which, const char *isa, uint32_t threads)
{
    operators[which].run(pool, &(locus_workers){locus_kernels_pick(isa), threads});
}

void operator_run_plain(operator_pool *pool, size_t which)
{
    for (int64_t i = 0; i < pool->rows; i++)
        operators[which].plain(pool, pool->plain + i * pool->width, pool->x + i * pool->width, i);
}

double operator_difference(const operator_pool *pool)
{
    double worst = 0.0, scale = 1.0;
    for (int64_t i = 0; i < pool->rows * pool->width; i++) {
        const double d = fabs((double)pool->to[i] - (double)pool->plain[i]);
        if (!(d <= worst)) worst = d; /* NaN too */
        if (fabs((double)pool->plain[i]) > scale) scale = fabs((double)pool->plain[i]);
    }
    return worst / scale;
}
