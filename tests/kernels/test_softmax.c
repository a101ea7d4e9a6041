/* SPDX-License-Identifier: Apache-2.0 */
/* The exponential, the streaming softmax and its gradient. */

#include <float.h>
#include <math.h>
#include <string.h>

#include "kernels/operands.h"

/* 2 ulp, plus |x| from the rounding of x log2 e. */
static void check_exp_row(const locus_kernels *k, float *row, int64_t count)
{
    static float S[KEYS];
    float max = 0.0f, factor = 1.0f;
    memcpy(S, row, (size_t)count * sizeof *S);
    k->softmax_from_lse(S, KEYS, 1, count, (locus_seen){0}, &max, &factor);
    for (int64_t c = 0; c < count; c++) {
        const double want = exp((double)row[c]);
        const double ulp = want < FLT_MIN ? (double)FLT_MIN : want * FLT_EPSILON;
        CHECK(fabs((double)S[c] - want) <= (2.0 - (double)row[c]) * ulp,
              "e^%.9g: %.9g, expected %.9g", (double)row[c], (double)S[c], want);
    }
}

static void test_exp(const locus_kernels *k)
{
    float row[KEYS];
    if (check_begin("kernels/%s/exp/range", k->isa))
        for (int block = 0; block < (check_sample() ? 20 : 2000); block++) {
            for (int c = 0; c < KEYS; c++)
                row[c] = (float)(-100.0 * test_uniform((uint64_t)block, (uint64_t)c) *
                                 (block % 3 == 0   ? 1.0
                                  : block % 3 == 1 ? 0.01
                                                   : 0.1));
            check_exp_row(k, row, 1 + block % KEYS);
        }
    if (check_begin("kernels/%s/exp/special", k->isa)) {
        const float max = 0.0f, factor = 1.0f;
        float special[KEYS] = {0.0f, -INFINITY, NAN, -1e30f};
        k->softmax_from_lse(special, KEYS, 1, 4, (locus_seen){0}, &max, &factor);
        CHECK(special[0] == 1.0f, "e^0 is %.9g", (double)special[0]);
        CHECK(special[1] == 0.0f && special[3] == 0.0f, "e^-inf, e^-1e30");
        CHECK(isnan(special[2]), "e^NaN is %g", (double)special[2]);
    }
}

/* lse = max + ln sum within 2 ulp of its parts; factor = 1 / sum. */
static void test_softmax_end(const locus_kernels *k)
{
    float max[KEYS], sum[KEYS], lse[KEYS + 1], factor[KEYS + 1];
    if (check_begin("kernels/%s/softmax/end", k->isa))
        for (int block = 0; block < (check_sample() ? 20 : 500); block++) {
            const int rows = block % (KEYS + 1);
            for (int i = 0; i < KEYS; i++) {
                const double u = test_uniform((uint64_t)block + 77, (uint64_t)i);
                max[i] = block % 2 ? A[i] * 20.0f : 0.0f;
                sum[i] = (float)exp(block % 3 ? 22.0 * u : 1e-3 * u);
            }
            lse[rows] = factor[rows] = 7.0f;
            k->softmax_end(lse, factor, max, sum, rows);
            for (int i = 0; i < rows; i++) {
                const double ln = log((double)sum[i]), want = (double)max[i] + ln;
                CHECK(fabs((double)lse[i] - want) <=
                          FLT_EPSILON * (0.5 * fabs(want) + 2.0 * fabs(ln)),
                      "%g + ln %.9g: %.9g, expected %.9g", (double)max[i], (double)sum[i],
                      (double)lse[i], want);
                CHECK(factor[i] == 1.0f / sum[i], "1 / %.9g", (double)sum[i]);
            }
            CHECK(lse[rows] == 7.0f && factor[rows] == 7.0f, "%d rows: wrote outside", rows);
        }
    if (check_begin("kernels/%s/softmax/end-special", k->isa)) {
        const float tops[3] = {-INFINITY, 2.5f, 1.0f}, totals[3] = {0.0f, 1.0f, NAN};
        k->softmax_end(lse, factor, tops, totals, 3);
        CHECK(lse[0] == -INFINITY && factor[0] == 0.0f, "an empty row: %g", (double)lse[0]);
        CHECK(lse[1] == 2.5f && factor[1] == 1.0f, "one key: %.9g", (double)lse[1]);
        CHECK(isnan(lse[2]) && isnan(factor[2]), "NaN: %g", (double)lse[2]);
    }
}

