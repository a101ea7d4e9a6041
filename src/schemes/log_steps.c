/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/compiler.h"
#include "schemes/scheme.h"

/* T5 and DeBERTa cut distances into buckets of equal logarithm. Both need
 *     steps = power * log(x / unit) / log(most / unit)
 * rounded down or up, and both are famous for ties that a logarithm one ulp off
 * decides the wrong way. Here the quotient is decided in integers:
 *   - a tie steps = k means (x/unit)^power = (most/unit)^k, and equality of rational
 *     powers is decided exactly by taking integer roots;
 *   - most of the rest lies so far from a whole number that logarithms in double decide it,
 *     twenty times as fast;
 *   - everything else is decided by logarithms in fixed point with FRACTION bits, made
 *     by squaring. Their error is below 2^-103; two different powers of numbers up to 2^20
 *     with exponents up to 2^16 would have to agree in 85 bits to be told apart wrongly. */

enum { FRACTION = 104 };

/* The high 128 bits of a * a. */
static locus_u128 square_high(locus_u128 a)
{
    const uint64_t low = (uint64_t)a, high = (uint64_t)(a >> 64);
    const locus_u128 ll = (locus_u128)low * low;
    const locus_u128 lh = (locus_u128)low * high;
    const locus_u128 hh = (locus_u128)high * high;
    const locus_u128 middle = (ll >> 64) + 2 * (locus_u128)(uint64_t)lh;
    return hh + 2 * (lh >> 64) + (middle >> 64);
}

/* log2(x) * 2^FRACTION for x >= 1: y starts as x scaled into [1, 2); squaring y
 * doubles its logarithm, so each squaring yields one more bit. */
static locus_u128 log2_fixed(uint64_t x)
{
    int whole = 0;
    while (x >> (whole + 1) != 0) whole++;
    locus_u128 y = (locus_u128)x << (127 - whole); /* 1.0 is 2^127 */
    locus_u128 result = (locus_u128)(unsigned)whole;
    for (int bit = 0; bit < FRACTION; bit++) {
        y = square_high(y); /* now 1.0 is 2^126 */
        const int carry = (int)(y >> 127);
        if (!carry) y <<= 1;
        result = result << 1 | (unsigned)carry;
    }
    return result;
}

static int64_t gcd(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* base^exponent, or -1 when it exceeds `limit`. */
static int64_t power_within(int64_t base, int64_t exponent, int64_t limit)
{
    int64_t result = 1;
    for (; exponent > 0 && base > 1; exponent--) {
        if (result > limit / base) return -1;
        result *= base;
    }
    return result;
}

/* The integer whose `exponent`-th power is `value`, or 0 when there is none. */
static int64_t exact_root(int64_t value, int64_t exponent)
{
    if (exponent == 1) return value;
    for (int64_t root = 1; root <= value; root++) {
        const int64_t raised = power_within(root, exponent, value);
        if (raised == value) return root;
        if (raised < 0) return 0;
    }
    return 0;
}

/* (x/unit)^power == (most/unit)^k? With a, b = power, k over their gcd, coprime a and b
 * force most/unit = r^a and x/unit = r^b for one rational r. */
static int powers_equal(int64_t x, int64_t unit, int64_t most, int64_t power, int64_t k)
{
    if (k == 0) return x == unit || power == 0;
    if (power == 0) return 0;
    const int64_t common = gcd(power, k), a = power / common, b = k / common;
    const int64_t fraction = gcd(most, unit), ratio = gcd(x, unit);
    const int64_t above = exact_root(most / fraction, a), below = exact_root(unit / fraction, a);
    if (above == 0 || below == 0) return 0;
    return power_within(above, b, x) == x / ratio && power_within(below, b, unit) == unit / ratio;
}

/* The quotient of logarithms in double, wherever it is certain which whole numbers it lies between:
 * its error is below 3e-16 ((power + quotient) / log(most / unit) + 2 quotient), a thirtieth of the
 * margin. -1: it is not certain. */
static int64_t certain_steps(int64_t x, int64_t unit, int64_t most, int64_t power)
{
    const double step = log((double)most / (double)unit);
    const double quotient = (double)power * log((double)x / (double)unit) / step;
    const double margin = 1e-14 * ((double)power + quotient) / step + 1e-13 * (quotient + 1.0);
    const double below = floor(quotient);
    const int certain = quotient - below > margin && below + 1.0 - quotient > margin;
    return certain ? (int64_t)below : -1;
}

int64_t locus_log_steps(int64_t x, int64_t unit, int64_t most, int64_t power, int *exact)
{
    const int64_t certain = x == unit ? 0 : certain_steps(x, unit, most, power);
    *exact = x == unit;
    if (certain >= 0) return certain;
    const locus_u128 log_unit = log2_fixed((uint64_t)unit);
    const locus_u128 rise = log2_fixed((uint64_t)x) - log_unit;
    const locus_u128 step = log2_fixed((uint64_t)most) - log_unit;
    int64_t steps = (int64_t)(rise * (locus_u128)(uint64_t)power / step);
    /* An exact quotient may come out an ulp below the whole number. */
    if (powers_equal(x, unit, most, power, steps + 1)) steps++;
    *exact = powers_equal(x, unit, most, power, steps);
    return steps;
}
