/* SPDX-License-Identifier: Apache-2.0 */
/* Linear maps with bias, activation and residual. */

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/operands.h"

enum { LINEAR_ROOM = 1 << 18 };
static float lin_a[LINEAR_ROOM], lin_b[LINEAR_ROOM], packed[LINEAR_ROOM], sums[LINEAR_ROOM];
static float block_copy[2 * LOCUS_INNER_BLOCK * LOCUS_PANEL];

static double activated(double s, locus_activation activation)
{
    switch (activation) {
    case LOCUS_RELU: return s < 0.0 ? 0.0 : s;
    case LOCUS_GELU: return 0.5 * s * erfc(-s / sqrt(2.0));
    case LOCUS_GELU_TANH: return s / (1.0 + exp(-1.5957691216057308 * (s + 0.044715 * s * s * s)));
    case LOCUS_SILU: return s / (1.0 + exp(-s));
    case LOCUS_TANH: return tanh(s);
    case LOCUS_SIGMOID: return 1.0 / (1.0 + exp(-s));
    case LOCUS_IDENTITY: break;
    }
    return s;
}

/* Everything that `variant` can switch, and where it reads. */
static locus_linear_tile linear_case(const locus_kernels *k, int64_t rows, int64_t inner,
                                     int64_t columns, int variant)
{
    locus_linear_tile t = {.c = sums, .c_row = columns + 3, .rows = rows, .inner = inner};
    t.columns = columns;
    t.a = lin_a;
    t.a_row = variant & 1 ? 1 : inner + 2;
    t.a_column = variant & 1 ? rows + 3 : 1;
    t.first = variant & 2 ? 5 : 0;
    t.width = inner + t.first + 2;
    t.resume = (variant & 4) != 0;
    t.bias = variant & 8 ? before : NULL;
    t.residual = variant & 16 ? before + 1000 : NULL;
    t.residual_row = columns + 1;
    t.activation = (locus_activation)(variant % 5);
    t.b = lin_b;
    t.b_row = LOCUS_PANEL;
    if (variant & 32) {
        k->pack(packed, lin_b, t.width, columns, t.width, 1.0f);
        t.panels = packed;
    } else if (columns > LOCUS_PANEL || variant & 16) {
        t.b_row = columns + 1;
        t.copy = block_copy;
    }
    return t;
}

static double linear_want(const locus_linear_tile *t, int64_t i, int64_t c, double old,
                          double *size)
{
    double s = t->resume ? old : t->bias != NULL ? (double)t->bias[c] : 0.0;
    *size = fabs(s);
    for (int64_t j = 0; j < t->inner; j++) {
        const float a = t->a[i * t->a_row + j * t->a_column];
        const float b =
            t->panels != NULL ? lin_b[c * t->width + t->first + j] : t->b[j * t->b_row + c];
        s += (double)a * (double)b;
        *size += fabs((double)a * (double)b);
    }
    const double r = t->residual != NULL ? (double)t->residual[i * t->residual_row + c] : 0.0;
    *size += fabs(r);
    return activated(s, t->activation) + r;
}

static void check_linear(const locus_kernels *k, int64_t rows, int64_t inner, int64_t columns,
                         int variant)
{
    const locus_linear_tile t = linear_case(k, rows, inner, columns, variant);
    const size_t bytes = (size_t)((rows + 1) * t.c_row) * sizeof(float);
    memcpy(sums, lin_a, bytes);
    k->linear(&t);
    double worst = 0.0;
    int touched = 0;
    for (int64_t at = 0; at < (rows + 1) * t.c_row; at++) {
        const int64_t i = at / t.c_row, c = at % t.c_row;
        if (i >= rows || c >= columns) {
            touched |= memcmp(&sums[at], &lin_a[at], sizeof *sums) != 0;
            continue;
        }
        double size = 0.0;
        const double want = linear_want(&t, i, c, (double)lin_a[at], &size);
        worst = fmax(worst, fabs((double)sums[at] - want) / (size + 1e-30));
    }
    /* chains of a block, the blocks, and a few operations of the activation */
    const double steps = (double)(inner < LOCUS_INNER_BLOCK ? inner : LOCUS_INNER_BLOCK);
    CHECK(worst <= (steps + (double)inner / LOCUS_INNER_BLOCK + 8.0) * FLT_EPSILON,
          "%dx%dx%d variant %d: error %g", (int)rows, (int)inner, (int)columns, variant, worst);
    CHECK(!touched, "%dx%dx%d wrote outside", (int)rows, (int)inner, (int)columns);
}

