/* SPDX-License-Identifier: Apache-2.0 */
/* Curves and bars in letters. */
#include <math.h>
#include <string.h>

#include "plot/terminal.h"

enum { HEIGHT = 16, WIDEST = 240, MARGIN = 10, NAMES = 14 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyz";

static void legend(terminal *t, const locus_panel *panel)
{
    size_t used = 0;
    for (size_t s = 0; s < panel->series_count; s++) {
        char name[NAME_BYTES];
        if (panel->series[s].behind) continue;
        plot_copy(name, sizeof name, panel->series[s].name, 40);
        const size_t wide = plot_columns(name) + 4;
        if (used > 0 && used + wide > t->columns) {
            plot_char(t->text, '\n');
            used = 0;
        }
        terminal_ink(t, plot_series_ink(panel, s));
        plot_char(t->text, letters[s % 26]);
        plot_char(t->text, ' ');
        terminal_reset(t);
        terminal_cell(t, name, plot_columns(name), 0);
        plot_spaces(t->text, 2);
        used += wide;
    }
    plot_char(t->text, '\n');
}

/* ---- curves ---- */

/* grid holds 1 + the number of the series at a place, 0: none. Earlier series stay on top. */
static void mark_series(unsigned char grid[HEIGHT][WIDEST], size_t width, const locus_panel *panel,
                        const plot_frame *frame, size_t s)
{
    const locus_series *series = &panel->series[s];
    if (series->behind) return;
    const double across = frame->x.high - frame->x.low, up = frame->y.high - frame->y.low;
    for (size_t i = 0; i < series->count; i++) {
        if (!isfinite(series->y[i])) continue;
        const double x =
            (plot_series_x(panel, series, i) - frame->x.low) / (across > 0 ? across : 1);
        const double y = (series->y[i] - frame->y.low) / (up > 0 ? up : 1);
        if (x < 0 || x > 1 || y < 0 || y > 1) continue;
        const size_t column = (size_t)lround(x * (double)(width - 1));
        const size_t row = HEIGHT - 1 - (size_t)lround(y * (HEIGHT - 1));
        if (grid[row][column] == 0) grid[row][column] = (unsigned char)(s + 1);
    }
}

static void put_row(terminal *t, const locus_panel *panel, const unsigned char *row, size_t width)
{
    for (size_t i = 0; i < width; i++) {
        if (row[i] == 0) {
            plot_char(t->text, ' ');
            continue;
        }
        terminal_ink(t, plot_series_ink(panel, row[i] - 1u));
        plot_char(t->text, letters[(row[i] - 1) % 26]);
        terminal_reset(t);
    }
    plot_char(t->text, '\n');
}

void terminal_curves(terminal *t, const locus_panel *panel)
{
    unsigned char grid[HEIGHT][WIDEST] = {{0}};
    char text[PLOT_NUMBER];
    plot_frame frame = {0};
    size_t width = t->columns - MARGIN - 2;
    if (width > WIDEST) width = WIDEST;
    plot_curves_limits(&frame, panel);
    for (size_t s = 0; s < panel->series_count; s++) mark_series(grid, width, panel, &frame, s);
    const int digits = plot_digits(frame.y.high - frame.y.low);
    for (size_t row = 0; row < HEIGHT; row++) {
        const double value =
            frame.y.high - (frame.y.high - frame.y.low) * (double)row / (HEIGHT - 1);
        terminal_cell(t, row % 5 == 0 ? plot_fixed_text(text, value, digits) : "", MARGIN, 1);
        plot_puts(t->text, " |");
        put_row(t, panel, grid[row], width);
    }
    plot_spaces(t->text, MARGIN + 2);
    const int x_digits = plot_digits((frame.x.high - frame.x.low) / 10);
    terminal_cell(t, plot_fixed_text(text, frame.x.low, x_digits), width / 2, 0);
    terminal_cell(t, plot_fixed_text(text, frame.x.high, x_digits), width - width / 2, 1);
    plot_char(t->text, '\n');
    legend(t, panel);
}

/* ---- bars: one line per category and series, from zero to the left or right ---- */

static void put_bar(terminal *t, const locus_panel *panel, size_t s, double value, double low,
                    double high, size_t width)
{
    const double span = high > low ? high - low : 1;
    const size_t zero = (size_t)lround(-low / span * (double)(width - 1));
    const size_t there = (size_t)lround((value - low) / span * (double)(width - 1));
    const size_t from = there < zero ? there : zero, to = there < zero ? zero : there;
    char line[WIDEST];
    memset(line, ' ', width);
    for (size_t i = from; i <= to; i++) line[i] = letters[s % 26];
    line[zero] = '|';
    terminal_ink(t, plot_series_ink(panel, s));
    plot_put(t->text, line, width);
    terminal_reset(t);
}

void terminal_bars(terminal *t, const locus_panel *panel)
{
    char text[PLOT_NUMBER], name[NAME_BYTES];
    double low = 0, high = 0;
    size_t width = t->columns - NAMES - 12;
    if (width > WIDEST) width = WIDEST;
    if (t->columns < NAMES + 20) width = 8;
    for (size_t s = 0; s < panel->series_count; s++) {
        for (size_t i = 0; i < panel->series[s].count; i++) {
            if (!isfinite(panel->series[s].y[i])) continue;
            low = fmin(low, panel->series[s].y[i]);
            high = fmax(high, panel->series[s].y[i]);
        }
    }
    const plot_axis axis = {.axis = &panel->x, .cells = plot_categories(panel)};
    const int digits = plot_digits(high - low);
    for (size_t i = 0; i < axis.cells; i++) {
        for (size_t s = 0; s < panel->series_count; s++) {
            if (i >= panel->series[s].count || !isfinite(panel->series[s].y[i])) continue;
            terminal_cell(t, s == 0 ? plot_axis_text(name, &axis, i) : "", NAMES, 1);
            plot_char(t->text, ' ');
            put_bar(t, panel, s, panel->series[s].y[i], low, high, width);
            terminal_cell(t, plot_fixed_text(text, panel->series[s].y[i], digits), 10, 1);
            plot_char(t->text, '\n');
        }
    }
    legend(t, panel);
}
