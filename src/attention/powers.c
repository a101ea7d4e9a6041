/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/powers.h"

#include <math.h>

void locus_powers_begin(locus_powers *p, const double *rates, int64_t count, int grows)
{
    p->rates = rates;
    p->count = count;
    p->grows = grows;
    p->a = p->b = -1;
    p->has_coarse = 0;
    p->fine_count = 0;
}

static void set_one(locus_power_row *to, int64_t from)
{
    for (int64_t t = from; t < POWER_PAIRS; t++) {
        to->x[t] = 1.0;
        to->y[t] = 0.0;
    }
}

/* Pairs that do not exist stay at 1. */
static void compute(const locus_powers *p, locus_power_row *to, int64_t exponent)
{
    set_one(to, exponent == 0 ? 0 : p->count);
    if (exponent == 0) return;
    for (int64_t t = 0; p->grows && t < p->count; t++)
        to->x[t] = exp((double)exponent * p->rates[t]);
    for (int64_t t = 0; !p->grows && t < p->count; t++) {
        const double angle = (double)exponent * p->rates[t];
        to->x[t] = cos(angle);
        to->y[t] = sin(angle);
    }
}

static void multiply(const locus_powers *p, locus_power_row *restrict to,
                     const locus_power_row *restrict u, const locus_power_row *restrict v)
{
    if (p->grows) {
        for (int t = 0; t < POWER_PAIRS; t++) to->x[t] = u->x[t] * v->x[t];
        return;
    }
    for (int t = 0; t < POWER_PAIRS; t++) {
        to->x[t] = u->x[t] * v->x[t] - u->y[t] * v->y[t];
        to->y[t] = u->x[t] * v->y[t] + u->y[t] * v->x[t];
    }
}

/* z^c, c < POWER_FINE: by products of z. */
static const locus_power_row *fine_power(locus_powers *p, int64_t c)
{
    if (p->fine_count == 0) {
        compute(p, &p->fine[1], 1);
        p->fine_count = 2;
    }
    for (; p->fine_count <= c; p->fine_count++)
        multiply(p, &p->fine[p->fine_count], &p->fine[p->fine_count - 1], &p->fine[1]);
    return &p->fine[c];
}

/* z^(4 b), b < POWER_COARSE. */
static const locus_power_row *coarse_power(locus_powers *p, int64_t b)
{
    if ((p->has_coarse >> b & 1u) == 0) compute(p, &p->coarse[b], b * POWER_FINE);
    p->has_coarse |= 1u << b;
    return &p->coarse[b];
}

const locus_power_row *locus_powers_at(locus_powers *p, int64_t exponent)
{
    const int64_t a = exponent / (POWER_FINE * POWER_COARSE), b = exponent / POWER_FINE;
    const int64_t c = exponent % POWER_FINE;
    if (a != p->a) compute(p, &p->far, a * POWER_FINE * POWER_COARSE);
    if (b != p->b) multiply(p, &p->near, &p->far, coarse_power(p, b % POWER_COARSE));
    p->a = a;
    p->b = b;
    if (c == 0) return &p->near;
    multiply(p, &p->now, &p->near, fine_power(p, c));
    return &p->now;
}
