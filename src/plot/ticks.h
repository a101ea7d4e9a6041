/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_TICKS_H
#define LOCUS_PLOT_TICKS_H

/* Where an axis has its numbers: multiples of 1, 2 or 5 times a power of ten. */

#include <stddef.h>

typedef struct plot_ticks {
    double first, step; /* tick i is first + i * step                          */
    size_t count;
    int digits; /* decimals that tell neighbours apart                          */
} plot_ticks;

/* Ticks inside [low, high], at most `most` (>= 2) of them; whole numbers only where `whole`. */
plot_ticks plot_ticks_between(double low, double high, size_t most, int whole);
double plot_tick(const plot_ticks *ticks, size_t index);

/* Decimals that a number of about this magnitude is shown with, so that `span` has three
 * significant figures. */
int plot_digits(double span);

#endif
