/* SPDX-License-Identifier: Apache-2.0 */
/* Rules far from where they are simple, against the formulas (naive.h) because the oracle shares
 * them with the library: windows and causal at any query offset, buckets of distances beyond
 * 5,000, angles of positions beyond 2^24. */

#include <inttypes.h>
#include <locus/scheme.h>
#include <math.h>
#include <stdio.h>

#include "support/check.h"
#include "support/judge.h"
#include "support/naive.h"

static void judge(const char *scheme, const char *settings, test_spec shape)
{
    shape.scheme = scheme;
    shape.level = LOCUS_ATTEND;
    shape.settings = settings;
    shape.seed = 9;
    if (!check_begin("bounds/rules/%s/q%" PRId64 "k%" PRId64 "/%s", scheme, shape.Tq, shape.Tk,
                     settings))
        return;
    test_problem *p = test_problem_new(&shape);
    test_judge(p, &(test_manner){0});
    test_problem_free(p);
}

/* ---- windows ---- */

static void judge_window(const char *scheme, const char *options, test_spec shape, int64_t offset,
                         int64_t left, int64_t right, int causal)
{
    char settings[160];
    snprintf(settings, sizeof settings,
             "query_offset=%" PRId64 " window_left=%" PRId64 " window_right=%" PRId64
             " causal=%d%s%s",
             offset, left, right, causal, options[0] != '\0' ? " " : "", options);
    judge(scheme, settings, shape);
}

/* The window ends before the first key, at it, behind it, ... behind the last one. */
static void test_windows(void)
{
    static const test_spec shapes[] = {
        {.B = 1, .H = 1, .Tq = 5, .Tk = 9, .D = 2},
        {.B = 1, .H = 1, .Tq = 70, .Tk = 50, .D = 2},
        {.B = 1, .H = 2, .Tq = 3, .Tk = 600, .D = 2},
        {.B = 1, .H = 1, .Tq = 200, .Tk = 530, .D = 2},
    };
    static const int64_t offsets[] = {-300, -70, -64, -5, -1, 0, 3, 100, 599};
    static const int64_t widths[][2] = {{-1, -1}, {0, 0}, {-1, 2}, {2, -1}, {7, 65}, {65, 0}};
    static const char *const schemes[][2] = {{"none", ""},
                                             {"t5", "buckets=8 max_distance=30"},
                                             {"shaw", "clip_left=3 clip_right=70"},
                                             {"rope", "pairing=half"}};
    size_t number = 0;
    for (size_t s = 0; s < 4; s++)
        for (size_t o = 0; o < 9; o++)
            for (size_t w = 0; w < 6; w++)
                for (int causal = 0; causal < 2; causal++, number++) {
                    const size_t scheme = (number + s + o) % 4;
                    if (check_sample() && number % 5 != 0) continue;
                    judge_window(schemes[scheme][0], schemes[scheme][1], shapes[s], offsets[o],
                                 widths[w][0], widths[w][1], causal);
                }
}

/* ---- distances ---- */

static void test_buckets(void)
{
    const test_spec few = {.B = 1, .H = 2, .Tq = 2, .Tk = 12000, .D = 2};
    judge("t5", "buckets=64 max_distance=20000", few);
    judge("t5", "buckets=64 max_distance=20000 bidirectional=0", few);
    judge("t5", "buckets=64 max_distance=9000 query_offset=0", few);
    judge("t5", "buckets=64 max_distance=300000 query_offset=250000", few);
    /* more rows than a byte and than two bytes count */
    judge("t5", "buckets=600 max_distance=9000", few);
    judge("t5", "buckets=65536 max_distance=80000 bidirectional=0 query_offset=70000", few);
    judge("deberta", "span=512 buckets=512 max_distance=20000", few);
    judge("deberta", "span=256 buckets=256 max_distance=9000 query_offset=0", few);
    judge("shaw", "clip_left=6000 clip_right=5500 query_offset=6001", few);
    judge("transformer_xl", "clamp=7000 query_offset=5000", few);
    judge("kerple", "form=log query_offset=300000", few);
    judge("t5", "buckets=64 max_distance=6000",
          (test_spec){.B = 1, .H = 1, .Tq = 12, .Tk = 5700, .D = 2});
}