/* The streaming softmax in any cut equals the softmax of the whole row. */
static void test_streaming(const locus_kernels *k)
{
    for (int step = 1; step <= KEYS; step += 9) {
        if (!check_begin("kernels/%s/softmax/step%d", k->isa, step)) continue;
        float max[LOCUS_LANES] = {-INFINITY}, sum[LOCUS_LANES] = {0.0f}, rescale[LOCUS_LANES],
              tile_sum[LOCUS_LANES];
        double out = 0.0, want_sum = 0.0, want_out = 0.0, want_max = -INFINITY;
        for (int at = 0; at < 200; at++) want_max = fmax(want_max, (double)A[at] * 20.0);
        for (int at = 0; at < 200; at += step) {
            float S[KEYS];
            const int count = at + step <= 200 ? step : 200 - at;
            for (int c = 0; c < count; c++) S[c] = A[at + c] * 20.0f;
            k->softmax_step(S, KEYS, 1, count, (locus_seen){0}, NULL, max, sum, rescale, tile_sum);
            double row = 0.0;
            for (int c = 0; c < count; c++) row += (double)S[c];
            CHECK(fabs((double)tile_sum[0] - row) <= 1e-5 * row, "sum of a row: %g, expected %g",
                  (double)tile_sum[0], row);
            out *= (double)rescale[0];
            for (int c = 0; c < count; c++) out += (double)S[c] * (double)B[at + c];
        }
        for (int at = 0; at < 200; at++) {
            const double p = exp((double)(A[at] * 20.0f) - want_max);
            want_sum += p;
            want_out += p * (double)B[at];
        }
        CHECK((double)max[0] == (double)(float)want_max, "max %g, expected %g", (double)max[0],
              want_max);
        CHECK(fabs((double)sum[0] - want_sum) < 1e-5 * want_sum, "sum %g, expected %g",
              (double)sum[0], want_sum);
        CHECK(fabs(out / (double)sum[0] - want_out / want_sum) < 1e-5, "out");
    }
}

static void test_softmax_special(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/softmax/special", k->isa)) return;
    float max[4 + LOCUS_LANES] = {-INFINITY, -INFINITY, -INFINITY, -INFINITY};
    float sum[4 + LOCUS_LANES] = {0}, rescale[4 + LOCUS_LANES] = {0}, tile_sum[4 + LOCUS_LANES];
    static float S[4 * KEYS];
    for (int i = 0; i < 4 * KEYS; i++) S[i] = -INFINITY;
    S[KEYS + 1] = 2.0f;
    S[2 * KEYS + 2] = NAN;
    S[3 * KEYS] = INFINITY;
    k->softmax_step(S, KEYS, 4, 5, (locus_seen){0}, NULL, max, sum, rescale, tile_sum);
    CHECK(max[0] == -INFINITY && sum[0] == 0.0f && rescale[0] == 1.0f && S[0] == 0.0f,
          "a row of -inf: max %g sum %g rescale %g", (double)max[0], (double)sum[0],
          (double)rescale[0]);
    CHECK(max[1] == 2.0f && sum[1] == 1.0f && S[KEYS + 1] == 1.0f && S[KEYS] == 0.0f, "one score");
    CHECK(isnan(sum[2]), "NaN: sum %g", (double)sum[2]);
    CHECK(isnan(sum[3]), "+inf: sum %g", (double)sum[3]);
}

/* Columns that a row does not see may hold anything: they count as -inf. */
static void test_softmax_seen(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/softmax/seen", k->isa)) return;
    for (int32_t first = 0; first <= KEYS - 3; first += 3)
        for (int32_t past = first; past <= KEYS - 3; past += 2) {
            float S[KEYS], hidden[KEYS], again[KEYS], factor = 0.5f;
            float max[2][LOCUS_LANES] = {{-INFINITY}, {-INFINITY}}, sum[2][LOCUS_LANES] = {{0.0f}};
            float rescale[LOCUS_LANES], tile_sum[LOCUS_LANES];
            for (int c = 0; c < KEYS; c++) {
                const int sees = c >= first && c < past;
                S[c] = again[c] = sees ? A[c] : NAN;
                hidden[c] = sees ? A[c] : -INFINITY;
            }
            const locus_seen seen = {&first, &past};
            k->softmax_step(S, KEYS, 1, KEYS - 3, seen, NULL, max[0], sum[0], rescale, tile_sum);
            k->softmax_step(hidden, KEYS, 1, KEYS - 3, (locus_seen){0}, NULL, max[1], sum[1],
                            rescale, tile_sum);
            k->softmax_from_lse(again, KEYS, 1, KEYS - 3, seen, max[0], &factor);
            CHECK(max[0][0] == max[1][0], "%d to %d: max", first, past);
            CHECK(fabsf(sum[0][0] - sum[1][0]) <= 1e-5f * sum[1][0], "%d to %d: sum", first, past);
            for (int c = 0; c < KEYS - 3; c++) {
                CHECK(S[c] == hidden[c], "%d to %d: weight %d", first, past, c);
                CHECK(again[c] == factor * S[c], "%d to %d: weight %d again", first, past, c);
            }
        }
}

static void test_softmax_grad(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/softmax/grad", k->isa)) return;
    static float dP[KEYS], P[KEYS];
    for (int columns = 1; columns <= KEYS; columns++) {
        const float row_dot = 0.37f;
        for (int c = 0; c < KEYS; c++) {
            dP[c] = c % 5 == 0 ? NAN : A[c];
            P[c] = c % 5 == 0 || c >= columns ? 0.0f : B[c];
        }
        k->softmax_grad(dP, P, KEYS, 1, columns, &row_dot);
        for (int c = 0; c < columns; c++) {
            const float want = c % 5 == 0 ? 0.0f : P[c] * (A[c] - row_dot);
            CHECK(fabsf(dP[c] - want) <= 1e-6f, "column %d of %d", c, columns);
        }
    }
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_exp,
                                        test_softmax_end,
                                        test_streaming,
                                        test_softmax_special,
                                        test_softmax_seen,
                                        test_softmax_grad,
                                        NULL};
    return test_kernels(argc, argv, "kernels/softmax", tests);
}
