/* SPDX-License-Identifier: Apache-2.0 */

/* nn/softmax and nn/cross_entropy against the formulas in double. */

#include "nn/softmax.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/formulas.h"
#include "support/check.h"
#include "support/problem.h"

enum { PAD = 3 };

/* ---- softmax ---- */

static void check_softmax(const locus_kernels *kernels, int logarithm, int64_t count, int64_t width,
                          double reach)
{
    operand x = operand_new(count, width, PAD), dy = operand_new(count, width, PAD);
    operand y = operand_new(count, width, PAD), dx = operand_new(count, width, PAD);
    double *want[2] = {new_doubles(count * width), new_doubles(count * width)};
    float *plain[2] = {new_floats(count * width), new_floats(count * width)};
    const locus_workers workers = {kernels, 2};
    operand_fill(&x, 1, -reach, reach);
    operand_fill(&dy, 2, -1.0, 1.0);
    softmax_double(&x, &dy, logarithm, want[0], want[1]);
    softmax_float(&x, &dy, logarithm, plain[0], plain[1]);
    locus_softmax_forward(&workers, &y.rows, &x.rows, logarithm, width);
    locus_softmax_backward(&workers, &dx.rows, &dy.rows, &y.rows, logarithm, width);
    operand_expect("y", &y, want[0], plain[0], 2.0);
    operand_expect("dx", &dx, want[1], plain[1], 3.0);
    operand_free(&x), operand_free(&dy), operand_free(&y), operand_free(&dx);
    for (int k = 0; k < 2; k++) free(want[k]), free(plain[k]);
}

static void test_softmax(const locus_kernels *kernels)
{
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        if (!check_begin("softmax/%s%s", kernels->isa, logarithm ? "/log" : "")) continue;
        for (int64_t width = 1; width <= 70; width++)
            check_softmax(kernels, logarithm, 3, width, 4.0);
        check_softmax(kernels, logarithm, 9, 30522, 8.0);
        check_softmax(kernels, logarithm, 20, 700, 50.0);
    }
}

static void test_softmax_special(const locus_kernels *kernels)
{
    if (!check_begin("softmax/%s/special", kernels->isa)) return;
    const locus_workers workers = {kernels, 1};
    for (int logarithm = 0; logarithm < 2; logarithm++) {
        operand x = operand_new(5, 35, PAD), y = operand_new(5, 35, PAD);
        operand_fill(&x, 1, -1.0, 1.0);
        operand_row(&x, 1)[34] = NAN;
        operand_row(&x, 2)[3] = -INFINITY;
        operand_row(&x, 3)[3] = INFINITY;
        for (int64_t c = 0; c < 35; c++) operand_row(&x, 4)[c] = -INFINITY;
        locus_softmax_forward(&workers, &y.rows, &x.rows, logarithm, 35);
        int nan[5] = {0, 0, 0, 0, 0};
        for (int64_t i = 0; i < 5; i++)
            for (int64_t c = 0; c < 35; c++) nan[i] += isnan(operand_row(&y, i)[c]) != 0;
        CHECK(nan[0] == 0 && nan[1] == 35 && nan[2] == 0 && nan[4] == 35, "NaN %d %d %d %d", nan[0],
              nan[1], nan[2], nan[4]);
        CHECK(nan[3] > 0, "+inf is hidden");
        CHECK(operand_row(&y, 2)[3] == (logarithm ? -INFINITY : 0.0f), "-inf gives %g",
              (double)operand_row(&y, 2)[3]);
        locus_softmax_forward(&workers, &x.rows, &x.rows, logarithm, 35);
        CHECK(memcmp(operand_row(&x, 0), operand_row(&y, 0), 35 * sizeof(float)) == 0,
              "in place is not the same");
        operand_free(&x), operand_free(&y);
    }
}

/* ---- cross entropy ---- */

