/* SPDX-License-Identifier: Apache-2.0 */

/* nn/embedding, nn/pooling and nn/top against the formulas. */

#include "nn/embedding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/operand.h"
#include "nn/pooling.h"
#include "nn/top.h"
#include "support/check.h"
#include "support/problem.h"

enum { PAD = 3, TABLE = 50 };

/* ---- embedding ---- */

static void check_embedding(const locus_kernels *kernels, int64_t count, int64_t width)
{
    operand tables[3], y = operand_new(count, width, PAD), grad = operand_new(TABLE, width, PAD);
    int32_t *id[2];
    double *want = new_doubles(count * width), *want_grad = new_doubles(TABLE * width);
    float *plain = new_floats(count * width), *plain_grad = new_floats(TABLE * width);
    for (int k = 0; k < 3; k++) {
        tables[k] = operand_new(TABLE, width, PAD);
        operand_fill(&tables[k], (uint64_t)k, -1.0, 1.0);
    }
    for (int k = 0; k < 2; k++) {
        id[k] = malloc(((size_t)count + 1) * sizeof **id);
        if (id[k] == NULL) exit(2);
        for (int64_t i = 0; i < count; i++)
            id[k][i] =
                k == 0 ? (int32_t)(test_uniform(9, (uint64_t)i) * TABLE) : (int32_t)i % TABLE;
    }
    const locus_embedding terms[3] = {
        {tables[0].rows.data, tables[0].rows.stride, id[0], 0, 2.5f, NULL},
        {tables[1].rows.data, tables[1].rows.stride, NULL, 1, 1.0f, NULL},
        {tables[2].rows.data, tables[2].rows.stride, id[1], 0, 1.0f, NULL}};
    const locus_workers workers = {kernels, 2};
    operand_fill(&grad, 5, -1.0, 1.0);
    for (int64_t n = 0; n < TABLE * width; n++)
        want_grad[n] = (double)(plain_grad[n] = operand_row(&grad, n / width)[n % width]);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < width; c++) {
            const float a = operand_row(&tables[0], id[0][i])[c];
            const float b = operand_row(&tables[1], 1)[c], d = operand_row(&tables[2], id[1][i])[c];
            want[i * width + c] = 2.5 * (double)a + (double)b + (double)d;
            plain[i * width + c] = 2.5f * a + b + d;
        }
    locus_embedding_forward(&workers, &y.rows, terms, 3, width);
    operand_expect("y", &y, want, plain, 2.0);
    for (int64_t i = 0; i < count; i++)
        for (int64_t c = 0; c < width; c++) {
            want_grad[id[0][i] * width + c] += 2.5 * (double)operand_row(&y, i)[c];
            plain_grad[id[0][i] * width + c] += 2.5f * operand_row(&y, i)[c];
        }
    locus_embedding term = terms[0];
    term.stride = grad.rows.stride;
    locus_embedding_backward(&workers, grad.rows.data, &term, &y.rows, width);
    operand_expect("dtable", &grad, want_grad, plain_grad, 3.0);
    for (int k = 0; k < 3; k++) operand_free(&tables[k]);
    operand_free(&y), operand_free(&grad);
    free(id[0]), free(id[1]), free(want), free(want_grad), free(plain), free(plain_grad);
}

static void test_embedding(const locus_kernels *kernels)
{
    if (!check_begin("embedding/%s", kernels->isa)) return;
    for (int64_t width = 1; width <= 70; width++) check_embedding(kernels, 5, width);
    check_embedding(kernels, 700, 130);
    check_embedding(kernels, 0, 16);
}

/* Many rows go to one entry: the same order with any number of threads. */
static void test_embedding_bits(const locus_kernels *kernels)
{
    static const uint32_t threads[4] = {1, 2, 3, 7};
    if (!check_begin("embedding/%s/bits", kernels->isa)) return;
    operand dy = operand_new(999, 200, 0), grad[4];
    int32_t id[999];
    operand_fill(&dy, 1, -1.0, 1.0);
    for (int i = 0; i < 999; i++) id[i] = i % 3;
    for (int k = 0; k < 4; k++) {
        grad[k] = operand_new(3, 200, 0);
        operand_fill(&grad[k], 2, 0.0, 0.0);
        const locus_embedding term = {NULL, 200, id, 0, 1.0f, NULL};
        locus_embedding_backward(&(locus_workers){kernels, threads[k]}, grad[k].rows.data, &term,
                                 &dy.rows, 200);
        CHECK(operand_same_bits(&grad[0], &grad[k]), "%u threads give other bits",
              (unsigned)threads[k]);
    }
    for (int k = 0; k < 4; k++) operand_free(&grad[k]);
    operand_free(&dy);
}

