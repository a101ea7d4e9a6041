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

plot_ticks plot_ticks_between(double low, double high, size_t most, int whole)
{
    plot_ticks ticks = {.first = low, .step = 1.0, .count = 1, .digits = 0};
    if (!(high > low) || !isfinite(high - low)) return ticks;
    double least = (high - low) / (double)(most > 2 ? most - 1 : 1);
    if (whole && least < 1.0) least = 1.0;
    ticks.step = nice_step(least);
    const double slack = 1e-9 * (high - low);
    ticks.first = ceil((low - slack) / ticks.step) * ticks.step;
    if (ticks.first > high + slack) { /* whole numbers only, and none inside */
        ticks.first = low;
        return ticks;
    }
    ticks.count = (size_t)floor((high + slack - ticks.first) / ticks.step) + 1;
    const double decimals = -floor(log10(ticks.step) + 1e-9);
    ticks.digits = decimals < 0 ? 0 : decimals > MOST_DIGITS ? MOST_DIGITS : (int)decimals;
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
