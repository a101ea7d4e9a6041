/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "plot/layout.h"

size_t plot_categories(const locus_panel *panel)
{
    size_t most = 0;
    for (size_t s = 0; s < panel->series_count; s++)
        if (panel->series[s].count > most) most = panel->series[s].count;
    return most;
}

static double value_of(const locus_series *series, size_t i)
{
    return i < series->count && isfinite(series->y[i]) ? series->y[i] : 0.0;
}

/* Sums of the positive and of the negative parts of category i, or their extremes. */
static void reach(const locus_panel *panel, size_t i, double *low, double *high)
{
    double down = 0, up = 0;
    for (size_t s = 0; s < panel->series_count; s++) {
        const double value = value_of(&panel->series[s], i);
        if (panel->kind == LOCUS_PANEL_STACK) {
            down += fmin(value, 0);
            up += fmax(value, 0);
        } else {
            down = fmin(down, value);
            up = fmax(up, value);
        }
    }
    *low = fmin(*low, down);
    *high = fmax(*high, up);
}

void plot_bars_limits(plot_frame *frame, const locus_panel *panel)
{
    double low = 0, high = 0;
    for (size_t i = 0; i < plot_categories(panel); i++) reach(panel, i, &low, &high);
    const double air = high > low ? 0.05 * (high - low) : 1.0;
    frame->y.low = panel->y.high > panel->y.low ? panel->y.low : low < 0 ? low - air : 0;
    frame->y.high = panel->y.high > panel->y.low ? panel->y.high : high > 0 ? high + air : air;
}

static void draw_bar(plot_pen *pen, const plot_frame *frame, uint32_t ink, double x, double width,
                     double from, double to)
{
    const double bottom = frame->top + frame->h;
    const double a = bottom - plot_axis_place(&frame->y, fmin(from, to));
    const double b = bottom - plot_axis_place(&frame->y, fmax(from, to));
    if (a > b) plot_box(pen, ink, frame->left + x, b, width, a - b);
}

static void draw_category(plot_pen *pen, const locus_panel *panel, const plot_frame *frame,
                          size_t i, double each)
{
    const int stacked = panel->kind == LOCUS_PANEL_STACK;
    const double wide = 0.8 * each / (stacked ? 1.0 : (double)panel->series_count);
    double up = 0, down = 0;
    for (size_t s = 0; s < panel->series_count; s++) {
        const double value = value_of(&panel->series[s], i);
        const double x = ((double)i + 0.1) * each + (stacked ? 0.0 : (double)s * wide);
        double *base = value < 0 ? &down : &up;
        const double from = stacked ? *base : 0.0;
        draw_bar(pen, frame, plot_series_ink(panel, s), x, wide, from, from + value);
        *base += value;
    }
}

void plot_bars_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    const size_t categories = plot_categories(panel);
    for (size_t i = 0; i < frame->y.ticks.count; i++) {
        const double y =
            frame->top + frame->h - plot_axis_place(&frame->y, plot_tick(&frame->y.ticks, i));
        plot_line(pen, LOCUS_INK_GRID, 0.8, frame->left, y, frame->left + frame->w, y);
    }
    for (size_t i = 0; i < categories; i++)
        draw_category(pen, panel, frame, i, frame->w / (double)categories);
    const double zero = frame->top + frame->h - plot_axis_place(&frame->y, 0.0);
    plot_line(pen, LOCUS_INK_FAINT, 1.0, frame->left, zero, frame->left + frame->w, zero);
    plot_legend_draw(pen, panel, frame);
}