/* ---- pooling ---- */

static const int64_t offsets[] = {0, 3, 3, 4, 700, 705};
static const locus_ragged tokens = {offsets, 5};

/* Of token i in a sum over sequence s; 0: the pooling is no sum. */
static double weight_of(locus_pooling pooling, int64_t s, int64_t i)
{
    const double n = (double)(offsets[s + 1] - offsets[s]);
    switch (pooling) {
    case LOCUS_POOL_MEAN: return 1.0 / n;
    case LOCUS_POOL_ROOT: return 1.0 / sqrt(n);
    case LOCUS_POOL_RISING: return 2.0 * (double)(i - offsets[s] + 1) / (n * (n + 1.0));
    default: return 0.0;
    }
}

static double pooled(const operand *x, int64_t s, int64_t c, locus_pooling pooling, int64_t *row)
{
    double sum = 0.0, best = -INFINITY;
    *row = offsets[s];
    for (int64_t i = offsets[s]; i < offsets[s + 1]; i++) {
        const double a = (double)operand_row(x, i)[c];
        sum += weight_of(pooling, s, i) * a;
        if (pooling == LOCUS_POOL_MAX && a > best) best = a, *row = i;
    }
    if (offsets[s] == offsets[s + 1]) return 0.0;
    if (weight_of(pooling, s, offsets[s]) > 0.0) return sum;
    if (pooling == LOCUS_POOL_LAST) *row = offsets[s + 1] - 1;
    return pooling == LOCUS_POOL_MAX ? best : (double)operand_row(x, *row)[c];
}

static void check_pooling(const locus_kernels *kernels, locus_pooling pooling, int64_t width)
{
    operand x = operand_new(705, width, PAD), dx = operand_new(705, width, PAD);
    operand y = operand_new(5, width, PAD), dy = operand_new(5, width, PAD);
    double *want = new_doubles(5 * width), *want_grad = new_doubles(705 * width);
    float *plain = new_floats(5 * width), *plain_grad = new_floats(705 * width);
    const locus_workers workers = {kernels, 3};
    operand_fill(&x, 1, -1.0, 1.0);
    operand_fill(&dy, 2, -1.0, 1.0);
    for (int64_t s = 0; s < 5; s++)
        for (int64_t c = 0; c < width; c++) {
            int64_t row;
            const double back = (double)operand_row(&dy, s)[c];
            plain[s * width + c] = (float)(want[s * width + c] = pooled(&x, s, c, pooling, &row));
            for (int64_t i = offsets[s]; i < offsets[s + 1]; i++)
                want_grad[i * width + c] = weight_of(pooling, s, i) > 0.0
                                               ? weight_of(pooling, s, i) * back
                                           : i == row ? back
                                                      : 0.0;
        }
    for (int64_t n = 0; n < 705 * width; n++) plain_grad[n] = (float)want_grad[n];
    locus_pooling_forward(&workers, pooling, &y.rows, &x.rows, &tokens, width);
    locus_pooling_backward(&workers, pooling, &dx.rows, &dy.rows, &x.rows, &tokens, width);
    /* a sum over sqrt(n) keeps more of the rounding of its n rows than one over n */
    operand_expect("y", &y, want, plain, pooling == LOCUS_POOL_ROOT ? 16.0 : 2.0);
    operand_expect("dx", &dx, want_grad, plain_grad, 1.0);
    operand_free(&x), operand_free(&dx), operand_free(&y), operand_free(&dy);
    free(want), free(want_grad), free(plain), free(plain_grad);
}

static void test_pooling(const locus_kernels *kernels)
{
    static const char *const names[] = {"first", "mean", "max", "last", "root", "rising"};
    for (int p = 0; p < 6; p++) {
        if (!check_begin("pooling/%s/%s", kernels->isa, names[p])) continue;
        for (int64_t width = 1; width <= 70; width += 3)
            check_pooling(kernels, (locus_pooling)p, width);
        operand x = operand_new(705, 9, 0), y = operand_new(5, 9, 0);
        operand_fill(&x, 1, -1.0, 1.0);
        operand_row(&x, 0)[4] = operand_row(&x, 2)[4] = NAN;
        operand_row(&x, 4)[5] = operand_row(&x, 699)[5] = NAN;
        locus_pooling_forward(&(locus_workers){kernels, 1}, (locus_pooling)p, &y.rows, &x.rows,
                              &tokens, 9);
        int nan = 0;
        for (size_t i = 0; i < 45; i++) nan += isnan(y.rows.data[i]) != 0;
        CHECK(nan == 2 && isnan(operand_row(&y, 0)[4]) && isnan(operand_row(&y, 3)[5]),
              "%d NaN, expected 2", nan);
        operand_free(&x), operand_free(&y);
    }
}