static void check_entropy(const locus_kernels *kernels, int64_t count, int64_t width, int weighted,
                          double reach)
{
    operand x = operand_new(count, width, PAD), dx = operand_new(count, width, PAD);
    float *loss = new_floats(count), *weights = new_floats(width), *plain_loss = new_floats(count);
    double *want_loss = new_doubles(count), *want = new_doubles(count * width);
    float *plain = new_floats(count * width);
    int32_t *target = malloc(((size_t)count + 1) * sizeof *target);
    if (target == NULL) exit(2);
    operand_fill(&x, 1, -reach, reach);
    for (int64_t c = 0; c < width; c++) weights[c] = (float)test_uniform(2, (uint64_t)c);
    for (int64_t i = 0; i < count; i++)
        target[i] = i % 5 == 3 ? -100 : (int32_t)(test_uniform(3, (uint64_t)i) * (double)width);
    const locus_cross_entropy e = {.target = target,
                                   .weight = weighted ? weights : NULL,
                                   .width = width};
    const locus_workers workers = {kernels, 2};
    double total = -1.0, weight = -1.0, want_total = 0.0, want_weight = 0.0;
    cross_entropy_double(&e, &x, 0.125, want_loss, want);
    cross_entropy_float(&e, &x, 0.125f, plain_loss, plain);
    for (int64_t i = 0; i < count; i++) {
        want_total += want_loss[i];
        if (target[i] >= 0) want_weight += weighted ? (double)weights[target[i]] : 1.0;
    }
    locus_cross_entropy_forward(&workers, &e, &x.rows, loss, &total, &weight);
    locus_cross_entropy_backward(&workers, &e, &dx.rows, &x.rows, 0.125f);
    floats_expect("loss", loss, want_loss, plain_loss, count, 2.0);
    CHECK(fabs(total - want_total) <= 1e-6 * (want_total + 1.0), "total %.9g, expected %.9g", total,
          want_total);
    CHECK(weight == want_weight, "weight %.9g, expected %.9g", weight, want_weight);
    operand_expect("dx", &dx, want, plain, 3.0);
    operand_free(&x), operand_free(&dx);
    free(loss), free(weights), free(plain_loss), free(want_loss), free(want), free(plain);
    free(target);
}

static void test_entropy(const locus_kernels *kernels)
{
    for (int weighted = 0; weighted < 2; weighted++) {
        if (!check_begin("cross-entropy/%s%s", kernels->isa, weighted ? "/weights" : "")) continue;
        for (int64_t width = 1; width <= 70; width++)
            check_entropy(kernels, 7, width, weighted, 3.0);
        check_entropy(kernels, 12, 30522, weighted, 6.0);
        check_entropy(kernels, 300, 40, weighted, 30.0);
        check_entropy(kernels, 0, 40, weighted, 1.0);
    }
}

/* ---- bits ---- */

static void test_bits(const locus_kernels *kernels)
{
    if (!check_begin("softmax/%s/bits", kernels->isa)) return;
    enum { COUNT = 100, WIDTH = 1003 };
    operand x = operand_new(COUNT, WIDTH, PAD), alone = operand_new(1, WIDTH, PAD);
    operand y[4], dx[4];
    static const uint32_t threads[4] = {1, 2, 3, 7};
    operand_fill(&x, 1, -5.0, 5.0);
    for (int k = 0; k < 4; k++) {
        const locus_workers workers = {kernels, threads[k]};
        y[k] = operand_new(COUNT, WIDTH, PAD), dx[k] = operand_new(COUNT, WIDTH, PAD);
        locus_softmax_forward(&workers, &y[k].rows, &x.rows, 1, WIDTH);
        locus_softmax_backward(&workers, &dx[k].rows, &x.rows, &y[k].rows, 1, WIDTH);
        CHECK(operand_same_bits(&y[0], &y[k]) && operand_same_bits(&dx[0], &dx[k]),
              "%u threads give other bits", (unsigned)threads[k]);
    }
    memcpy(operand_row(&alone, 0), operand_row(&x, 66), WIDTH * sizeof(float));
    locus_softmax_forward(&(locus_workers){kernels, 1}, &alone.rows, &alone.rows, 1, WIDTH);
    CHECK(memcmp(operand_row(&alone, 0), operand_row(&y[0], 66), WIDTH * sizeof(float)) == 0,
          "a row depends on the others");
    for (int k = 0; k < 4; k++) operand_free(&y[k]), operand_free(&dx[k]);
    operand_free(&x), operand_free(&alone);
}

static void test_table(const locus_kernels *kernels)
{
    test_softmax(kernels);
    test_softmax_special(kernels);
    test_entropy(kernels);
    test_bits(kernels);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for_each_table(test_table);
    return check_finish("nn/softmax");
}
