/* SPDX-License-Identifier: Apache-2.0 */
/* Half precision: conversions number by number, and the kernels that read halves in place, which
 * have the bits of the same kernels on the same numbers as floats. */

#include <math.h>
#include <string.h>

#include "core/half.h"
#include "core/parallel.h"
#include "kernels/operands.h"

enum { EVERY = 1 << 16 };
static const locus_dtype types[] = {LOCUS_F16, LOCUS_BF16};

static float to_float(uint16_t half, locus_dtype type)
{
    return type == LOCUS_F16 ? locus_f16_to_float(half) : locus_bf16_to_float(half);
}

/* By arithmetic on doubles: the multiple of one unit in the last place that is nearest, ties to
 * even. */
static double rounded(double x, locus_dtype type)
{
    const int digits = type == LOCUS_F16 ? 11 : 8, least = type == LOCUS_F16 ? -24 : -133;
    const double most = type == LOCUS_F16 ? 65504.0 : 0x1.FEp127;
    int exponent;
    if (isnan(x) || isinf(x) || x == 0.0) return x;
    frexp(x, &exponent);
    const int unit = exponent - digits > least ? exponent - digits : least;
    const double nearest = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(nearest) > most ? copysign(INFINITY, x) : nearest;
}

static int is_subnormal(float x) { return x != 0.0f && fabsf(x) < 0x1p-126f; }

/* Every half there is, to float and back, in rows of every width up to a few vectors. */
static void test_every(const locus_kernels *k)
{
    static uint16_t halves[EVERY], again[EVERY];
    static float floats[EVERY];
    for (int t = 0; t < 2; t++) {
        if (!check_begin("kernels/%s/half/every %s", k->isa, locus_dtype_name(types[t]))) return;
        for (int i = 0; i < EVERY; i++) halves[i] = (uint16_t)i;
        k->widen(floats, 256, halves, 256, types[t], EVERY / 256, 256);
        k->narrow(again, 256, types[t], floats, 256, EVERY / 256, 256);
        for (int i = 0; i < EVERY; i++) {
            const float want = to_float((uint16_t)i, types[t]);
            if (isnan(want)) {
                CHECK(isnan(floats[i]) && isnan(to_float(again[i], types[t])), "%04x: no NaN", i);
                continue;
            }
            CHECK(!memcmp(&floats[i], &want, sizeof want), "%04x: %a, expected %a", i,
                  (double)floats[i], (double)want);
            CHECK(again[i] == halves[i], "%04x comes back as %04x", i, again[i]);
        }
    }
}

/* Numbers between two halves, at the middle and beside it; beyond the largest; special ones. */
static void test_rounding(const locus_kernels *k)
{
    static float from[4 * EVERY];
    static uint16_t to[4 * EVERY];
    for (int t = 0; t < 2; t++) {
        if (!check_begin("kernels/%s/half/rounding to %s", k->isa, locus_dtype_name(types[t])))
            return;
        int count = 0;
        for (uint32_t i = 0; i < EVERY; i += 3) {
            const float low = to_float((uint16_t)i, types[t]);
            const float high = to_float((uint16_t)(i + 1), types[t]);
            const float middle = (float)(((double)low + (double)high) / 2.0);
            if (!isfinite(low) || !isfinite(high) || is_subnormal(middle)) continue;
            from[count++] = middle;
            from[count++] = nextafterf(middle, INFINITY);
            from[count++] = nextafterf(middle, -INFINITY);
        }
        static const float special[] = {0.0f,     -0.0f,      65519.9f,  65520.0f, -65520.0f,
                                        1e30f,    3.4e38f,    -3.4e38f,  INFINITY, -INFINITY,
                                        0x1p-25f, 0x1.8p-25f, -0x1p-24f, 0x1p-26f, 0x1.FFp127f};
        memcpy(from + count, special, sizeof special);
        count += (int)(sizeof special / sizeof *special);
        k->narrow(to, 0, types[t], from, 0, 1, count);
        for (int i = 0; i < count; i++) {
            const double want = rounded((double)from[i], types[t]);
            const float found = to_float(to[i], types[t]);
            CHECK((double)found == want && !signbit(found) == !signbit(from[i]),
                  "%a: %a, expected %a", (double)from[i], (double)found, want);
        }
    }
}

/* Nothing is read or written beside the row: a tail of every length. */
static void test_tails(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/half/tails", k->isa)) return;
    enum { MOST = 40 };
    for (int t = 0; t < 2; t++)
        for (int width = 0; width < MOST; width++) {
            uint16_t halves[2 * MOST], again[2 * MOST];
            float floats[2 * MOST];
            for (int i = 0; i < 2 * MOST; i++) {
                halves[i] = (uint16_t)(0x3C00 + i);
                again[i] = 7;
                floats[i] = 7.0f;
            }
            k->widen(floats, MOST, halves, MOST, types[t], 2, width);
            k->narrow(again, MOST, types[t], floats, MOST, 2, width);
            for (int i = 0; i < 2 * MOST; i++) {
                const int inside = i % MOST < width;
                CHECK(floats[i] == (inside ? to_float(halves[i], types[t]) : 7.0f), "widen at %d",
                      i);
                CHECK(again[i] == (inside ? halves[i] : 7), "narrow at %d", i);
            }
        }
}

