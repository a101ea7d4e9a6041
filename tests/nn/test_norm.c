/* SPDX-License-Identifier: Apache-2.0 */

/* nn/norm against the formulas in double: LayerNorm and RMSNorm, both places of epsilon. */

#include "nn/norm.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "nn/formulas.h"
#include "support/check.h"

enum { PAD = 3 };

typedef struct setup {
    operand x, dy, y, dx;
    float *gain, *shift, *dgain, *dshift;
    void *workspace;
    locus_norm_rule rule;
} setup;

static setup new_setup(locus_norm_rule rule, int64_t count, int affine, double middle)
{
    setup s = {.rule = rule};
    operand *const all[] = {&s.x, &s.dy, &s.y, &s.dx};
    float **const vectors[] = {&s.gain, &s.shift, &s.dgain, &s.dshift};
    for (size_t i = 0; i < 4; i++) {
        *all[i] = operand_new(count, rule.width, PAD);
        *vectors[i] = new_floats(rule.width);
    }
    operand_fill(&s.x, 1, middle - 2.0, middle + 2.0);
    operand_fill(&s.dy, 2, -1.0, 1.0);
    operand_fill(&s.dx, 3, -1.0, 1.0);
    operand parameters = operand_new(4, rule.width, 0);
    operand_fill(&parameters, 4, 0.5, 1.5);
    for (int64_t i = 0; i < 4; i++)
        memcpy(*vectors[i], operand_row(&parameters, i), (size_t)rule.width * sizeof(float));
    operand_free(&parameters);
    s.workspace = malloc((size_t)locus_norm_workspace(count) + 64);
    if (s.workspace == NULL) exit(2);
    memset(s.workspace, 0x7F, (size_t)locus_norm_workspace(count) + 64);
    s.rule.gain = affine ? s.gain : NULL;
    s.rule.shift = affine ? s.shift : NULL;
    return s;
}

static void free_setup(setup *s)
{
    operand *const all[] = {&s->x, &s->dy, &s->y, &s->dx};
    for (size_t i = 0; i < 4; i++) operand_free(all[i]);
    free(s->gain), free(s->shift), free(s->dgain), free(s->dshift), free(s->workspace);
}

static void run(setup *s, const locus_workers *workers, int add)
{
    const locus_norm_grad grad = {.x = &s->dx.rows,
                                  .gain = s->dgain,
                                  .shift = s->dshift,
                                  .add_x = add,
                                  .add_parameters = add};
    locus_norm_forward(workers, &s->rule, &s->y.rows, &s->x.rows);
    locus_norm_backward(workers, &s->rule, &grad, &s->dy.rows, &s->x.rows, s->workspace);
}

static void check_formulas(const locus_kernels *kernels, locus_norm_rule rule, int64_t count,
                           int affine, int add, double middle)
{
    setup s = new_setup(rule, count, affine, middle);
    const int64_t sizes[4] = {count * rule.width, count * rule.width, rule.width, rule.width};
    double *want[4];
    float *plain[4];
    for (int k = 0; k < 4; k++) want[k] = new_doubles(sizes[k]), plain[k] = new_floats(sizes[k]);
    for (int64_t n = 0; add && n < sizes[1]; n++)
        want[1][n] = (double)(plain[1][n] = operand_row(&s.dx, n / rule.width)[n % rule.width]);
    for (int64_t n = 0; add && n < rule.width; n++) {
        want[2][n] = (double)(plain[2][n] = s.dgain[n]);
        want[3][n] = (double)(plain[3][n] = s.dshift[n]);
    }
    norm_double(&s.rule, &s.x, &s.dy, want[0], want[1], want[2], want[3]);
    norm_float(&s.rule, &s.x, &s.dy, plain[0], plain[1], plain[2], plain[3]);
    run(&s, &(locus_workers){kernels, 2}, add);
    operand_expect("y", &s.y, want[0], plain[0], 2.0);
    operand_expect("dx", &s.dx, want[1], plain[1], 3.0);
    floats_expect("dgain", s.dgain, want[2], plain[2], rule.width, 3.0);
    floats_expect("dshift", s.dshift, want[3], plain[3], rule.width, 3.0);
    int intact = 1;
    for (size_t i = 0; i < 64; i++)
        intact &= ((unsigned char *)s.workspace)[locus_norm_workspace(count) + i] == 0x7F;
    CHECK(intact, "written beyond the workspace");
    for (int k = 0; k < 4; k++) free(want[k]), free(plain[k]);
    free_setup(&s);
}

static void test_formulas(const locus_kernels *kernels)
{
    for (int kind = 0; kind < 8; kind++) {
        const int affine = kind >> 2;
        locus_norm_rule rule = {.centred = kind & 1, .epsilon_outside = kind >> 1 & 1};
        rule.epsilon = rule.centred ? 1e-5f : 1e-6f;
        if (!check_begin("norm/%s/%s%s%s", kernels->isa, rule.centred ? "layer" : "rms",
                         rule.epsilon_outside ? "/outside" : "", affine ? "/affine" : ""))
            continue;
        for (rule.width = 1; rule.width <= 70; rule.width++)
            check_formulas(kernels, rule, rule.width < 8 ? 50 : 3, affine, rule.width % 2 == 0,
                           0.0);
        rule.width = 384;
        check_formulas(kernels, rule, 600, affine, 0, 0.5);
        rule.width = 1000;
        check_formulas(kernels, rule, 5, affine, 1, 30.0);
        rule.width = 5; /* rows around LOCUS_ROW_BLOCK; widths around NORM_CHAINS vectors: above */
        for (int64_t rows = LOCUS_ROW_BLOCK - 1; rows <= LOCUS_ROW_BLOCK + 1; rows++) {
            check_formulas(kernels, rule, rows, affine, 1, 0.0);
            check_formulas(kernels, rule, rows + LOCUS_ROW_BLOCK, affine, 0, 0.0);
        }
        rule.width = 24;
        check_formulas(kernels, rule, 0, affine, 1, 0.0);
        check_formulas(kernels, rule, 0, affine, 0, 0.0);
    }
}

