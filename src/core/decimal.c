/* SPDX-License-Identifier: Apache-2.0 */
#include "core/decimal.h"

#include <stdint.h>
#include <string.h>

/* D 10^e = (D 2^s / 5^-e) 2^(e - s): a whole number of at least 66 bits, and whether anything was cut
 * behind it. Dividing by 5 again and again cuts the same as dividing once, so every step is a
 * division by one word. More digits than a midpoint of doubles can have (767) act as one that is
 * not 0. */
enum { MOST_DIGITS = 800, LIMBS = 96, QUOTIENT_BITS = 66 };

/* Decimals outside of these are 0 or infinite: 10^-330 < 2^-1076, 10^310 > 2^1024. */
enum { LEAST_POWER = -330, MOST_POWER = 310, FAR = 1 << 30 };

typedef struct whole {
    uint32_t limb[LIMBS]; /* the lowest first */
    size_t count;
} whole;

static void multiply_add(whole *w, uint32_t factor, uint32_t term)
{
    uint64_t carry = term;
    for (size_t i = 0; i < w->count; i++) {
        carry += (uint64_t)w->limb[i] * factor;
        w->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0) w->limb[w->count++] = (uint32_t)carry;
}

/* Returns the remainder. */
static uint32_t divide(whole *w, uint32_t divisor)
{
    uint64_t rest = 0;
    for (size_t i = w->count; i-- > 0;) {
        rest = rest << 32 | w->limb[i];
        w->limb[i] = (uint32_t)(rest / divisor);
        rest %= divisor;
    }
    while (w->count > 0 && w->limb[w->count - 1] == 0) w->count--;
    return (uint32_t)rest;
}

static int bits_of(const whole *w)
{
    if (w->count == 0) return 0;
    int bits = 32 * (int)(w->count - 1);
    for (uint32_t top = w->limb[w->count - 1]; top != 0; top >>= 1) bits++;
    return bits;
}

static void shift_up(whole *w, int by)
{
    const size_t limbs = (size_t)by / 32;
    multiply_add(w, (uint32_t)1 << (by % 32), 0);
    memmove(w->limb + limbs, w->limb, w->count * sizeof *w->limb);
    memset(w->limb, 0, limbs * sizeof *w->limb);
    w->count += limbs;
}

static uint64_t limb_of(const whole *w, int at)
{
    return at >= 0 && at < (int)w->count ? w->limb[at] : 0;
}

/* The 64 bits from bit `at` on, counted from the lowest; 0 beyond both ends. */
static uint64_t bits_from(const whole *w, int at)
{
    if (at < 0) return at > -64 ? bits_from(w, 0) << -at : 0;
    const int limb = at / 32, by = at % 32;
    const uint64_t low = limb_of(w, limb) | limb_of(w, limb + 1) << 32;
    return by == 0 ? low : low >> by | limb_of(w, limb + 2) << (64 - by);
}

static int any_below(const whole *w, int at)
{
    if (at <= 0) return 0;
    for (int i = 0; i < at / 32; i++)
        if (limb_of(w, i) != 0) return 1;
    return (limb_of(w, at / 32) & (((uint64_t)1 << (at % 32)) - 1)) != 0;
}

/* The double next to w 2^power, w > 0; `cut`: a little more than that. Put together from bits. */
static double round_bits(const whole *w, int power, int cut)
{
    enum { DIGITS = 53, LEAST = -1074, MOST = 971 };
    const int bits = bits_of(w);
    int last = power + bits - DIGITS; /* the power of the last bit that is kept */
    if (last < LEAST) last = LEAST;
    const int from = last - power;
    uint64_t kept = from < bits ? bits_from(w, from) : 0, pattern;
    const int half = from > 0 && (bits_from(w, from - 1) & 1);
    if (half && (cut || any_below(w, from - 1) || (kept & 1))) kept++;
    if (kept >> DIGITS) {
        kept >>= 1;
        last++;
    }
    if (last > MOST)
        pattern = (uint64_t)0x7FF << 52;
    else if (kept >> (DIGITS - 1))
        pattern = (uint64_t)(last - LEAST + 1) << 52 | (kept & (((uint64_t)1 << 52) - 1));
    else
        pattern = kept;
    double value;
    memcpy(&value, &pattern, sizeof value);
    return value;
}

/* D 10^power, D > 0 and at most MOST_DIGITS + 1 digits. */
static double scale_up(whole *w, int power)
{
    static const uint32_t fives[] = {1,       5,        25,        125,       625,
                                     3125,    15625,    78125,     390625,    1953125,
                                     9765625, 48828125, 244140625, 1220703125};
    enum { STEP = 13 }; /* 5^13 fits in a word */
    int left = power < 0 ? -power : power, shift = 0, cut = 0;
    if (power < 0) { /* 5^n has at most 7/3 n + 1 bits */
        shift = QUOTIENT_BITS + 7 * left / 3 + 1 - bits_of(w);
        if (shift > 0)
            shift_up(w, shift);
        else
            shift = 0;
    }
    for (; left > 0; left -= STEP) {
        const uint32_t five = fives[left < STEP ? left : STEP];
        if (power < 0)
            cut |= divide(w, five) != 0;
        else
            multiply_add(w, five, 0);
    }
    return round_bits(w, power - shift, cut);
}

/* ---- text ---- */

typedef struct decimal {
    whole digits;
    int count, cut; /* significant digits in `digits`; 1: others behind them are not all 0 */
    int64_t power;  /* of the last digit in `digits` */
} decimal;

static const char *read_digits(decimal *d, const char *at, int behind_point)
{
    for (; *at >= '0' && *at <= '9'; at++) {
        const uint32_t digit = (uint32_t)(*at - '0');
        if (d->count < MOST_DIGITS) {
            if (d->count > 0 || digit > 0) {
                multiply_add(&d->digits, 10, digit);
                d->count++;
            }
            d->power -= behind_point;
        } else {
            d->cut |= digit > 0;
            d->power += !behind_point;
        }
    }
    return at;
}

static const char *read_exponent(const char *at, int64_t *power)
{
    const char *digit = at + 1 + (at[1] == '+' || at[1] == '-');
    int64_t size = 0;
    if (*digit < '0' || *digit > '9') return at;
    for (; *digit >= '0' && *digit <= '9'; digit++)
        if (size < FAR) size = 10 * size + (*digit - '0');
    *power += at[1] == '-' ? -size : size;
    return digit;
}

static double value_of(decimal *d)
{
    static const whole one = {.limb = {1}, .count = 1};
    if (d->count == 0) return 0.0;
    if (d->count + d->power > MOST_POWER) return round_bits(&one, MOST_POWER * 4, 0);
    if (d->count + d->power < LEAST_POWER) return 0.0;
    if (d->cut) {
        multiply_add(&d->digits, 10, 1);
        d->power--;
    }
    return scale_up(&d->digits, (int)d->power);
}

size_t locus_read_real(const char *text, double *value)
{
    decimal d = {.digits = {.count = 0}};
    const int negative = text[0] == '-';
    const char *first = text + negative, *at = read_digits(&d, first, 0);
    if (at == first) return 0;
    if (at[0] == '.' && at[1] >= '0' && at[1] <= '9') at = read_digits(&d, at + 1, 1);
    if (*at == 'e' || *at == 'E') at = read_exponent(at, &d.power);
    *value = value_of(&d);
    if (negative) *value = -*value;
    return (size_t)(at - text);
}
