/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/colour.h"

#include <math.h>

/* Sequential: the course of viridis, which rises in lightness all the way and is told apart
 * by all common kinds of colour vision, and in grey. */
static const uint32_t sequential[] = {
    0x440154, 0x482878, 0x3e4989, 0x31688e, 0x26828e,
    0x1f9e89, 0x35b779, 0x6ece58, 0xb5de2b, 0xfde725,
};

/* Diverging: blue - neutral - orange, a pair that every common kind of colour vision
 * separates. On light paper zero is light and the ends are dark; on dark paper it is the
 * other way round: what is near nothing looks like nothing. */
static const uint32_t diverging_light[] = {
    0x123a6b, 0x2a64a3, 0x5a93c8, 0x9dc0e0, 0xd5e4f0, 0xf7f7f5,
    0xf8e3c6, 0xefbf85, 0xd98f40, 0xb1631a, 0x6f3a0c,
};
static const uint32_t diverging_dark[] = {
    0xb4d8f7, 0x86b9e8, 0x5893cc, 0x3a6a9c, 0x2a4562, 0x26282c,
    0x57432a, 0x8a6231, 0xbf8639, 0xe4ae60, 0xf9d9a6,
};

/* Okabe and Ito's palette, ordered for contrast between neighbours. */
static const uint32_t series_light[PLOT_SERIES] = {
    0x0072b2, 0xd55e00, 0x009e73, 0xb5578d, 0xc98a00, 0x3a9bd9, 0x5c5c5c, 0x7a3e00,
};
static const uint32_t series_dark[PLOT_SERIES] = {
    0x56b4e9, 0xff8a3d, 0x2fcf9f, 0xe79fc6, 0xf0c23c, 0x9ad0f5, 0xb8b8b8, 0xd6a77a,
};

/* One colour per term of a score, wherever it is drawn. By the bits of LOCUS_TERM_: content, content-position,
 * position-content, position-position, bias, value, rotation, input; then what has no place, u.k, w.r. At least
 * 3 : 1 against the paper, and 15 apart in CIELAB for every common kind of colour vision (tests/plot). */
static const uint32_t term_light[PLOT_TERMS] = {
    0x27405c, 0xd93a00, 0xa61c8a, 0x056b40, 0x1f68f0, 0x721710,
    0x6914ad, 0x5f9230, 0x98788c, 0x8076c5, 0xc76069,
};
static const uint32_t term_dark[PLOT_TERMS] = {
    0xb7d4ee, 0xf0a845, 0xfa81b0, 0x34dc90, 0x5eacfa, 0xab6c44,
    0x8f62ff, 0xe8f55e, 0x707f70, 0x9967ae, 0xd84c10,
};

static const uint32_t plain_light[LOCUS_INK_SERIES] = {
    0xffffff, 0x1b1f24, 0x57606a, 0xe3e6ea, 0xe4e4e8,
};
static const uint32_t plain_dark[LOCUS_INK_SERIES] = {
    0x15181c, 0xe8eaed, 0xa3abb5, 0x30353c, 0x3a3d44,
};

static uint32_t mix(uint32_t a, uint32_t b, double share)
{
    uint32_t mixed = 0;
    for (unsigned shift = 0; shift <= 16; shift += 8) {
        const double from = a >> shift & 0xFF, to = b >> shift & 0xFF;
        mixed |= (uint32_t)lround(from + (to - from) * share) << shift;
    }
    return mixed;
}

static uint32_t along(const uint32_t *stops, size_t count, double place)
{
    const double at = place * (double)(count - 1);
    size_t i = (size_t)at;
    if (i > count - 2) i = count - 2;
    return mix(stops[i], stops[i + 1], at - (double)i);
}

static double linear(uint32_t channel)
{
    const double c = (double)channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4);
}

double plot_lightness(uint32_t colour)
{
    const double y = 0.2126 * linear(colour >> 16 & 0xFF) + 0.7152 * linear(colour >> 8 & 0xFF) +
                     0.0722 * linear(colour & 0xFF);
    return y <= 216.0 / 24389.0 ? y * 24389.0 / 27.0 : 116.0 * cbrt(y) - 16.0;
}

uint32_t locus_ink_colour(uint32_t ink, locus_theme theme)
{
    const int dark = theme == LOCUS_THEME_DARK;
    if ((ink & LOCUS_INK_ON) != 0)
        return plot_lightness(locus_ink_colour(ink & ~(uint32_t)LOCUS_INK_ON, theme)) > 50.0
                   ? 0x101418
                   : 0xffffff;
    if (ink < LOCUS_INK_SERIES) return dark ? plain_dark[ink] : plain_light[ink];
    if (ink < LOCUS_INK_SEQUENTIAL)
        return (dark ? series_dark : series_light)[ink - LOCUS_INK_SERIES];
    if (ink < LOCUS_INK_DIVERGING)
        return along(sequential, sizeof sequential / sizeof *sequential,
                     (double)(ink - LOCUS_INK_SEQUENTIAL) / (PLOT_SEQUENTIAL - 1));
    if (ink >= LOCUS_INK_COUNT) return 0;
    if (ink >= LOCUS_INK_TERM) return (dark ? term_dark : term_light)[ink - LOCUS_INK_TERM];
    return along(dark ? diverging_dark : diverging_light,
                 sizeof diverging_light / sizeof *diverging_light,
                 (double)(ink - LOCUS_INK_DIVERGING) / (PLOT_DIVERGING - 1));
}

uint32_t plot_series_ink(const locus_panel *panel, size_t s)
{
    const uint32_t own = panel->series[s].ink;
    return own > 0 && own < LOCUS_INK_COUNT ? own : LOCUS_INK_SERIES + (uint32_t)(s % PLOT_SERIES);
}

uint32_t plot_level(double value, double low, double high, locus_colours colours)
{
    const int steps = colours == LOCUS_COLOURS_DIVERGING ? PLOT_DIVERGING : PLOT_SEQUENTIAL;
    const uint32_t first =
        colours == LOCUS_COLOURS_DIVERGING ? LOCUS_INK_DIVERGING : LOCUS_INK_SEQUENTIAL;
    if (isnan(value)) return LOCUS_INK_HIDDEN;
    double share = high > low ? (value - low) / (high - low) : 0.5;
    share = share < 0.0 ? 0.0 : share > 1.0 ? 1.0 : share;
    return first + (uint32_t)lround(share * (steps - 1));
}

const double *locus_dash(int dash)
{
    static const double patterns[][7] = {
        {0}, {5, 2, 0}, {1.2, 1.8, 0}, {6, 2, 1.2, 2, 0}, {3, 1.5, 0}, {8, 3, 0},
    };
    const size_t count = sizeof patterns / sizeof *patterns;
    return patterns[(size_t)(dash < 0 ? 0 : dash) % count];
}