/* A constant row: v is 0, epsilon alone divides. */
static void test_constant(const locus_kernels *kernels)
{
    for (int outside = 0; outside < 2; outside++) {
        if (!check_begin("norm/%s/constant%s", kernels->isa, outside ? "/outside" : "")) continue;
        locus_norm_rule rule = {.epsilon_outside = outside, .epsilon = 0.25f, .width = 33};
        setup s = new_setup(rule, 2, 1, 0.0);
        for (int64_t c = 0; c < 33; c++)
            operand_row(&s.x, 0)[c] = 0.0f, operand_row(&s.x, 1)[c] = 3.0f;
        run(&s, &(locus_workers){kernels, 1}, 0);
        const float factor = outside ? 4.0f : 2.0f;
        for (int64_t c = 0; c < 33; c++) {
            CHECK(operand_row(&s.y, 0)[c] == s.shift[c], "0 became %g", (double)s.y.rows.data[c]);
            const double want = (double)(operand_row(&s.dy, 0)[c] * s.gain[c] * factor);
            CHECK(fabs((double)operand_row(&s.dx, 0)[c] - want) < 1e-6, "gradient of a row of 0");
        }
        free_setup(&s);
    }
}

/* A NaN or an infinity fills its row of y and dx, its row's columns of dgain, nothing else. */
static void test_special(const locus_kernels *kernels)
{
    static const float special[] = {(float)NAN, (float)INFINITY, -(float)INFINITY};
    for (int k = 0; k < 3; k++) {
        if (!check_begin("norm/%s/special%d", kernels->isa, k)) continue;
        setup s =
            new_setup((locus_norm_rule){.centred = 1, .epsilon = 1e-5f, .width = 41}, 7, 1, 0.0);
        operand_row(&s.x, 4)[40] = special[k];
        run(&s, &(locus_workers){kernels, 2}, 0);
        int y = 0, dx = 0, others = 0;
        for (int64_t i = 0; i < 7; i++)
            for (int64_t c = 0; c < 41; c++) {
                const int bad_y = isnan(operand_row(&s.y, i)[c]);
                const int bad_dx = isnan(operand_row(&s.dx, i)[c]);
                y += i == 4 && bad_y, dx += i == 4 && bad_dx, others += i != 4 && (bad_y || bad_dx);
            }
        CHECK(y == 41 && dx == 41 && others == 0, "%d, %d NaN in the row, %d beside it", y, dx,
              others);
        free_setup(&s);
    }
}

static void test_bits(const locus_kernels *kernels)
{
    static const uint32_t threads[] = {2, 3, 7};
    const locus_norm_rule rule = {.centred = 1, .epsilon = 1e-5f, .width = 300};
    if (!check_begin("norm/%s/bits", kernels->isa)) return;
    setup one = new_setup(rule, 1100, 1, 0.0), alone = new_setup(rule, 1, 1, 0.0);
    run(&one, &(locus_workers){kernels, 1}, 0);
    for (size_t i = 0; i < 3; i++) {
        setup many = new_setup(rule, 1100, 1, 0.0);
        run(&many, &(locus_workers){kernels, threads[i]}, 0);
        CHECK(operand_same_bits(&one.y, &many.y) && operand_same_bits(&one.dx, &many.dx) &&
                  memcmp(one.dgain, many.dgain, 300 * sizeof(float)) == 0 &&
                  memcmp(one.dshift, many.dshift, 300 * sizeof(float)) == 0,
              "%u threads give other bits", (unsigned)threads[i]);
        free_setup(&many);
    }
    memcpy(operand_row(&alone.x, 0), operand_row(&one.x, 777), 300 * sizeof(float));
    memcpy(operand_row(&alone.dy, 0), operand_row(&one.dy, 777), 300 * sizeof(float));
    run(&alone, &(locus_workers){kernels, 1}, 0);
    CHECK(memcmp(operand_row(&alone.y, 0), operand_row(&one.y, 777), 300 * sizeof(float)) == 0 &&
              memcmp(operand_row(&alone.dx, 0), operand_row(&one.dx, 777), 300 * sizeof(float)) ==
                  0,
          "a row depends on the others");
    locus_norm_forward(&(locus_workers){kernels, 1}, &alone.rule, &alone.x.rows, &alone.x.rows);
    CHECK(operand_same_bits(&alone.x, &alone.y), "in place is not the same");
    free_setup(&one), free_setup(&alone);
}

static void test_table(const locus_kernels *kernels)
{
    test_formulas(kernels);
    test_constant(kernels);
    test_special(kernels);
    test_bits(kernels);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for_each_table(test_table);
    return check_finish("nn/norm");
}
