/* SPDX-License-Identifier: Apache-2.0 */
/* Bits that may not change with the instruction set, where it has fused multiply-add: attention in
 * every variant, forward and backward, linear maps, and the operators of rows. */

#include <locus/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "contract/variants.h"
#include "core/cpu.h"
#include "nn/linear.h"
#include "support/check.h"

enum { MOST_TABLES = 8 };
static const locus_kernels *fused[MOST_TABLES];
static size_t fused_count;

static void find_tables(void)
{
    const locus_kernels *table;
    for (uint32_t i = 0; (table = locus_kernels_at(i)) != NULL; i++)
        if (strcmp(table->isa, "generic") != 0 && locus_isa_available(table->isa))
            fused[fused_count++] = table;
}

/* Begin a case that compares tables; 0: not this one, or there are none to compare. */
static int begin_compare(const char *what, const char *name, int a, int b)
{
    if (!check_begin("isas/%s/%s-%dx%d", what, name, a, b)) return 0;
    if (fused_count >= 2) return 1;
    check_skip("fewer than two instruction sets with fused multiply-add here");
    return 0;
}

/* ---- attention ---- */

static int same_bits(const locus_tensor *a, const locus_tensor *b)
{
    const size_t bytes = (size_t)locus_tensor_elements(a) * sizeof(float);
    return bytes == 0 || memcmp(a->data, b->data, bytes) == 0;
}

static test_problem *run_on(const test_variant *v, test_spec shape, const char *isa)
{
    locus_error error = {{0}};
    test_problem *p = test_variant_problem(v, shape);
    if (p == NULL) return NULL;
    p->config.isa = isa;
    CHECK(test_problem_run(p, TEST_FLOAT, 1, &error) == LOCUS_OK, "%s", error.text);
    return p;
}

static void test_attention(const test_variant *v, test_spec shape)
{
    if (!begin_compare("attention", v->name, (int)shape.Tq, (int)shape.Tk)) return;
    test_problem *first = run_on(v, shape, fused[0]->isa);
    for (size_t t = 1; first != NULL && t < fused_count; t++) {
        const char *isa = fused[t]->isa;
        test_problem *other = run_on(v, shape, isa);
        CHECK(same_bits(&first->results[1].out, &other->results[1].out), "%s: out differs", isa);
        CHECK(same_bits(&first->results[1].lse, &other->results[1].lse), "%s: lse differs", isa);
        for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
            CHECK(same_bits(locus_tensor_at_const(&first->grad[1], i),
                            locus_tensor_at_const(&other->grad[1], i)),
                  "%s: grad.%s differs", isa, locus_tensor_name(i));
        test_problem_free(other);
    }
    test_problem_free(first);
}

/* ---- numbers for the rest ---- */

static uint64_t random_state = 7;

/* Exponents and signs vary, so that sums in another order show. */
static float next_number(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    const double u = (double)(random_state >> 40) / 16777216.0 - 0.5;
    return (float)(u * exp2((double)(random_state >> 35 & 7)));
}

static float *new_numbers(int64_t count)
{
    float *x = malloc((size_t)(count + 2 * LOCUS_LANES) * sizeof *x);
    if (x == NULL) exit(2);
    for (int64_t i = 0; i < count + 2 * LOCUS_LANES; i++) x[i] = next_number();
    return x;
}

static void expect_same(const float *a, const float *b, int64_t count, const char *isa,
                        const char *what)
{
    int64_t differ = 0;
    for (int64_t i = 0; i < count; i++) differ += memcmp(a + i, b + i, sizeof *a) != 0;
    CHECK(differ == 0, "%s: %d of %d numbers of %s differ", isa, (int)differ, (int)count, what);
}

/* ---- linear maps ---- */

static locus_row_batch rows_of(float *data, int64_t rows, int64_t width)
{
    return (locus_row_batch){data, 1, rows, rows * width, width};
}

typedef struct linear_sizes {
    int64_t rows, inputs, outputs;
} linear_sizes;

/* y, dx and dW of one map into `to`, one behind the other. */
static void run_linear(float *to, const locus_kernels *kernels, linear_sizes n, float *numbers)
{
    float *x = numbers, *dz = x + n.rows * n.inputs, *w = dz + n.rows * n.outputs;
    const locus_tensor weight = {.data = w,
                                 .dtype = LOCUS_F32,
                                 .rank = 2,
                                 .shape = {n.outputs, n.inputs},
                                 .stride = {n.inputs, 1}};
    locus_tensor dweight = weight;
    float *y = to, *dx = y + n.rows * n.outputs;
    dweight.data = dx + n.rows * n.inputs;
    locus_linear f = {.kernels = kernels, .threads = 1, .weight = &weight};
    f.workspace = malloc((size_t)locus_linear_workspace(&f));
    if (f.workspace == NULL) exit(2);
    const locus_row_batch xs = rows_of(x, n.rows, n.inputs), dzs = rows_of(dz, n.rows, n.outputs);
    const locus_row_batch ys = rows_of(y, n.rows, n.outputs), dxs = rows_of(dx, n.rows, n.inputs);
    const locus_linear_end end = {.activation = LOCUS_GELU, .residual = &dzs};
    const locus_linear_grad grad = {.x = &dxs, .weight = &dweight};
    locus_linear_forward(&f, &ys, &xs, &end);
    locus_linear_backward(&f, &dzs, &xs, &grad);
    free(f.workspace);
}

