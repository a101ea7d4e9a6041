/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/linear.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "core/random.h"
#include "nn/linear.h"

enum { SAMPLES = 500 };

/* ---- memory ---- */

static float *floats(int64_t count)
{
    const size_t bytes = ((size_t)count * sizeof(float) / 64 + 1) * 64;
    float *block = aligned_alloc(64, bytes);
    if (block != NULL) memset(block, 0, bytes);
    return block;
}

static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }

/* Uniform in (-1/2, 1/2): a third of the spread of a normal number, never denormal. */
static void fill(float *to, int64_t count, uint32_t stream)
{
    const uint32_t key[2] = {2017, stream};
    for (int64_t i = 0; i < count; i += 4) {
        uint32_t words[4];
        locus_philox(key, (const uint32_t[4]){(uint32_t)i, 0, 0, 0}, words);
        for (int64_t k = 0; k < 4 && i + k < count; k++)
            to[i + k] = (float)((double)words[k] / 4294967296.0 - 0.5);
    }
}

static int64_t output_floats(const linear_case *c)
{
    if (c->pass == LINEAR_WEIGHT_GRAD) return c->outputs * c->inputs;
    return c->rows * (c->pass == LINEAR_FORWARD ? c->outputs : c->inputs);
}

static locus_linear linear_of(const linear_case *c)
{
    return (locus_linear){.kernels = locus_kernels_pick(c->isa),
                          .threads = c->threads,
                          .second_cache = c->second_cache};
}

int linear_pool_new(linear_pool *pool, const linear_case *cases, size_t count)
{
    int64_t x = 1, dz = 1, weight = 1, to = 1;
    uint64_t packed = 1, workspace = 1, bytes;
    memset(pool, 0, sizeof *pool);
    for (size_t i = 0; i < count; i++) {
        const linear_case *c = &cases[i];
        x = larger(x, c->rows * c->inputs);
        dz = larger(dz, c->rows * c->outputs);
        weight = larger(weight, c->outputs * c->inputs);
        to = larger(to, output_floats(c));
        if (locus_packed_bytes(&bytes, c->inputs, c->outputs) && bytes > packed) packed = bytes;
        const locus_linear f = linear_of(c);
        bytes = locus_linear_workspace(&f);
        if (bytes > workspace) workspace = bytes;
    }
    pool->x = floats(x);
    pool->dz = floats(dz);
    pool->weight = floats(weight);
    pool->to = floats(to);
    pool->peer_to = floats(to);
    pool->packed = floats((int64_t)(packed / sizeof(float)));
    pool->workspace = floats((int64_t)(workspace / sizeof(float)));
    if (!pool->x || !pool->dz || !pool->weight || !pool->to || !pool->peer_to || !pool->packed ||
        !pool->workspace)
        return 0;
    fill(pool->x, x, 1);
    fill(pool->dz, dz, 2);
    fill(pool->weight, weight, 3);
    return 1;
}

void linear_pool_free(linear_pool *pool)
{
    float *const blocks[] = {pool->x,       pool->dz, pool->weight,   pool->packed,
                             pool->peer_to, pool->to, pool->workspace};
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) free(blocks[i]);
    memset(pool, 0, sizeof *pool);
}

size_t linear_second_cache(void) { return locus_cpu_caches().second; }

double linear_flops(const linear_case *c)
{
    return 2.0 * (double)c->rows * (double)c->inputs * (double)c->outputs;
}

size_t linear_bytes(const linear_case *c)
{
    uint64_t bytes = 0;
    if (c->pass == LINEAR_FORWARD) locus_packed_bytes(&bytes, c->inputs, c->outputs);
    const locus_linear f = linear_of(c);
    return (size_t)(bytes + locus_linear_workspace(&f));
}

/* ---- ours ---- */

static locus_tensor matrix(float *data, int64_t rows, int64_t columns)
{
    return locus_view(data, LOCUS_F32, 2, (const int64_t[]){rows, columns});
}

static locus_row_batch batch(float *data, int64_t rows, int64_t width)
{
    return (locus_row_batch){.data = data,
                             .batches = 1,
                             .rows = rows,
                             .batch_stride = rows * width,
                             .row_stride = width};
}