static uint16_t half_rows[ROOM];
static float float_rows[ROOM];

static void make_rows(const locus_kernels *k, locus_dtype type)
{
    k->narrow(half_rows, 0, type, B, 0, 1, ROOM);
    k->widen(float_rows, 0, half_rows, 0, type, 1, ROOM);
}

/* dots, mix and bad_rows have the same bits for halves as for the floats that these are. */
static void test_in_place(const locus_kernels *k)
{
    static float got[ROOM], want[ROOM];
    for (int t = 0; t < 2; t++) {
        if (!check_begin("kernels/%s/half/in place %s", k->isa, locus_dtype_name(types[t]))) return;
        const locus_dtype type = types[t];
        make_rows(k, type);
        for (int rows = 1; rows <= 8; rows += 7)
            for (int width = 1; width <= 130; width += width < 20 ? 1 : 22) {
                const locus_prefetch_rows ahead = {float_rows, 5, 20, rows};
                const int stride = width + 3, columns = 37;
                memcpy(got, before, sizeof got);
                memcpy(want, before, sizeof want);
                k->dots(got, 40, A, 140, half_rows, stride, type, rows, width, columns, B, 1,
                        ahead);
                k->dots(want, 40, A, 140, float_rows, stride, LOCUS_F32, rows, width, columns, B, 1,
                        ahead);
                CHECK(!memcmp(got, want, sizeof got), "dots of %d x %d", rows, width);
                k->mix(got, 140, A, 40, half_rows, stride, type, rows, columns, width, ahead);
                k->mix(want, 140, A, 40, float_rows, stride, LOCUS_F32, rows, columns, width,
                       ahead);
                CHECK(!memcmp(got, want, sizeof got), "mix of %d x %d", rows, width);
            }
    }
}

static void test_turned(const locus_kernels *k)
{
    enum { MOST = 37, ROW = 100 };
    for (int t = 0; t < 2; t++) {
        if (!check_begin("kernels/%s/half/turn_dots %s", k->isa, locus_dtype_name(types[t])))
            return;
        make_rows(k, types[t]);
        for (int pairs = 16; pairs <= 48; pairs += 16)
            for (int interleaved = 0; interleaved < 2; interleaved++) {
                float got[MOST], want[MOST];
                k->turn_dots(got, A, half_rows, ROW, types[t], before, pairs, interleaved, MOST, A,
                             (locus_prefetch_rows){0});
                k->turn_dots(want, A, float_rows, ROW, LOCUS_F32, before, pairs, interleaved, MOST,
                             A, (locus_prefetch_rows){0});
                CHECK(!memcmp(got, want, sizeof got), "%d pairs, interleaved %d", pairs,
                      interleaved);
            }
    }
}

static void test_bad(const locus_kernels *k)
{
    static const uint16_t bad_halves[2][3] = {{0x7C00, 0xFC00, 0x7E01}, {0x7F80, 0xFF80, 0x7FC1}};
    for (int t = 0; t < 2; t++) {
        if (!check_begin("kernels/%s/half/bad rows %s", k->isa, locus_dtype_name(types[t]))) return;
        for (int width = 1; width < 40; width++)
            for (int at = 0; at < width; at++) {
                uint16_t rows[5 * 40];
                uint8_t bad[5];
                for (int i = 0; i < 5 * 40; i++) rows[i] = (uint16_t)(0x0001 + 0x10 * i);
                CHECK(!k->bad_rows(bad, rows, 40, types[t], 5, width), "finite rows of %d", width);
                rows[3 * 40 + at] = bad_halves[t][at % 3];
                CHECK(k->bad_rows(bad, rows, 40, types[t], 5, width), "bad row of %d", width);
                CHECK(bad[3] && !bad[0] && !bad[1] && !bad[2] && !bad[4], "which row, %d", width);
            }
    }
}

/* Subnormal halves under the state that workers have, which flushes subnormal floats. */
static void convert_subnormal(void *context, size_t index, uint32_t worker)
{
    const locus_kernels *const *k = context;
    uint16_t halves[1024], again[1024];
    float floats[1024];
    (void)index;
    (void)worker;
    for (int i = 0; i < 1024; i++) halves[i] = (uint16_t)i;
    (*k)->widen(floats, 0, halves, 0, LOCUS_F16, 1, 1024);
    (*k)->narrow(again, 0, LOCUS_F16, floats, 0, 1, 1024);
    for (int i = 0; i < 1024; i++)
        CHECK(again[i] == i && floats[i] == (float)i * 0x1p-24f, "%04x", i);
}
static void test_flushed(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/half/subnormal halves on a worker", k->isa)) return;
    locus_parallel_for(1, 1, convert_subnormal, &k);
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_every,  test_rounding, test_tails,   test_in_place,
                                        test_turned, test_bad,      test_flushed, NULL};
    return test_kernels(argc, argv, "kernels/half", tests);
}
