/* SPDX-License-Identifier: Apache-2.0 */

/* The rules below attention: bucket maps, slopes, random numbers. */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include <locus/scheme.h>

#include "core/random.h"
#include "support/check.h"
#include "support/problem.h"

static int64_t pick(uint64_t stream, uint64_t index, int64_t low, int64_t high)
{
    return low + (int64_t)(test_uniform(stream, index) * (double)(high - low + 1));
}

/* ---- an exact judge of logarithms: big integers ---- */

enum { LIMBS = 96 };
typedef struct big {
    uint32_t limb[LIMBS]; /* least significant first */
} big;

static void big_multiply(big *b, uint32_t factor)
{
    uint64_t carry = 0;
    for (int i = 0; i < LIMBS; i++) {
        carry += (uint64_t)b->limb[i] * factor;
        b->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    CHECK(carry == 0, "the judge's integers are too small");
}

/* a^i b^j */
static big big_product(int64_t a, int64_t i, int64_t b, int64_t j)
{
    big product = {.limb = {1}};
    for (; i > 0; i--) big_multiply(&product, (uint32_t)a);
    for (; j > 0; j--) big_multiply(&product, (uint32_t)b);
    return product;
}

static int big_compare(const big *a, const big *b)
{
    for (int i = LIMBS; i-- > 0;)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

/* Compare power log(x / unit) / log(most / unit) with k, that is x^power unit^k with
 * most^k unit^power. */
static int compare_steps(int64_t x, int64_t unit, int64_t most, int64_t power, int64_t k)
{
    const big left = big_product(x, power, unit, k), right = big_product(most, k, unit, power);
    return big_compare(&left, &right);
}

static int64_t naive_t5_bucket(int64_t rho, int64_t buckets, int64_t max_distance, int both)
{
    const int64_t side = both ? buckets / 2 : buckets, single = side / 2;
    const int64_t base = both && rho > 0 ? side : 0;
    const int64_t x = rho < 0 ? -rho : both ? rho : 0;
    if (x < single) return base + x;
    int64_t k = 0; /* the largest k that the logarithm reaches */
    while (single + k < side - 1 &&
           compare_steps(x, single, max_distance, side - single, k + 1) >= 0)
        k++;
    return base + single + k;
}

static int64_t naive_deberta_beta(int64_t delta, int64_t buckets, int64_t max_distance)
{
    const int64_t mid = buckets / 2, x = delta < 0 ? -delta : delta;
    if (x <= mid) return delta;
    int64_t k = 0; /* rounded up: the least k that the logarithm does not exceed */
    while (compare_steps(x, mid, max_distance - 1, mid - 1, k) > 0) k++;
    return delta < 0 ? -(mid + k) : mid + k;
}

static void check_t5_exact(int64_t buckets, int64_t max_distance, int both)
{
    if (!check_begin("property/t5-exact/%" PRId64 "-%" PRId64 "-%d", buckets, max_distance, both))
        return;
    const int64_t far = max_distance + 5;
    for (int64_t rho = -far; rho <= far; rho++) {
        const int64_t got = locus_t5_bucket(rho, buckets, max_distance, both);
        const int64_t want = naive_t5_bucket(rho, buckets, max_distance, both);
        CHECK(got == want, "rho %" PRId64 ": found %" PRId64 ", expected %" PRId64, rho, got, want);
    }
}

static void check_deberta_exact(int64_t buckets, int64_t max_distance)
{
    if (!check_begin("property/deberta-exact/%" PRId64 "-%" PRId64, buckets, max_distance)) return;
    for (int64_t delta = -max_distance - 20; delta <= max_distance + 20; delta++) {
        const int64_t got = locus_deberta_beta(delta, buckets, max_distance);
        const int64_t want = naive_deberta_beta(delta, buckets, max_distance);
        CHECK(got == want, "delta %" PRId64 ": found %" PRId64 ", expected %" PRId64, delta, got,
              want);
    }
}

/* ---- shape of the maps at any setting ---- */

/* Distances to look at: all small ones, then about `count` spread up to the limit, each
 * with its neighbours. */
static int64_t next_distance(int64_t x, int64_t limit, int64_t count)
{
    const int64_t stride = limit / count;
    if (x < 64 || stride < 4) return x + 1;
    const int64_t rest = x % stride;
    return rest < 2 || rest == stride - 1 ? x + 1 : x - rest + stride - 1;
}

static void check_t5_monotone(int64_t buckets, int64_t max_distance, int both)
{
    if (!check_begin("property/t5-monotone/%" PRId64 "-%" PRId64 "-%d", buckets, max_distance,
                     both))
        return;
    const int64_t side = both ? buckets / 2 : buckets;
    const int64_t count = check_sample() ? 200 : 2000;
    int64_t before = 0;
    for (int64_t x = 0; x <= max_distance + 3; x = next_distance(x, max_distance, count)) {
        const int64_t past = locus_t5_bucket(-x, buckets, max_distance, both);
        const int64_t future = locus_t5_bucket(x, buckets, max_distance, both);
        CHECK(past >= before && past < side, "distance %" PRId64 ": bucket %" PRId64, x, past);
        CHECK(future == (!both    ? 0
                         : x == 0 ? 0
                                  : past + side),
              "distance %" PRId64 ": future bucket %" PRId64, x, future);
        CHECK(x >= side / 2 || past == x, "distance %" PRId64 " has no bucket of its own", x);
        before = past;
    }
    const int64_t last = locus_t5_bucket(-max_distance, buckets, max_distance, both);
    CHECK(last == side - 1, "max_distance falls into bucket %" PRId64, last);
}

static void check_deberta_monotone(int64_t buckets, int64_t max_distance)
{
    if (!check_begin("property/deberta-monotone/%" PRId64 "-%" PRId64, buckets, max_distance))
        return;
    const int64_t count = check_sample() ? 200 : 2000;
    int64_t before = 0;
    for (int64_t x = 0; x <= max_distance + 3; x = next_distance(x, max_distance, count)) {
        const int64_t beta = locus_deberta_beta(x, buckets, max_distance);
        CHECK(beta >= before, "distance %" PRId64 ": beta %" PRId64 " after %" PRId64, x, beta,
              before);
        CHECK(locus_deberta_beta(-x, buckets, max_distance) == -beta, "beta is not odd at %" PRId64,
              x);
        CHECK(x > buckets / 2 || beta == x, "distance %" PRId64 " has no row of its own", x);
        before = beta;
    }
    const int64_t last = locus_deberta_beta(max_distance - 1, buckets, max_distance);
    CHECK(last == buckets / 2 * 2 - 1, "max_distance - 1 gives beta %" PRId64, last);
}

static void check_buckets(void)
{
    const int64_t exact_limit = check_sample() ? 24 : check_full() ? 200 : 64;
    for (int64_t buckets = 2; buckets <= 12; buckets++)
        for (int64_t most = 2; most <= exact_limit; most += check_sample() ? 5 : 1)
            for (int both = 0; both <= (buckets % 2 == 0 && buckets >= 4); both++)
                if (most > (both ? buckets / 4 : buckets / 2)) check_t5_exact(buckets, most, both);
    check_t5_exact(3, 9, 0); /* ties: 3^2 = 9^1 */
    check_t5_exact(6, 25, 1);
    check_deberta_exact(6, 28);
    check_t5_exact(32, 128, 1);
    check_t5_exact(32, 128, 0);
    check_t5_exact(64, 256, 1);
    check_t5_exact(24, 96, 0);
    for (int64_t buckets = 2; buckets <= 16; buckets++)
        for (int64_t most = buckets / 2 + 2; most <= exact_limit; most += check_sample() ? 7 : 1)
            check_deberta_exact(buckets, most);
    check_deberta_exact(32, 128);
    check_deberta_exact(64, 257);

    check_t5_monotone(65536, 1 << 20, 0);
    check_t5_monotone(65536, 1 << 20, 1);
    check_t5_monotone(65536, 32769, 0);
    check_t5_monotone(2, 1 << 20, 0);
    check_t5_monotone(4, 1 << 20, 1);
    check_t5_monotone(65534, 16384, 1);
    check_deberta_monotone(65536, 1 << 20);
    check_deberta_monotone(65536, 32770);
    check_deberta_monotone(2, 1 << 20);
    check_deberta_monotone(4, 1 << 20);
    for (uint64_t i = 0; i < (check_sample() ? 10u : 60u); i++) {
        const int both = (int)(i & 1);
        const int64_t half = pick(71, 2 * i, 2, pick(72, i, 2, 5000)), buckets = 2 * half;
        const int64_t most = pick(73, i, buckets / 2 + 2, pick(74, i, buckets, 1 << 20));
        check_t5_monotone(buckets, most, both);
        check_deberta_monotone(buckets, most);
    }
}

/* ---- slopes ---- */

static void check_slopes(void)
{
    if (check_begin("property/alibi-slopes/8"))
        for (int h = 0; h < 8; h++)
            CHECK(locus_alibi_slope(h, 8) == ldexp(1.0, -(h + 1)), "head %d: %.17g", h,
                  locus_alibi_slope(h, 8));
    static const double twelve[] = {0.5,
                                    0.25,
                                    0.125,
                                    0.0625,
                                    0.03125,
                                    0.015625,
                                    0.0078125,
                                    0.00390625,
                                    0.70710678118654752,
                                    0.35355339059327376,
                                    0.17677669529663688,
                                    0.08838834764831844};
    if (check_begin("property/alibi-slopes/12"))
        for (int h = 0; h < 12; h++)
            CHECK(fabs(locus_alibi_slope(h, 12) - twelve[h]) <= 1e-16, "head %d: %.17g", h,
                  locus_alibi_slope(h, 12));
    if (check_begin("property/alibi-slopes/16"))
        for (int h = 0; h < 16; h++)
            CHECK(fabs(locus_alibi_slope(h, 16) - pow(2.0, -0.5 * (h + 1))) <= 1e-16, "head %d", h);
    if (check_begin("property/alibi-slopes/1"))
        CHECK(locus_alibi_slope(0, 1) == ldexp(1.0, -8), "%.17g", locus_alibi_slope(0, 1));
}

/* ---- random numbers: the known answers of Random123 for philox4x32-10 ---- */

static void check_philox(void)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5u, 0xe169c58du, 0xbc57ac4cu, 0x9b00dbd8u}},
        {{0xffffffffu, 0xffffffffu, 0xffffffffu, 0xffffffffu},
         {0xffffffffu, 0xffffffffu},
         {0x408f276du, 0x41c83b0eu, 0xa20bc7c6u, 0x6d5451fdu}},
        {{0x243f6a88u, 0x85a308d3u, 0x13198a2eu, 0x03707344u},
         {0xa4093822u, 0x299f31d0u},
         {0xd16cfe09u, 0x94fdccebu, 0x5001e420u, 0x24126ea1u}},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (!check_begin("property/philox/%zu", i)) continue;
        uint32_t out[4];
        locus_philox(known[i].key, known[i].counter, out);
        for (int w = 0; w < 4; w++)
            CHECK(out[w] == known[i].out[w], "word %d: %08" PRIx32 ", expected %08" PRIx32, w,
                  out[w], known[i].out[w]);
    }
}

