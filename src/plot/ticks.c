/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/ticks.h"

#include <math.h>

enum { MOST_DIGITS = 6 };

static double nice_step(double least)
{
    const double power = pow(10.0, floor(log10(least)));
    const double steps[] = {1.0, 2.0, 5.0};
    for (size_t i = 0; i < 3; i++)
        if (steps[i] * power >= least * (1.0 - 1e-9)) return steps[i] * power;
    return 10.0 * power;
}

/* Multiples of `step` from low to high. */
static size_t multiples(double low, double high, double step)
{
    const double slack = 1e-9 * (high - low);
    const double count = floor((high + slack) / step) - ceil((low - slack) / step) + 1.0;
    return count > 0.0 ? (size_t)count : 0;
}

/* Below three numbers an axis tells no scale: then a smaller step, where there is room. */
static double readable_step(double low, double high, double step, size_t most)
{
    static const double shares[] = {0.5, 0.4, 0.2};
    for (size_t i = 0; multiples(low, high, step) < 3 && i < 3; i++) {
        const double smaller = shares[i] * step;
        const size_t count = multiples(low, high, smaller);
        if (count >= 3 && count <= most) return smaller;
    }
    return step;
}

/* Decimals with which multiples of `step` are exact. */
static int digits_of(double step)
{
    int digits = 0;
    for (double scaled = step; digits < MOST_DIGITS; digits++, scaled *= 10.0)
        if (fabs(scaled - floor(scaled + 0.5)) < 1e-6 * scaled) break;
    return digits;
}

plot_ticks plot_ticks_between(double low, double high, size_t most, int whole)
{
    plot_ticks ticks = {.first = low, .step = 1.0, .count = 1, .digits = 0};
    if (!(high > low) || !isfinite(high - low)) return ticks;
    double least = (high - low) / (double)(most > 2 ? most - 1 : 1);
    if (whole && least < 1.0) least = 1.0;
    ticks.step = nice_step(least);
    if (!whole) ticks.step = readable_step(low, high, ticks.step, most);
    if (multiples(low, high, ticks.step) == 0) return ticks; /* whole numbers only, none inside */
    ticks.first = ceil((low - 1e-9 * (high - low)) / ticks.step) * ticks.step;
    ticks.count = multiples(low, high, ticks.step);
    ticks.digits = digits_of(ticks.step);
    return ticks;
}

double plot_tick(const plot_ticks *ticks, size_t index)
{
    return ticks->first + (double)index * ticks->step;
}

int plot_digits(double span)
{
    if (!(span > 0) || !isfinite(span)) return 0;
    const double decimals = 1.0 - floor(log10(0.99 * span));
    return decimals < 0 ? 0 : decimals > MOST_DIGITS ? MOST_DIGITS : (int)decimals;
}