static void test_bucket_rules(void)
{
    static const int64_t settings[][2] = {{32, 128}, {64, 9000}, {320, 20000}, {32, 1000000}};
    for (size_t i = 0; i < 4; i++) {
        const int64_t buckets = settings[i][0], most = settings[i][1];
        if (!check_begin("bounds/rules/buckets/%" PRId64 "-%" PRId64, buckets, most)) continue;
        for (int64_t x = 0; x < most + 100; x += 1 + x / 257)
            for (int64_t sign = -1; sign <= 1; sign += 2) {
                const int64_t d = sign * x;
                for (int both = 0; both < 2; both++)
                    CHECK(locus_t5_bucket(d, buckets, most, both) ==
                              test_naive_t5(d, buckets, most, both),
                          "t5 at %" PRId64, d);
                CHECK(locus_deberta_beta(d, buckets, most) == test_naive_deberta(d, buckets, most),
                      "deberta at %" PRId64, d);
            }
    }
}

/* ---- positions ---- */

static void test_angles(void)
{
    static const char *const offsets[] = {"16777217", "16777219", "100000001", "2147483648",
                                          "-16777219"};
    static const char *const options[] = {"pairing=half", "pairing=interleaved",
                                          "pairing=half width=4 base=500000",
                                          "pairing=interleaved theta_scale=0.125"};
    for (size_t i = 0; i < 5; i++)
        for (size_t k = 0; k < 4; k++)
            for (int64_t rows = 3; rows <= 20; rows += 17) {
                char settings[128];
                snprintf(settings, sizeof settings, "%s query_offset=%s", options[k], offsets[i]);
                judge("rope", settings, (test_spec){.B = 1, .H = 1, .Tq = rows, .Tk = 30, .D = 6});
            }
    /* keys far along, too */
    judge("rope", "pairing=half", (test_spec){.B = 1, .H = 1, .Tq = 2, .Tk = 70000, .D = 2});
    judge("xpos", "scale_base=4096", (test_spec){.B = 1, .H = 1, .Tq = 2, .Tk = 9000, .D = 4});
}

/* sin and cos of p 10000^(-2t/width), or 10000^(-t/(N-1)) for t2t; N = width / 2. */
static void test_sinusoids(void)
{
    enum { WIDTH = 8 };
    static const int64_t positions[] = {0, 1, 16777217, 16777219, 1073741824, -16777217};
    for (int64_t table = LOCUS_TABLE_PAPER; table <= LOCUS_TABLE_HALF; table++) {
        if (!check_begin("bounds/rules/sinusoid/%d", (int)table)) continue;
        for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
            double row[WIDTH];
            locus_sinusoid(table, WIDTH, positions[i], row);
            for (int64_t t = 0; t < WIDTH / 2; t++) {
                const long double power = table == LOCUS_TABLE_T2T
                                              ? (long double)t / (WIDTH / 2 - 1)
                                              : 2 * (long double)t / WIDTH;
                const long double angle = (long double)positions[i] * powl(10000.0L, -power);
                const int64_t at = table == LOCUS_TABLE_PAPER ? 2 * t : t;
                const int64_t beside = table == LOCUS_TABLE_PAPER ? 2 * t + 1 : WIDTH / 2 + t;
                /* a frequency is e^x with x down to -9.2, which multiplies its rounding error */
                const long double tolerance = 1e-15L + fabsl(angle) * 20 * 0x1p-53L;
                CHECK(fabsl(row[at] - sinl(angle)) <= tolerance, "sin at %" PRId64 ", t = %d",
                      positions[i], (int)t);
                CHECK(fabsl(row[beside] - cosl(angle)) <= tolerance, "cos at %" PRId64 ", t = %d",
                      positions[i], (int)t);
            }
        }
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_windows();
    test_buckets();
    test_bucket_rules();
    test_angles();
    test_sinusoids();
    return check_finish("bounds/rules");
}
