/* SPDX-License-Identifier: Apache-2.0 */

/* Numbers from text, against strtod in the C locale: the same bits for random doubles printed with 1
 * to 40 digits, for midpoints of two doubles written out in full (up to 767 digits) and a hair beside
 * them, for the ends of the range, for random texts; and the same bytes as snprintf. */

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/decimal.h"
#include "core/number.h"
#include "core/print.h"
#include "support/check.h"

/* splitmix64 */
static uint64_t draw(void)
{
    static uint64_t state = 20261118;
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
static uint64_t below(uint64_t n) { return draw() % n; }

static double of_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t bits_of(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* 1: the same bits as strtod, and the same end. */
static int same(const char *text)
{
    char *end;
    double got = 7.0;
    const double want = strtod(text, &end);
    const size_t length = locus_read_real(text, &got);
    return CHECK(length == (size_t)(end - text) && (length == 0 || bits_of(got) == bits_of(want)),
                 "%.60s: found %a of %zu bytes, expected %a of %zu", text, got, length, want,
                 (size_t)(end - text));
}

static int64_t rounds(int64_t normal)
{
    return check_full() ? 20 * normal : check_sample() ? normal / 8 : normal;
}

static void test_printed(void)
{
    char text[96];
    if (!check_begin("numbers/decimal/printed")) return;
    for (int64_t i = 0; i < rounds(800000); i++) {
        const double value = of_bits(draw());
        if (!isfinite(value)) continue;
        snprintf(text, sizeof text, "%.*e", (int)below(40), value);
        if (!same(text)) return;
    }
}

/* Near 1, with few digits and a point: what files hold. */
static void test_plain(void)
{
    char text[96];
    if (!check_begin("numbers/decimal/plain")) return;
    for (int64_t i = 0; i < rounds(400000); i++) {
        const double value = ((double)below(2000000) - 1e6) / (double)(1 + below(100000));
        snprintf(text, sizeof text, "%.*f", (int)below(20), value);
        if (!same(text)) return;
    }
}

/* The middle of two doubles is a number of long double; its decimals end. */
static void test_midpoints(void)
{
    static char text[2048], beside[2064];
    if (!check_begin("numbers/decimal/midpoints")) return;
    if (LDBL_MANT_DIG < 64 || LDBL_MIN_EXP >= DBL_MIN_EXP) {
        check_skip("long double has no midpoints of double here");
        return;
    }
    for (int64_t i = 0; i < rounds(24000); i++) {
        const double low = of_bits(draw() >> 1), high = nextafter(low, INFINITY);
        if (!isfinite(low) || !isfinite(high)) continue;
        snprintf(text, sizeof text, "%.1100Lg", ((long double)low + (long double)high) / 2);
        if (!same(text)) return;
        if (strchr(text, '.') == NULL || strchr(text, 'e') != NULL) continue;
        snprintf(beside, sizeof beside, "%s000000001", text);
        if (!same(beside)) return;
        text[strlen(text) - 1]--; /* the last digit of a number that ends is 5 */
        if (!same(text)) return;
    }
}

/* Digits, a point and an exponent anywhere: more than MOST_DIGITS digits, powers beyond LEAST_POWER and
 * MOST_POWER. */
static void test_texts(void)
{
    static char text[1200];
    if (!check_begin("numbers/decimal/texts")) return;
    for (int64_t i = 0; i < rounds(60000); i++) {
        const size_t digits = 1 + below(below(8) == 0 ? 900 : 30);
        const size_t point = 1 + below(digits + 1), same_digit = below(3);
        size_t used = 0;
        if (below(2)) text[used++] = '-';
        for (size_t d = 0; d < digits; d++) {
            if (d == point) text[used++] = '.';
            text[used++] = (char)('0' + (same_digit == 0 ? 0 : same_digit == 1 ? 9 : below(10)));
        }
        if (below(10) == 0) text[used - 1] = '1';
        text[used] = '\0';
        if (below(2)) snprintf(text + used, 32, "e%s%d", below(2) ? "-" : "", (int)below(400));
        if (!same(text)) return;
    }
}

static void test_edges(void)
{
    static const char *const texts[] = {
        "0",
        "-0",
        "0.0",
        "-0e5",
        "0e999999999999999999999",
        "1e999999999999999999999",
        "1e-999999999999999999999",
        "-1e400",
        "1e309",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "2.2250738585072009e-308",
        "9007199254740993",
        "9007199254740992.999999999999999999999999999999999999999",
        "9007199254740993.0000000001",
        "1e23",
        "8.5e22",
        "6.8985000000000000e17",
        "0.1",
        "0.30000000000000004",
        "123456789012345678",
        "1e-330",
        "1e-331",
        "9e-331",
        "1e310",
        "1e311",
        "",
        "-",
        ".5",
        "5.",
        "5.e3",
        "5e",
        "5e+",
        "5e-x",
        "1,5",
        "1 ",
        "-.1",
        "--1",
        "e5",
        "18446744073709551616",
        "340282366920938463463374607431768211456",
    };
    static char zeros[4200];
    if (!check_begin("numbers/decimal/edges")) return;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value;
        if (texts[i][0] == '.' || strncmp(texts[i], "-.", 2) == 0) { /* strtod takes these */
            CHECK(locus_read_real(texts[i], &value) == 0, "a bare point");
        } else if (strncmp(texts[i], "5.", 2) == 0) {
            CHECK(locus_read_real(texts[i], &value) == 1 && value == 5.0, "a point without digits");
        } else {
            same(texts[i]);
        }
    }
    memset(zeros, '0', 4000);
    zeros[1] = '.';
    memcpy(zeros + 4000, "25e4000", 8); /* 2.5 */
    same(zeros);
    memset(zeros, '1', 4000);
    memcpy(zeros + 4000, "e-4000", 7);
    same(zeros);
    memcpy(zeros, "0.5", 3);
    memset(zeros + 3, '0', 3996); /* 0.5000...1 */
    memcpy(zeros + 3999, "1", 2);
    same(zeros);
}

/* The whole of a text, as JSON spells numbers. */
static void test_whole(void)
{
    static const char *const good[] = {"0", "-0", "1.5", "1e5", "-1.5E+10", "0.25e-3", "1e-400"};
    static const char *const bad[] = {"",    "-",   "01",   "-01",   "1.",  ".5",
                                      "1e",  "+1",  "1 ",   " 1",    "1,5", "1e5x",
                                      "nan", "inf", "0x10", "1e400", "00",  "1.5.2"};
    double value;
    if (!check_begin("numbers/decimal/whole")) return;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        CHECK(locus_parse_real(good[i], &value) && value == strtod(good[i], NULL), "%s", good[i]);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK(!locus_parse_real(bad[i], &value), "%s is taken", bad[i]);
}

/* ---- printing ---- */

static void print_reals(void)
{
    static const char *const formats[] = {"%g", "%.17g", "%.9g",  "%f",       "%.0f",
                                          "%e", "%+.3g", "% .4f", "%-12.3g|", "%012.3f",
                                          "%a", "%#.3g", "%E",    "%G",       "%.40f"};
    static const double hard[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e300, 5e-324, 0.1, -1234.5};
    char want[600], got[600];
    for (int64_t i = 0; i < rounds(20000); i++) {
        const size_t h = (size_t)i;
        const double value = h < sizeof hard / sizeof *hard ? hard[h] : of_bits(draw());
        for (size_t f = 0; f < sizeof formats / sizeof *formats; f++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
            const int length = snprintf(want, sizeof want, formats[f], value);
            const int found = locus_print(got, sizeof got, formats[f], value);
#pragma GCC diagnostic pop
            if (!CHECK(found == length && strcmp(got, want) == 0, "%s: \"%s\", expected \"%s\"",
                       formats[f], got, want))
                return;
        }
    }
}

#define SAME(capacity, ...)                                                                        \
    do {                                                                                           \
        char want_[160] = "x", got_[160] = "x";                                                    \
        const int length_ = snprintf(want_, capacity, __VA_ARGS__);                                \
        const int found_ = locus_print(got_, capacity, __VA_ARGS__);                               \
        CHECK(found_ == length_ && strcmp(got_, want_) == 0, "\"%s\" (%d), expected \"%s\" (%d)",  \
              got_, found_, want_, length_);                                                       \
    } while (0)

static void test_print(void)
{
    if (!check_begin("numbers/decimal/print")) return;
    print_reals();
    for (size_t capacity = 0; capacity <= 160; capacity += capacity < 70 ? 1 : 30) {
        SAME(capacity, "%s: found %g at %" PRId64 ", expected %.15g..%.15g%%", "base", -0.25,
             INT64_MIN, 1e-5, 12345678.25);
        SAME(capacity, "%d %i %u %x %X %o %c %zu %ld %lu %lld %llu %td", -7, 8, 9u, 255u, 255u, 8u,
             'c', (size_t)-1, -5L, 6ul, -7LL, 8ull, (ptrdiff_t)-9);
        SAME(capacity, "%*d|%-*s|%.*s|%.*f|%5.2f|%03d", 6, 42, 8, "left", 2, "cut", 3, 2.5, 1.125,
             7);
        SAME(capacity, "plain");
        SAME(capacity, "%" PRIu64 " %" PRIx64 " %jd %s", UINT64_MAX, UINT64_MAX, INTMAX_MIN, "");
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_printed();
    test_plain();
    test_midpoints();
    test_texts();
    test_edges();
    test_whole();
    test_print();
    return check_finish("numbers/decimal");
}
