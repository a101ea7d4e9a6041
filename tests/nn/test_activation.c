/* SPDX-License-Identifier: Apache-2.0 */

/* nn/activation against the formulas in double: every function, plain and gated, both passes. */

#include "nn/activation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/operand.h"
#include "support/check.h"

static const char *const names[] = {"identity", "relu", "gelu",   "gelu_tanh",
                                    "silu",     "tanh", "sigmoid"};
enum { ACTIVATIONS = sizeof names / sizeof *names, PAD = 3 };

/* ---- the formulas ---- */

static double value(double x, locus_activation a)
{
    switch (a) {
    case LOCUS_RELU: return x < 0.0 ? 0.0 : x;
    case LOCUS_GELU: return x == -INFINITY ? 0.0 : 0.5 * x * erfc(-x / sqrt(2.0));
    case LOCUS_GELU_TANH:
        return x == -INFINITY ? 0.0
                              : x / (1.0 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
    case LOCUS_SILU: return x == -INFINITY ? 0.0 : x / (1.0 + exp(-x));
    case LOCUS_TANH: return tanh(x);
    case LOCUS_SIGMOID: return 1.0 / (1.0 + exp(-x));
    case LOCUS_IDENTITY: break;
    }
    return x;
}

static double slope_of(double x, locus_activation a)
{
    const double s = 1.0 / (1.0 + exp(-x));
    if (a != LOCUS_RELU && isinf(x))
        return a == LOCUS_IDENTITY ? 1.0 : a == LOCUS_TANH || a == LOCUS_SIGMOID ? 0.0 : x > 0;
    switch (a) {
    case LOCUS_RELU: return isnan(x) ? x : x > 0.0;
    case LOCUS_GELU: return 0.5 * erfc(-x / sqrt(2.0)) + x * exp(-0.5 * x * x) * 0.3989422804014327;
    case LOCUS_GELU_TANH: {
        const double z = 1.5957691216057308 * (x + 0.044715 * x * x * x);
        const double dz = 1.5957691216057308 * (1.0 + 3.0 * 0.044715 * x * x);
        const double g = 1.0 / (1.0 + exp(-z)), h = 1.0 / (1.0 + exp(z));
        return g + (g * h == 0.0 ? 0.0 : x * dz * g * h);
    }
    case LOCUS_SILU: return s + x * s / (1.0 + exp(x));
    case LOCUS_TANH: return 1.0 - tanh(x) * tanh(x);
    case LOCUS_SIGMOID: return s / (1.0 + exp(x));
    case LOCUS_IDENTITY: break;
    }
    return 1.0;
}

/* As one writes them in float. */
static float plain_value(float x, locus_activation a)
{
    switch (a) {
    case LOCUS_RELU: return x < 0.0f ? 0.0f : x;
    case LOCUS_GELU: return 0.5f * x * (1.0f + erff(x * 0.707106781f));
    case LOCUS_GELU_TANH:
        return 0.5f * x * (1.0f + tanhf(0.797884561f * (x + 0.044715f * x * x * x)));
    case LOCUS_SILU: return x / (1.0f + expf(-x));
    case LOCUS_TANH: return tanhf(x);
    case LOCUS_SIGMOID: return 1.0f / (1.0f + expf(-x));
    case LOCUS_IDENTITY: break;
    }
    return x;
}

static float plain_slope(float x, locus_activation a)
{
    const float s = 1.0f / (1.0f + expf(-x));
    switch (a) {
    case LOCUS_RELU: return x > 0.0f ? 1.0f : 0.0f;
    case LOCUS_GELU:
        return 0.5f * (1.0f + erff(x * 0.707106781f)) + x * expf(-0.5f * x * x) * 0.39894228f;
    case LOCUS_GELU_TANH: {
        const float t = tanhf(0.797884561f * (x + 0.044715f * x * x * x));
        return 0.5f * (1.0f + t) +
               0.5f * x * (1.0f - t * t) * 0.797884561f * (1.0f + 0.134145f * x * x);
    }
    case LOCUS_SILU: return s * (1.0f + x * (1.0f - s));
    case LOCUS_TANH: return 1.0f - tanhf(x) * tanhf(x);
    case LOCUS_SIGMOID: return s * (1.0f - s);
    case LOCUS_IDENTITY: break;
    }
    return 1.0f;
}

/* ---- one call of each pass ---- */

typedef struct setup {
    operand x, gate, dy, y, dx, dgate;
} setup;

static setup new_setup(int64_t count, int64_t width, double reach)
{
    setup s;
    operand *const all[] = {&s.x, &s.gate, &s.dy, &s.y, &s.dx, &s.dgate};
    for (size_t i = 0; i < 6; i++) *all[i] = operand_new(count, width, PAD);
    operand_fill(&s.x, 1, -reach, reach);
    operand_fill(&s.gate, 2, -1.0, 1.0);
    operand_fill(&s.dy, 3, -1.0, 1.0);
    return s;
}

static void free_setup(setup *s)
{
    operand *const all[] = {&s->x, &s->gate, &s->dy, &s->y, &s->dx, &s->dgate};
    for (size_t i = 0; i < 6; i++) operand_free(all[i]);
}

static void run(setup *s, const locus_workers *workers, locus_activation a, int gated)
{
    const locus_rows *gate = gated ? &s->gate.rows : NULL, *dgate = gated ? &s->dgate.rows : NULL;
    locus_activation_forward(workers, a, &s->y.rows, &s->x.rows, gate, s->x.width);
    locus_activation_backward(workers, a, &s->dx.rows, dgate, &s->dy.rows, &s->x.rows, gate,
                              s->x.width);
}

static void check_formulas(const locus_kernels *kernels, locus_activation a, int gated,
                           int64_t count, int64_t width, double reach)
{
    setup s = new_setup(count, width, reach);
    double *want[3];
    float *plain[3];
    for (int k = 0; k < 3; k++)
        want[k] = new_doubles(count * width), plain[k] = new_floats(count * width);
    for (int64_t n = 0; n < count * width; n++) {
        const float x = operand_row(&s.x, n / width)[n % width];
        const float dy = operand_row(&s.dy, n / width)[n % width];
        const float gate = gated ? operand_row(&s.gate, n / width)[n % width] : 1.0f;
        want[0][n] = value((double)x, a) * (double)gate;
        want[1][n] = (double)dy * (double)gate * slope_of((double)x, a);
        want[2][n] = (double)dy * value((double)x, a);
        plain[0][n] = plain_value(x, a) * gate;
        plain[1][n] = dy * gate * plain_slope(x, a);
        plain[2][n] = dy * plain_value(x, a);
    }
    run(&s, &(locus_workers){kernels, 2}, a, gated);
    operand_expect("y", &s.y, want[0], plain[0], 2.0);
    operand_expect("dx", &s.dx, want[1], plain[1], 3.0);
    if (gated) operand_expect("dgate", &s.dgate, want[2], plain[2], 3.0);
    for (int k = 0; k < 3; k++) free(want[k]), free(plain[k]);
    free_setup(&s);
}

/* ---- cases ---- */

static void test_formulas(const locus_kernels *kernels)
{
    for (int a = 0; a < ACTIVATIONS; a++)
        for (int gated = 0; gated < 2; gated++)
            if (check_begin("activation/%s/%s%s", kernels->isa, names[a], gated ? "/gated" : "")) {
                for (int64_t width = 1; width <= 70; width++)
                    check_formulas(kernels, (locus_activation)a, gated, 3, width, 4.0);
                check_formulas(kernels, (locus_activation)a, gated, 40, 1000, 6.0);
                check_formulas(kernels, (locus_activation)a, gated, 40, 1000, 0.7);
                check_formulas(kernels, (locus_activation)a, gated, 1, 5000, 20.0);
            }
}

/* Units in the last place of `want` between them, where small values count as 2^-126. */
static double ulps(float got, double want)
{
    int exponent;
    (void)frexp(want, &exponent);
    if (exponent < -125) exponent = -125;
    return fabs((double)got - want) / ldexp(1.0, exponent - 24);
}

/* How exact each of them is by itself, from -5 to 5. Below 0 the values of gelu, silu and sigmoid are
 * exponentials and lose |exponent| / 2 ulp more; there the usual formulas cancel altogether. */
static void test_ulps(const locus_kernels *kernels)
{
    static const double bounds[ACTIVATIONS][2] = {/* below 0, above 0 */
                                                  {0.0, 0.0},  {0.0, 0.0}, {24.0, 5.0}, {48.0, 3.0},
                                                  {10.0, 3.0}, {3.0, 3.0}, {10.0, 3.0}};
    for (int a = 0; a < ACTIVATIONS; a++) {
        if (!check_begin("activation/%s/%s/ulps", kernels->isa, names[a])) continue;
        double worst[2] = {0.0, 0.0};
        enum { POINTS = 4096 };
        float x[POINTS], y[POINTS];
        for (int k = 0; k < 16; k++) {
            for (int n = 0; n < POINTS; n++)
                x[n] = (float)(-5.0 + 10.0 * (k * POINTS + n) / (16.0 * POINTS));
            kernels->activate_rows(y, x, NULL, (locus_activation)a, POINTS);
            for (int n = 0; n < POINTS; n++) {
                const double u = ulps(y[n], value((double)x[n], (locus_activation)a));
                if (u > worst[x[n] > 0.0f]) worst[x[n] > 0.0f] = u;
            }
        }
        for (int k = 0; k < 2; k++)
            CHECK(worst[k] <= bounds[a][k], "%.2f ulp %s 0, at most %.0f expected", worst[k],
                  k ? "above" : "below", bounds[a][k]);
    }
}

static int is_close(float got, double want)
{
    if (isnan(want) || isinf(want)) return isnan(want) ? isnan(got) : (double)got == want;
    return fabs((double)got - want) <= 1e-6 * (fabs(want) + 1.0);
}

static void test_special(const locus_kernels *kernels)
{
    static const float special[] = {0.0f,  -0.0f,  1e-38f, -1e-30f, 1e4f,   -1e4f, 1e10f, -1e10f,
                                    3e38f, -3e38f, 88.0f,  -88.0f,  -100.f, 12.0f, -14.f, 1.0f};
    enum { COUNT = sizeof special / sizeof *special };
    for (int a = 0; a < ACTIVATIONS; a++) {
        if (!check_begin("activation/%s/%s/special", kernels->isa, names[a])) continue;
        float x[COUNT + 3], y[COUNT + 3], dx[COUNT + 3], one[COUNT + 3];
        memcpy(x, special, sizeof special);
        x[COUNT] = INFINITY, x[COUNT + 1] = -INFINITY, x[COUNT + 2] = NAN;
        for (int n = 0; n < COUNT + 3; n++) one[n] = 1.0f;
        kernels->activate_rows(y, x, NULL, (locus_activation)a, COUNT + 3);
        kernels->activate_grad(dx, NULL, one, x, NULL, (locus_activation)a, COUNT + 3);
        for (int n = 0; n < COUNT + 3; n++) {
            const double want = value((double)x[n], (locus_activation)a);
            CHECK(is_close(y[n], want), "value of %g is %g, expected %g", (double)x[n],
                  (double)y[n], want);
            const int constant = a == LOCUS_IDENTITY;
            const double slope = constant ? 1.0 : slope_of((double)x[n], (locus_activation)a);
            CHECK(is_close(dx[n], slope), "slope at %g is %g, expected %g", (double)x[n],
                  (double)dx[n], slope);
        }
    }
}

static void test_bits(const locus_kernels *kernels)
{
    static const uint32_t threads[] = {2, 3, 7};
    if (!check_begin("activation/%s/bits", kernels->isa)) return;
    setup one = new_setup(60, 1000, 4.0), alone = new_setup(1, 1000, 4.0);
    run(&one, &(locus_workers){kernels, 1}, LOCUS_GELU, 1);
    for (size_t i = 0; i < 3; i++) {
        setup many = new_setup(60, 1000, 4.0);
        run(&many, &(locus_workers){kernels, threads[i]}, LOCUS_GELU, 1);
        CHECK(operand_same_bits(&one.y, &many.y) && operand_same_bits(&one.dx, &many.dx) &&
                  operand_same_bits(&one.dgate, &many.dgate),
              "%u threads give other bits", (unsigned)threads[i]);
        free_setup(&many);
    }
    memcpy(operand_row(&alone.x, 0), operand_row(&one.x, 41), 1000 * sizeof(float));
    memcpy(operand_row(&alone.gate, 0), operand_row(&one.gate, 41), 1000 * sizeof(float));
    run(&alone, &(locus_workers){kernels, 1}, LOCUS_GELU, 1);
    CHECK(memcmp(operand_row(&alone.y, 0), operand_row(&one.y, 41), 1000 * sizeof(float)) == 0,
          "a row depends on the others");
    free_setup(&one), free_setup(&alone);
}

static void test_table(const locus_kernels *kernels)
{
    test_formulas(kernels);
    test_ulps(kernels);
    test_special(kernels);
    test_bits(kernels);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for_each_table(test_table);
    return check_finish("nn/activation");
}
