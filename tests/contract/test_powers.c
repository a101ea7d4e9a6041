/* SPDX-License-Identifier: Apache-2.0 */
/* The powers that rotations and gains are made of: near to cos, sin and exp at any exponent, and the
 * same whatever was asked before. */

#include <math.h>
#include <string.h>

#include "attention/powers.h"
#include "support/check.h"

static double rates[POWER_PAIRS];

static void set_rates(int grows)
{
    for (int t = 0; t < POWER_PAIRS; t++)
        rates[t] = grows ? -0.004 * t / POWER_PAIRS : pow(10000.0, -(double)t / POWER_PAIRS);
}

/* |p rate| 2^-53 for the angle, which is rounded once here as there; 2e-15 for the products. */
static int is_near(double found, double want, double angle)
{
    return fabs(found - want) <= (2e-15 + 3.0 * fabs(angle) * 0x1p-53) * fmax(1.0, fabs(want));
}

static int row_is_near(const locus_power_row *row, int64_t count, int64_t exponent, int grows)
{
    int near = 1;
    for (int64_t t = 0; t < count; t++) {
        const double at = (double)exponent * rates[t];
        near &= is_near(row->x[t], grows ? exp(at) : cos(at), at);
        if (!grows) near &= is_near(row->y[t], sin(at), at);
    }
    return near;
}

/* Exponents around the ends of fine and coarse steps, and far away. */
static int64_t exponent_of(int i)
{
    static const int64_t steps[] = {POWER_FINE, POWER_FINE * POWER_COARSE,
                                    10 * POWER_FINE * POWER_COARSE, 1000003};
    return i < 12 ? steps[i / 3] + i % 3 - 1 : i - 12;
}
enum { EXPONENTS = 12 + 300 };

static void test_values(int grows, int64_t count)
{
    if (!check_begin("powers/%s/%d", grows ? "gains" : "turns", (int)count)) return;
    locus_powers up, down, alone;
    set_rates(grows);
    locus_powers_begin(&up, rates, count, grows);
    locus_powers_begin(&down, rates, count, grows);
    for (int i = EXPONENTS; i-- > 0;) locus_powers_at(&down, exponent_of(i));
    for (int i = 0; i < EXPONENTS; i++) {
        const int64_t exponent = exponent_of(i);
        const locus_power_row *row = locus_powers_at(&up, exponent);
        CHECK(row_is_near(row, count, exponent, grows), "exponent %d", (int)exponent);
        locus_powers_begin(&alone, rates, count, grows);
        const size_t bytes = (size_t)count * sizeof(double);
        const locus_power_row *others[] = {locus_powers_at(&alone, exponent),
                                           locus_powers_at(&down, exponent)};
        for (int k = 0; k < 2; k++)
            CHECK(!memcmp(row->x, others[k]->x, bytes) &&
                      (grows || !memcmp(row->y, others[k]->y, bytes)),
                  "exponent %d depends on those before it", (int)exponent);
    }
}

/* An angle beyond all doubles has no cosine; position 0 is not turned. */
static void test_endless(void)
{
    if (!check_begin("powers/endless")) return;
    locus_powers p;
    rates[0] = 1e308;
    locus_powers_begin(&p, rates, 1, 0);
    CHECK(locus_powers_at(&p, 0)->x[0] == 1.0 && locus_powers_at(&p, 0)->y[0] == 0.0, "position 0");
    CHECK(isfinite(locus_powers_at(&p, 1)->x[0]), "position 1");
    CHECK(isnan(locus_powers_at(&p, 100)->x[0]), "position 100");
}

int main(int argc, char **argv)
{
    static const int64_t counts[] = {1, POWER_PAIRS - 1, POWER_PAIRS};
    if (!check_args(argc, argv)) return 2;
    for (int grows = 0; grows < 2; grows++)
        for (int i = 0; i < 3; i++) test_values(grows, counts[i]);
    test_endless();
    return check_finish("contract/powers");
}
