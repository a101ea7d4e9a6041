/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_COLOUR_H
#define LOCUS_PLOT_COLOUR_H

#include <locus/plot.h>

enum { PLOT_SERIES = 8, PLOT_SEQUENTIAL = 64, PLOT_DIVERGING = 65, PLOT_TERMS = 11 };

/* The ink of a value of a heatmap whose colours run from `low` to `high`; `low` = -`high`
 * when diverging. NaN: LOCUS_INK_HIDDEN. */
uint32_t plot_level(double value, double low, double high, locus_colours colours);

/* The ink of series `s` of a panel: its own, or by its place. */
uint32_t plot_series_ink(const locus_panel *panel, size_t s);

/* CIE lightness, 0 .. 100, of 0xRRGGBB. */
double plot_lightness(uint32_t colour);

#endif