/* The pair (m, n) of head h, batch b reads word n mod 4 of counter (n / 4, m, h, b). */
static void check_dropout_words(void)
{
    if (check_begin("property/dropout/words")) {
        const uint64_t seed = 0x0123456789abcdefu;
        const uint32_t key[2] = {0x89abcdefu, 0x01234567u},
                       threshold = locus_dropout_threshold(0.3);
        CHECK(threshold == 1288490188u, "floor(0.3 2^32) is %" PRIu32, threshold);
        for (uint32_t n = 0; n < 64; n++) {
            const uint32_t counter[4] = {n / 4, 5, 3, 2};
            uint32_t out[4];
            locus_philox(key, counter, out);
            CHECK(locus_dropout_keeps(seed, threshold, 2, 3, 5, n) == (out[n % 4] >= threshold),
                  "key %" PRIu32, n);
        }
    }
    if (check_begin("property/dropout/rate")) {
        const uint32_t threshold = locus_dropout_threshold(0.3);
        int kept = 0;
        for (uint32_t m = 0; m < 200; m++)
            for (uint32_t n = 0; n < 500; n++)
                kept += locus_dropout_keeps(42, threshold, 0, 0, m, n);
        CHECK(abs(kept - 70000) < 900, "kept %d of 100000 with p = 0.3", kept); /* 6 sigma */
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    check_philox();
    check_dropout_words();
    check_slopes();
    check_buckets();
    return check_finish("property/rules");
}