static void test_linear(linear_sizes n)
{
    if (!begin_compare("linear", n.rows > 8 ? "many" : "few", (int)n.inputs, (int)n.outputs))
        return;
    const int64_t count = n.rows * n.inputs + n.rows * n.outputs + n.outputs * n.inputs;
    float *numbers = new_numbers(count), *first = new_numbers(count);
    run_linear(first, fused[0], n, numbers);
    for (size_t t = 1; t < fused_count; t++) {
        float *other = new_numbers(count);
        run_linear(other, fused[t], n, numbers);
        expect_same(first, other, count, fused[t]->isa, "y, dx and dW");
        free(other);
    }
    free(numbers);
    free(first);
}

/* ---- operators of rows ---- */

enum { ROWS = 3, RESULTS = 12 };

/* Everything that sums or turns one row of `width` numbers, into RESULTS rows. */
static void run_rows(float *to, const locus_kernels *k, int64_t width, const float *x)
{
    const float *dy = x + ROWS * width, *gain = dy + ROWS * width;
    const locus_norm_rule rule = {1, 0, 1e-5f, gain, gain, width};
    const locus_norm_rule root = {0, 1, 1e-5f, gain, NULL, width};
    float statistics[ROWS][2], top, sum;
    double moments[2] = {0.0, 0.0};
    for (int64_t i = 0; i < RESULTS * width; i++) to[i] = 0.0f;
    k->norm_rows(&rule, to, width, x, width, 1);
    k->norm_rows(&root, to + width, width, x, width, 1);
    k->norm_grad(&rule, to + 2 * width, width, 0, statistics, dy, width, x, width, 1);
    k->norm_grad(&root, to + 3 * width, width, 0, statistics, dy, width, x, width, ROWS - 2);
    k->norm_parameter_grad(to + 4 * width, to + 5 * width, dy, width, x, width, statistics, 1,
                           width);
    k->exp_sum(&top, &sum, x, width);
    k->exp_row(to + 6 * width, x, top, 1.0f / sum, width);
    k->softmax_row_grad(to + 7 * width, dy, to + 6 * width, 0, width);
    k->shift_row(to + 8 * width, x, top, logf(sum), width);
    k->softmax_row_grad(to + 9 * width, dy, to + 8 * width, 1, width);
    k->moments(moments, x, dy, width);
    to[10 * width] = (float)moments[0];
    k->dots(to + 11 * width, width, x, width, dy, 0, LOCUS_F32, 1, width, width < 3 ? width : 3,
            NULL, 0, (locus_prefetch_rows){0});
}

static void test_rows(int64_t width)
{
    if (!begin_compare("rows", "width", (int)width, ROWS)) return;
    float *x = new_numbers((2 * ROWS + 1) * width), *first = new_numbers(RESULTS * width);
    run_rows(first, fused[0], width, x);
    for (size_t t = 1; t < fused_count; t++) {
        float *other = new_numbers(RESULTS * width);
        run_rows(other, fused[t], width, x);
        for (int64_t r = 0; r < RESULTS; r++) {
            char what[32];
            snprintf(what, sizeof what, "result %d", (int)r);
            expect_same(first + r * width, other + r * width, width, fused[t]->isa, what);
        }
        free(other);
    }
    free(x);
    free(first);
}

/* Between the ends of their domains, exponentials that leave the normal range among them. */
static void test_activations(locus_activation activation)
{
    enum { COUNT = 4001 };
    if (!begin_compare("activation", "number", (int)activation, COUNT)) return;
    float *x = new_numbers(COUNT), *dy = new_numbers(COUNT), *got[MOST_TABLES];
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i - COUNT / 2) / 17.0f;
    for (size_t t = 0; t < fused_count; t++) {
        got[t] = new_numbers(3 * COUNT);
        fused[t]->activate_rows(got[t], x, NULL, activation, COUNT);
        fused[t]->activate_grad(got[t] + COUNT, NULL, dy, x, NULL, activation, COUNT);
        fused[t]->exp_row(got[t] + 2 * COUNT, x, x[COUNT - 1], 1.0f, COUNT);
        expect_same(got[0], got[t], 3 * COUNT, fused[t]->isa, "y, dx and e^x");
    }
    for (size_t t = 0; t < fused_count; t++) free(got[t]);
    free(x);
    free(dy);
}

int main(int argc, char **argv)
{
    static const test_spec shapes[] = {
        {.B = 2, .H = 2, .Tq = 70, .Tk = 70, .D = 10},
        {.B = 1, .H = 2, .Hk = 1, .Tq = 333, .Tk = 333, .D = 64},
        {.B = 1, .H = 2, .Tq = 3, .Tk = 700, .D = 64},
        {.B = 1, .H = 1, .Tq = 8, .Tk = 130, .D = 40},
        {.B = 1, .H = 1, .Tq = 100, .Tk = 1100, .D = 24},
    };
    static const linear_sizes sizes[] = {{40, 600, 70},  {3, 1025, 129}, {1, 257, 64},
                                         {13, 255, 200}, {600, 30, 33},  {2, 511, 520}};
    static const int64_t widths[] = {1, 2, 7, 15, 16, 17, 31, 40, 63, 64, 65, 100, 384, 771, 1000};
    if (!check_args(argc, argv)) return 2;
    find_tables();
    for (size_t v = 0; v < TEST_VARIANTS; v++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            if (!check_sample() || (v + s) % 5 == 0) test_attention(&test_variants[v], shapes[s]);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) test_linear(sizes[i]);
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) test_rows(widths[i]);
    for (int a = LOCUS_IDENTITY; a <= LOCUS_SIGMOID; a++) test_activations((locus_activation)a);
    return check_finish("contract/isas");
}
