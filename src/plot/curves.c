/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/memory.h"
#include "plot/layout.h"

double plot_series_x(const locus_panel *panel, const locus_series *series, size_t index)
{
    const double step = panel->x.step != 0 ? panel->x.step : 1.0;
    return series->x != NULL ? series->x[index] : panel->x.first + (double)index * step;
}

/* A little air above and below, so that no curve hides under the frame. */
static void widen(double *low, double *high)
{
    const double air = *high > *low ? 0.04 * (*high - *low) : *low != 0 ? fabs(*low) : 1.0;
    *low -= air;
    *high += air;
}

static int has_band(const locus_series *series, size_t i)
{
    return series->low != NULL && series->high != NULL && isfinite(series->low[i]) &&
           isfinite(series->high[i]);
}

void plot_curves_limits(plot_frame *frame, const locus_panel *panel)
{
    double low = INFINITY, high = -INFINITY, left = INFINITY, right = -INFINITY;
    for (size_t s = 0; s < panel->series_count; s++) {
        const locus_series *series = &panel->series[s];
        for (size_t i = 0; i < series->count; i++) {
            const double x = plot_series_x(panel, series, i), y = series->y[i];
            if (!isfinite(x) || !isfinite(y)) continue;
            left = fmin(left, x), right = fmax(right, x);
            low = fmin(low, y), high = fmax(high, y);
            if (has_band(series, i)) {
                low = fmin(low, series->low[i]);
                high = fmax(high, series->high[i]);
            }
        }
    }
    if (low > high) low = high = left = right = 0.0;
    widen(&low, &high);
    const int given_x = panel->x.high > panel->x.low, given_y = panel->y.high > panel->y.low;
    frame->x.low = given_x ? panel->x.low : left;
    frame->x.high = given_x ? panel->x.high : right;
    frame->y.low = given_y ? panel->y.low : low;
    frame->y.high = given_y ? panel->y.high : high;
}

static double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

static locus_point place(const plot_pen *pen, const plot_frame *frame, double x, double y)
{
    const double right = plot_axis_place(&frame->x, within(x, frame->x.low, frame->x.high));
    const double up = plot_axis_place(&frame->y, within(y, frame->y.low, frame->y.high));
    return (locus_point){pen->x + frame->left + right, pen->y + frame->top + frame->h - up};
}

/* Out along the upper edge, back along the lower one. */
static void draw_band(plot_pen *pen, const locus_panel *panel, const plot_frame *frame, size_t s,
                      locus_point *points)
{
    const locus_series *series = &panel->series[s];
    const uint32_t ink = plot_series_ink(panel, s);
    size_t first = 0, end;
    if (series->behind || pen->canvas->area == NULL) return;
    for (; first < series->count; first = end + 1) {
        size_t count = 0;
        for (end = first; end < series->count && has_band(series, end); end++)
            points[count++] =
                place(pen, frame, plot_series_x(panel, series, end), series->high[end]);
        for (size_t i = end; i-- > first;)
            points[count++] = place(pen, frame, plot_series_x(panel, series, i), series->low[i]);
        if (end > first + 1) pen->canvas->area(pen->canvas->context, ink, points, count);
    }
}

static void draw_series(plot_pen *pen, const locus_panel *panel, const plot_frame *frame, size_t s,
                        locus_point *points)
{
    const locus_series *series = &panel->series[s];
    const uint32_t ink = series->behind ? LOCUS_INK_GRID : plot_series_ink(panel, s);
    const double width = series->behind ? 1.0 : 1.8;
    const int dash = series->behind ? 0 : (int)s;
    size_t count = 0;
    for (size_t i = 0; i <= series->count; i++) {
        const int there = i < series->count && isfinite(series->y[i]);
        if (there) {
            const locus_point p = place(pen, frame, plot_series_x(panel, series, i), series->y[i]);
            if (series->steps && count > 0) {
                const double middle = (points[count - 1].x + p.x) / 2;
                points[count] = (locus_point){middle, points[count - 1].y};
                points[count + 1] = (locus_point){middle, p.y};
                count += 2;
            }
            points[count++] = p;
        } else {
            if (count > 0) pen->canvas->line(pen->canvas->context, ink, width, dash, points, count);
            count = 0;
        }
    }
}

static void draw_grid(plot_pen *pen, const plot_frame *frame)
{
    for (size_t i = 0; i < frame->y.ticks.count; i++) {
        const double value = plot_tick(&frame->y.ticks, i);
        const double y = frame->top + frame->h - plot_axis_place(&frame->y, value);
        plot_line(pen, fabs(value) < 1e-12 ? LOCUS_INK_FAINT : LOCUS_INK_GRID, 0.8, frame->left, y,
                  frame->left + frame->w, y);
    }
}

static void draw_mark(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    const int there =
        panel->mark_name != NULL && panel->mark >= frame->x.low && panel->mark <= frame->x.high;
    if (!there) return;
    const double right = plot_axis_place(&frame->x, panel->mark), x = frame->left + right;
    const int inside = right < frame->w - TEXT_SIZE * locus_text_width(panel->mark_name) - 8.0;
    plot_line(pen, LOCUS_INK_FAINT, 0.8, x, frame->top, x, frame->top + frame->h);
    plot_label(pen, x + (inside ? 4.0 : -4.0), frame->top + TEXT_SIZE, TEXT_SIZE, inside ? -1 : 1,
               LOCUS_INK_FAINT, panel->mark_name);
}

void plot_curves_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    size_t most = 0;
    for (size_t s = 0; s < panel->series_count; s++)
        if (panel->series[s].count > most) most = panel->series[s].count;
    draw_grid(pen, frame);
    locus_point *points = locus_allocate(pen->allocator, most, 3 * sizeof *points);
    pen->failed |= points == NULL;
    for (size_t s = panel->series_count; points != NULL && s-- > 0;)
        if (panel->series[s].behind) draw_series(pen, panel, frame, s, points);
    for (size_t s = 0; points != NULL && s < panel->series_count; s++)
        draw_band(pen, panel, frame, s, points);
    draw_mark(pen, panel, frame);
    for (size_t s = 0; points != NULL && s < panel->series_count; s++)
        if (!panel->series[s].behind) draw_series(pen, panel, frame, s, points);
    locus_release(pen->allocator, points);
    plot_legend_draw(pen, panel, frame);
}