void linear_prepare(linear_pool *pool, const linear_case *c)
{
    const linear_case *p = &pool->packed_for;
    if (c->pass != LINEAR_FORWARD || (p->inputs == c->inputs && p->outputs == c->outputs &&
                                      p->isa != NULL && strcmp(p->isa, c->isa) == 0))
        return;
    const locus_tensor weight = matrix(pool->weight, c->outputs, c->inputs);
    (void)locus_pack_weight(locus_kernels_pick(c->isa), &weight, pool->packed, c->threads);
    pool->packed_for = *c;
}

void linear_run(linear_pool *pool, const linear_case *c)
{
    const locus_tensor weight = matrix(pool->weight, c->outputs, c->inputs);
    locus_linear f = linear_of(c);
    const locus_packed packed = {
        .kernels = f.kernels, .inputs = c->inputs, .outputs = c->outputs, .panels = pool->packed};
    f.weight = &weight;
    f.packed = c->pass == LINEAR_FORWARD ? &packed : NULL;
    f.workspace = pool->workspace;
    const locus_row_batch x = batch(pool->x, c->rows, c->inputs);
    const locus_row_batch dz = batch(pool->dz, c->rows, c->outputs);
    const locus_row_batch y = batch(pool->to, c->rows, c->outputs);
    const locus_row_batch dx = batch(pool->to, c->rows, c->inputs);
    const locus_tensor dw = matrix(pool->to, c->outputs, c->inputs);
    const locus_linear_grad grad = {.x = c->pass == LINEAR_INPUT_GRAD ? &dx : NULL,
                                    .weight = c->pass == LINEAR_WEIGHT_GRAD ? &dw : NULL};
    if (c->pass == LINEAR_FORWARD)
        locus_linear_forward(&f, &y, &x, NULL);
    else
        locus_linear_backward(&f, &dz, &x, &grad);
}

/* ---- sgemm ---- */

void linear_run_peer(linear_pool *pool, const linear_case *c, const blas *b)
{
    const int m = (int)c->rows, in = (int)c->inputs, out = (int)c->outputs;
    const float *x = pool->x, *dz = pool->dz, *w = pool->weight;
    float *to = pool->peer_to;
    if (c->pass == LINEAR_FORWARD)
        b->gemm(BLAS_ROWS, BLAS_AS_IS, BLAS_TURNED, m, out, in, 1, x, in, w, in, 0, to, out);
    else if (c->pass == LINEAR_INPUT_GRAD)
        b->gemm(BLAS_ROWS, BLAS_AS_IS, BLAS_AS_IS, m, in, out, 1, dz, out, w, in, 0, to, in);
    else
        b->gemm(BLAS_ROWS, BLAS_TURNED, BLAS_AS_IS, out, in, m, 1, dz, out, x, in, 0, to, in);
}

/* ---- the formulas, in double ---- */

static double dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t count)
{
    double sum = 0;
    for (int64_t j = 0; j < count; j++) sum += (double)a[j * a_step] * (double)b[j * b_step];
    return sum;
}

static double wanted(const linear_pool *pool, const linear_case *c, int64_t index)
{
    const int64_t in = c->inputs, out = c->outputs;
    if (c->pass == LINEAR_FORWARD)
        return dot(pool->x + index / out * in, 1, pool->weight + index % out * in, 1, in);
    if (c->pass == LINEAR_INPUT_GRAD)
        return dot(pool->dz + index / in * out, 1, pool->weight + index % in, in, out);
    return dot(pool->dz + index / in, out, pool->x + index % in, in, c->rows);
}

double linear_error(const linear_pool *pool, const linear_case *c, int peer)
{
    const float *to = peer ? pool->peer_to : pool->to;
    const int64_t count = output_floats(c);
    double worst = 0, largest = 1;
    for (int64_t i = 0; i < SAMPLES; i++) { /* the first, the last, and all over */
        const int64_t index = i * (count - 1) / (SAMPLES - 1);
        const double want = wanted(pool, c, index), error = fabs((double)to[index] - want);
        largest = fmax(largest, fabs(want));
        if (!(error <= worst)) worst = error; /* a NaN stays */
    }
    return worst / largest;
}
