/* SPDX-License-Identifier: Apache-2.0 */
/* The judge is judged first: a comparator that lets NaN through passes everything. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "support/check.h"
#include "support/compare.h"

static int passes(const double *got, const double *want, size_t count, double tolerance)
{
    const comparison c = compare_f64(got, want, count);
    return comparison_passes(&c, count, tolerance, NULL, 0);
}

static int pair(double got, double want) { return passes(&got, &want, 1, 1e-3); }

static void special_values(void)
{
    const double nan = (double)NAN, inf = (double)INFINITY;
    if (check_begin("compare/nan")) {
        CHECK(pair(nan, nan), "NaN equals NaN");
        CHECK(!pair(nan, 1), "NaN against a number");
        CHECK(!pair(1, nan), "a number against NaN");
        CHECK(!pair(nan, inf), "NaN against infinity");
        CHECK(!pair(inf, nan), "infinity against NaN");
    }
    if (check_begin("compare/infinity")) {
        CHECK(pair(inf, inf), "inf equals inf");
        CHECK(pair(-inf, -inf), "-inf equals -inf");
        CHECK(!pair(inf, -inf), "signs differ");
        CHECK(!pair(-inf, inf), "signs differ");
        CHECK(!pair(inf, 1e308), "inf against a number");
        CHECK(!pair(1e308, inf), "a number against inf");
    }
    if (check_begin("compare/special-does-not-widen-the-scale")) {
        const double want[3] = {inf, nan, 1}, got[3] = {inf, nan, 1.5};
        CHECK(!passes(got, want, 3, 1e-3), "the third element is off by 0.5");
    }
    if (check_begin("compare/late-nan-is-found")) {
        double want[100] = {0}, got[100] = {0};
        got[99] = nan;
        const comparison c = compare_f64(got, want, 100);
        CHECK(!comparison_passes(&c, 100, 1e30, NULL, 0), "NaN at the end");
        CHECK(c.at == 99, "at %zu", c.at);
    }
}

static void tolerance(void)
{
    if (check_begin("compare/relative-to-largest")) {
        const double want[2] = {1000, 0}, near[2] = {1000, 0.0009}, far[2] = {1000, 0.0011};
        CHECK(passes(near, want, 2, 1e-6), "0.0009 / 1000");
        CHECK(!passes(far, want, 2, 1e-6), "0.0011 / 1000");
    }
    if (check_begin("compare/absolute-below-one")) {
        CHECK(pair(1e-6 + 0.0009, 1e-6), "scale is at least 1");
        CHECK(!pair(1e-6 + 0.0011, 1e-6), "scale is at least 1");
    }
    if (check_begin("compare/negative-wants-count")) {
        const double want[2] = {-1000, 0}, got[2] = {-1000, 0.0009};
        CHECK(passes(got, want, 2, 1e-6), "largest |want| is 1000");
    }
    if (check_begin("compare/boundary")) {
        CHECK(pair(0.5, 0.5), "equal");
        const double want = 0, got = 0.125;
        CHECK(passes(&got, &want, 1, 0.125), "at the tolerance");
        CHECK(!passes(&got, &want, 1, 0.1249), "just above");
        CHECK(!passes(&got, &want, 1, (double)NAN), "a NaN tolerance passes nothing");
    }
}

static void counting(void)
{
    if (check_begin("compare/count")) {
        const double a[4] = {1, 2, 3, 4};
        const comparison c = compare_f64(a, a, 3);
        char text[128];
        CHECK(comparison_passes(&c, 3, 0, text, sizeof text), "three of three: %s", text);
        CHECK(!comparison_passes(&c, 4, 0, text, sizeof text), "three of four");
        CHECK(strstr(text, "3 of 4") != NULL, "%s", text);
        CHECK(!comparison_passes(&c, 2, 0, NULL, 0), "three of two");
    }
    if (check_begin("compare/nothing")) {
        const double a[1] = {1};
        const comparison c = compare_f64(a, a, 0);
        CHECK(!comparison_passes(&c, 0, 1, NULL, 0), "nothing compared is no success");
        CHECK(!comparison_passes(&c, 1, 1, NULL, 0), "nothing compared of one");
    }
}

static void kinds(void)
{
    if (check_begin("compare/float")) {
        const float got[2] = {1.0f, NAN}, want[2] = {1.0f, 2.0f};
        const double wide[2] = {1.0, 2.0};
        comparison c = compare_f32(got, want, 2);
        CHECK(!comparison_passes(&c, 2, 1e30, NULL, 0), "NaN against 2, f32");
        c = compare_f32_f64(got, wide, 2);
        CHECK(!comparison_passes(&c, 2, 1e30, NULL, 0), "NaN against 2, f32 and f64");
        c = compare_f32(got, want, 1);
        CHECK(comparison_passes(&c, 1, 0, NULL, 0), "equal, f32");
        c = compare_f32_f64(got, wide, 1);
        CHECK(comparison_passes(&c, 1, 0, NULL, 0), "equal, f32 and f64");
    }
    if (check_begin("compare/tensors")) {
        float strided[12], dense[6];
        double wide[6];
        for (int i = 0; i < 12; i++) strided[i] = -1;
        for (int i = 0; i < 6; i++) {
            wide[i] = i;
            dense[i] = (float)i;
            strided[i / 3 * 6 + i % 3] = (float)i; /* rows of 3 in rows of 6 */
        }
        const int64_t shape[2] = {2, 3}, turned[2] = {3, 2};
        locus_tensor got = {.data = strided, .rank = 2, .shape = {2, 3}, .stride = {6, 1}};
        const locus_tensor want = {
            .data = wide, .dtype = LOCUS_F64, .rank = 2, .shape = {2, 3}, .stride = {3, 1}};
        comparison c = compare_tensors(&got, &want);
        char text[128];
        CHECK(comparison_passes(&c, 6, 0, text, sizeof text), "strided: %s", text);
        strided[8] = 5.5f;
        c = compare_tensors(&got, &want);
        CHECK(!comparison_passes(&c, 6, 0.01, NULL, 0) && c.at == 5, "last element differs");
        got = locus_view(dense, LOCUS_F32, 2, turned);
        c = compare_tensors(&got, &want);
        CHECK(c.compared == 0, "other shape");
        got = locus_view(dense, LOCUS_F32, 2, shape);
        c = compare_tensors(&got, &want);
        CHECK(comparison_passes(&c, 6, 0, NULL, 0), "dense");
        got.rank = 0;
        c = compare_tensors(&got, &got);
        CHECK(c.compared == 0, "absent tensors compare nothing");
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    special_values();
    tolerance();
    counting();
    kinds();
    return check_finish("support/compare");
}