static void check_unit(const locus_kernels *kernels, int64_t width)
{
    operand x = operand_new(6, width, PAD), dy = operand_new(6, width, PAD);
    operand y = operand_new(6, width, PAD), dx = operand_new(6, width, PAD);
    double *want = new_doubles(6 * width), *want_grad = new_doubles(6 * width);
    float *plain = new_floats(6 * width), *plain_grad = new_floats(6 * width);
    operand_fill(&x, 1, -1.0, 1.0);
    operand_fill(&dy, 2, -1.0, 1.0);
    for (int64_t c = 0; c < width; c++) operand_row(&x, 5)[c] = 0.0f;
    for (int64_t i = 0; i < 6; i++) {
        double square = 0.0, dot = 0.0;
        for (int64_t c = 0; c < width; c++) {
            const double a = (double)operand_row(&x, i)[c];
            square += a * a;
            dot += a * (double)operand_row(&dy, i)[c];
        }
        const double length = sqrt(square) > 1e-12 ? sqrt(square) : 1e-12;
        for (int64_t c = 0; c < width; c++) {
            const double a = (double)operand_row(&x, i)[c], b = (double)operand_row(&dy, i)[c];
            want[i * width + c] = a / length;
            want_grad[i * width + c] = (b - a * dot / (length * length)) / length;
        }
    }
    for (int64_t n = 0; n < 6 * width; n++)
        plain[n] = (float)want[n], plain_grad[n] = (float)want_grad[n];
    const locus_workers workers = {kernels, 2};
    locus_unit_forward(&workers, &y.rows, &x.rows, width);
    locus_unit_backward(&workers, &dx.rows, &dy.rows, &x.rows, width);
    operand_expect("y", &y, want, plain, 1.0);
    operand_expect("dx", &dx, want_grad, plain_grad, 1.0);
    operand_free(&x), operand_free(&dy), operand_free(&y), operand_free(&dx);
    free(want), free(want_grad), free(plain), free(plain_grad);
}

static void test_unit(const locus_kernels *kernels)
{
    if (!check_begin("unit/%s", kernels->isa)) return;
    for (int64_t width = 1; width <= 70; width++) check_unit(kernels, width);
    check_unit(kernels, 1000);
}

/* ---- the greatest ---- */

static const float *sorted_row;
static int by_rank(const void *a, const void *b)
{
    const int64_t i = *(const int64_t *)a, k = *(const int64_t *)b;
    const float x = sorted_row[i], y = sorted_row[k];
    if (isnan(x) != isnan(y)) return isnan(x) ? -1 : 1;
    if (!isnan(x) && x != y) return x > y ? -1 : 1;
    return i < k ? -1 : 1;
}

static void check_top(int64_t width, int64_t count, int levels, int special)
{
    int64_t *order = malloc(((size_t)width + 1) * sizeof *order);
    int64_t *places = malloc(((size_t)count + 1) * sizeof *places);
    float *x = new_floats(width);
    if (order == NULL || places == NULL) exit(2);
    for (int64_t c = 0; c < width; c++) {
        x[c] = (float)floor(test_uniform(1, (uint64_t)c) * levels);
        order[c] = c;
    }
    if (special && width > 3) x[1] = -INFINITY, x[2] = NAN, x[width - 1] = NAN, x[0] = INFINITY;
    sorted_row = x;
    qsort(order, (size_t)width, sizeof *order, by_rank);
    const int64_t found = locus_top(places, count, x, width);
    CHECK(found == (count < width ? count : width), "%d found", (int)found);
    CHECK(memcmp(places, order, (size_t)found * sizeof *order) == 0, "wrong places");
    CHECK(width == 0 || locus_argmax(x, width) == order[0], "wrong argmax");
    free(order), free(places), free(x);
}

static void test_top(void)
{
    if (!check_begin("top")) return;
    for (int64_t width = 0; width <= 70; width++)
        for (int64_t count = 0; count <= 12; count++)
            check_top(width, count, count % 2 ? 4 : 1000000, count % 3 == 2);
    check_top(30522, 50, 1000000, 0);
    check_top(3000, 3000, 20, 1);
}

static void test_table(const locus_kernels *kernels)
{
    test_embedding(kernels);
    test_embedding_bits(kernels);
    test_pooling(kernels);
    test_unit(kernels);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for_each_table(test_table);
    test_top();
    return check_finish("nn/embedding");
}