static void test_linear(const locus_kernels *k)
{
    int variant = 0;
    fill(lin_a, LINEAR_ROOM, 21);
    fill(lin_b, LINEAR_ROOM, 22);
    if (check_begin("kernels/%s/linear/small", k->isa))
        for (int64_t rows = 0; rows <= 14; rows++)
            for (int64_t columns = 0; columns <= 140; columns += check_sample() ? 31 : 3)
                for (int64_t inner = 0; inner <= 36; inner += 5)
                    check_linear(k, rows, inner, columns, variant++ % 64);
    if (check_begin("kernels/%s/linear/blocks", k->isa))
        for (int64_t inner = LOCUS_INNER_BLOCK - 1; inner <= 2 * LOCUS_INNER_BLOCK + 200;
             inner += check_sample() ? 391 : 43)
            for (int n = 0; n < 64; n += check_sample() ? 11 : 1)
                check_linear(k, 1 + (inner + n) % 70, inner, 1 + (3 * inner + 7 * n) % 140, n);
}

/* An element does not depend on the rows and columns beside it. */
static void test_linear_chain(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/linear/chain", k->isa)) return;
    for (int activation = LOCUS_IDENTITY; activation <= LOCUS_SILU; activation++) {
        locus_linear_tile t = linear_case(k, 31, LOCUS_INNER_BLOCK + 100, 64, 32 + 16 + 8);
        t.activation = (locus_activation)activation;
        k->linear(&t);
        for (int64_t i = 0; i < 31; i++)
            for (int64_t c = 1; c <= 64; c += 9) {
                static float alone[LOCUS_PANEL];
                locus_linear_tile one = t;
                one.c = alone;
                one.a += i * t.a_row;
                one.residual += i * t.residual_row;
                one.rows = 1;
                one.columns = c;
                k->linear(&one);
                CHECK(memcmp(alone, sums + i * t.c_row, (size_t)c * sizeof *alone) == 0,
                      "row %d, %d columns, activation %d", (int)i, (int)c, activation);
            }
    }
}

static void test_activations(const locus_kernels *k)
{
    static const float special[] = {0.0f, INFINITY, -INFINITY, NAN, 1e30f, -1e30f, 1e-30f};
    if (!check_begin("kernels/%s/linear/activations", k->isa)) return;
    for (int activation = LOCUS_RELU; activation <= LOCUS_SILU; activation++)
        for (int n = 0; n < 4000; n++) {
            const float x = n < 7 ? special[n] : (float)(n - 2000) * 0.011f;
            float y = 1.0f;
            const locus_linear_tile t = {.c = &y,
                                         .c_row = 1,
                                         .b = lin_b,
                                         .rows = 1,
                                         .columns = 1,
                                         .bias = &x,
                                         .activation = (locus_activation)activation};
            k->linear(&t);
            const double want = x == -INFINITY ? 0.0 : activated((double)x, t.activation);
            const int right_kind =
                isnan(want)   ? isnan(y) != 0
                : isinf(want) ? (double)y == want
                              : fabs((double)y - want) <= 8.0 * FLT_EPSILON * fabs((double)x);
            CHECK(right_kind, "activation %d of %g: %g, expected %g", activation, (double)x,
                  (double)y, want);
        }
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_linear, test_linear_chain, test_activations, NULL};
    return test_kernels(argc, argv, "kernels/linear", tests);
}
