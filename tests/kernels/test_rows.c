/* SPDX-License-Identifier: Apache-2.0 */
/* Sums, scales and gains of rows; rows that hold NaN or infinity. */

#include <math.h>
#include <string.h>

#include "kernels/operands.h"

static void test_bad_rows(const locus_kernels *k)
{
    static const float strange[] = {NAN, INFINITY, -INFINITY};
    if (!check_begin("kernels/%s/bad_rows", k->isa)) return;
    for (int64_t width = 1; width <= 70; width++)
        for (int64_t at = 0; at < width; at++) {
            uint8_t bad[3];
            memcpy(C, before, sizeof C);
            C[2 * width + at] = strange[at % 3];
            CHECK(k->bad_rows(bad, C, width, LOCUS_F32, 2, width) == 0, "finite rows");
            CHECK(k->bad_rows(bad, C, width, LOCUS_F32, 3, width) == 1, "a bad row");
            CHECK(bad[0] == 0 && bad[1] == 0 && bad[2] == 1, "width %d at %d", (int)width, (int)at);
        }
}

static void test_rows(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/rows", k->isa)) return;
    for (int64_t n = 0; n <= 70; n++) {
        memcpy(C, before, sizeof C);
        k->add(C, A, n);
        k->scale(C + 100, C + 100, 0.5f, n);
        float biased[80], bias[80];
        for (int c = 0; c < 80; c++) {
            biased[c] = c % 5 == 0 ? NAN : A[c];
            bias[c] = c % 3 == 0 ? -INFINITY : B[c];
        }
        k->add_bias(biased, bias, n);
        for (int c = 0; c < n; c++)
            CHECK(c % 3 == 0   ? biased[c] == -INFINITY
                  : c % 5 == 0 ? isnan(biased[c])
                               : biased[c] == A[c] + B[c],
                  "add_bias of %d at %d", (int)n, c);
        for (int64_t c = 0; c < 80; c++) {
            CHECK(C[c] == (c < n ? before[c] + A[c] : before[c]), "add of %d at %d", (int)n,
                  (int)c);
            CHECK(C[100 + c] == (c < n ? before[100 + c] * 0.5f : before[100 + c]),
                  "scale of %d at %d", (int)n, (int)c);
        }
    }
}

static void test_scale_rows(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/scale_rows", k->isa)) return;
    enum { COUNT = 3, TO = 80, FROM = 90 };
    for (int width = 0; width <= 70; width++)
        for (int way = 0; way < 4; way++) {
            const int resume = way & 1;
            const float *shift = way & 2 ? B : NULL;
            float expected[COUNT * TO];
            memcpy(C, before, sizeof C);
            memcpy(expected, before, sizeof expected);
            for (int r = 0; r < COUNT; r++)
                for (int c = 0; c < width; c++) {
                    float *at = &expected[r * TO + c], x = A[r * FROM + c];
                    x = (shift != NULL ? x + shift[c] : x) * 0.25f;
                    *at = (resume ? *at : 0.0f) + x;
                }
            k->scale_rows(C, TO, A, FROM, shift, 0.25f, COUNT, width, resume);
            CHECK(memcmp(C, expected, sizeof expected) == 0, "way %d of width %d", way, width);
        }
    float zero = -0.0f;
    k->scale_rows(&zero, 1, &zero, 1, NULL, 1.0f, 1, 1, 0);
    CHECK(!signbit(zero), "-0 stays");
}

static void test_fade(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/mul_gain", k->isa)) return;
    for (int n = 0; n <= 70; n++)
        for (int resume = 0; resume < 2; resume++) {
            memcpy(C, before, sizeof C);
            k->mul_gain(C, A, B, n, resume);
            for (int c = 0; c < 80; c++) {
                const float start = resume ? before[c] : 0.0f;
                const float expected = c < n ? fmaf(A[c], B[c], start) : before[c];
                CHECK(fabsf(C[c] - expected) <= 1e-6f, "mul_gain of %d at %d", n, c);
            }
        }
}

/* Exponents between sums of any size, also those that no float holds apart. */
static void test_decay(const locus_kernels *k)
{
    static const double exponents[] = {0.0, -1e-9, -0.3, -17.25, -80.0, -95.0, -300.0, 3.5, 79.0};
    enum { KINDS = sizeof exponents / sizeof *exponents };
    if (!check_begin("kernels/%s/decay", k->isa)) return;
    for (int n = 0; n <= 70; n++)
        for (int resume = 0; resume < 2; resume++) {
            double to[80], from[80];
            for (int c = 0; c < 80; c++) {
                from[c] = -3000.0 * c;
                to[c] = from[c] + exponents[c % KINDS] * (1.0 + 1e-3 * c / 80.0);
            }
            memcpy(C, before, sizeof C);
            k->decay(C, A, to, from, n, resume);
            for (int c = 0; c < 80; c++) {
                const double start = resume ? (double)before[c] : 0.0;
                const double product = (double)A[c] * exp(to[c] - from[c]);
                const double wanted = c < n ? start + product : (double)before[c];
                CHECK(fabs((double)C[c] - wanted) <= 3e-7 * (fabs(product) + fabs(start)) + 1e-37,
                      "decay of %d at %d: %g for %g", n, c, (double)C[c], wanted);
            }
        }
    const double steep[2] = {-INFINITY, NAN}, none[2] = {0.0, 0.0};
    float ones[2] = {1.0f, 1.0f};
    k->decay(ones, ones, steep, none, 2, 0);
    CHECK(ones[0] == 0.0f && isnan(ones[1]), "of -inf %g, of NaN %g", (double)ones[0],
          (double)ones[1]);
}

/* Parts of 2^20 and 2^-20: the greater ones cancel without an error. */
static void test_add_split(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/add_split", k->isa)) return;
    const float great = 0x1p20f, small = 0x1p-20f;
    for (int n = 0; n <= 70; n++) {
        float high[80], low[80];
        for (int c = 0; c < 80; c++) {
            high[c] = great + (float)c;
            low[c] = small * (float)c;
        }
        memcpy(C, before, sizeof C);
        k->add_split(C, high, low, -great, small, n);
        for (int c = 0; c < 80; c++) {
            const float expected =
                c < n ? before[c] + ((float)c + small * (float)(c + 1)) : before[c];
            CHECK(C[c] == expected, "add_split of %d at %d", n, c);
        }
    }
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_bad_rows, test_rows,  test_scale_rows,
                                        test_fade,     test_decay, test_add_split,
                                        NULL};
    return test_kernels(argc, argv, "kernels/rows", tests);
}
