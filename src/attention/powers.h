/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_POWERS_H
#define LOCUS_ATTENTION_POWERS_H

/* z_t^p for some pairs t and many exponents p, as z^(64 a) z^(4 b) z^c, p = 64 a + 4 b + c. Factors
 * are kept, so that n consecutive exponents take about n / 64 + 16 cosines and sines, or
 * exponentials, per pair instead of n. What comes out depends on p alone, not on the exponents
 * before it. No factor has a greater exponent than p, so none has a greater error by the rounding of
 * its angle; four products add 1e-15 at most, which a float does not show. */

#include <stdint.h>

enum {
    POWER_PAIRS = 16, /* at a time: 6 KB of factors, on the stack */
    POWER_FINE = 4,
    POWER_COARSE = 16
};

typedef struct locus_power_row {
    double x[POWER_PAIRS], y[POWER_PAIRS]; /* real and imaginary part; y not where z is real */
} locus_power_row;

typedef struct locus_powers {
    const double *rates;
    int64_t count; /* of pairs */
    int grows;     /* z = e^rate, else e^(i rate) */
    int64_t a, b;  /* far = z^(64 a), near = z^(4 b); -1: nothing is there yet */
    locus_power_row far, near, now;
    locus_power_row coarse[POWER_COARSE], fine[POWER_FINE];
    uint32_t has_coarse; /* bits */
    int64_t fine_count;  /* made so far; 0: none */
} locus_powers;

void locus_powers_begin(locus_powers *p, const double *rates, int64_t count, int grows);

/* exponent >= 0; valid until the next call */
const locus_power_row *locus_powers_at(locus_powers *p, int64_t exponent);

#endif
