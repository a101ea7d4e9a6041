/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "plot/layout.h"

enum { LEAST_NAME = 13 }; /* units between the base lines of two names */

static double number_of(const plot_axis *axis, size_t cell)
{
    const double step = axis->axis->step != 0 ? axis->axis->step : 1.0;
    return axis->axis->first + (double)cell * step;
}

static int is_whole(const locus_axis *axis)
{
    return axis->first == floor(axis->first) && axis->step == floor(axis->step);
}

char *plot_axis_text(char *buffer, const plot_axis *axis, size_t index)
{
    if (axis->axis->names != NULL && index < axis->cells)
        return plot_copy(buffer, NAME_BYTES, axis->axis->names[index], NAME_LIMIT);
    return plot_fixed_text(buffer, number_of(axis, index), is_whole(axis->axis) ? 0 : 3);
}

char *plot_axis_title(char *buffer, size_t capacity, const locus_axis *axis)
{
    const char *label = axis->label != NULL ? axis->label : "";
    char whole[400];
    if (axis->unit != NULL)
        snprintf(whole, sizeof whole, "%.240s (%.120s)", label, axis->unit);
    else
        snprintf(whole, sizeof whole, "%.380s", label);
    return plot_copy(buffer, capacity, whole, 0);
}

double plot_axis_place(const plot_axis *axis, double value)
{
    if (axis->cells > 0) {
        const double step = axis->axis->step != 0 ? axis->axis->step : 1.0;
        return ((value - axis->axis->first) / step + 0.5) * axis->extent / (double)axis->cells;
    }
    return axis->high > axis->low ? (value - axis->low) / (axis->high - axis->low) * axis->extent
                                  : axis->extent / 2;
}

/* ---- measuring ---- */

void plot_axis_names(plot_axis *axis)
{
    char text[NAME_BYTES];
    const double each = axis->cells > 0 ? axis->extent / (double)axis->cells : axis->extent;
    axis->labels = 0;
    for (size_t i = 0; i < axis->cells; i++) {
        const double width = TEXT_SIZE * locus_text_width(plot_axis_text(text, axis, i));
        if (width > axis->labels) axis->labels = width;
    }
    axis->turned = axis->labels + 6.0 > each;
    axis->every = axis->turned && each < LEAST_NAME ? (size_t)ceil(LEAST_NAME / each) : 1;
}

void plot_axis_numbers(plot_axis *axis, double each)
{
    char text[PLOT_NUMBER];
    const int whole = axis->cells > 0 && is_whole(axis->axis);
    const double room = axis->extent / (each > 0 ? each : axis->labels + 14.0);
    axis->ticks = plot_ticks_between(axis->low, axis->high, room < 2 ? 2 : (size_t)room, whole);
    axis->labels = 0;
    for (size_t i = 0; i < axis->ticks.count; i++) {
        plot_fixed_text(text, plot_tick(&axis->ticks, i), axis->ticks.digits);
        const double width = TEXT_SIZE * locus_text_width(text);
        if (width > axis->labels) axis->labels = width;
    }
}

double plot_axis_height(const plot_axis *axis)
{
    const double title = axis->axis->label != NULL ? TEXT_SIZE * LINE_HEIGHT + 3.0 : 0.0;
    return GAP +
           (axis->axis->names != NULL && axis->turned ? axis->labels + 4.0 : TEXT_SIZE + 3.0) +
           title;
}

/* ---- drawing ---- */

static size_t marks(const plot_axis *axis)
{
    return axis->axis->names != NULL ? axis->cells : axis->ticks.count;
}

/* Place and text of mark i; 0 where it is not shown. */
static int mark(const plot_axis *axis, size_t i, double *place, char *text)
{
    if (axis->axis->names == NULL) {
        const double value = plot_tick(&axis->ticks, i);
        plot_fixed_text(text, value, axis->ticks.digits);
        *place = plot_axis_place(axis, value);
        return 1;
    }
    plot_axis_text(text, axis, i);
    *place = ((double)i + 0.5) * axis->extent / (double)axis->cells;
    return i % axis->every == 0;
}

void plot_axis_draw_x(plot_pen *pen, const plot_frame *frame)
{
    const plot_axis *axis = &frame->x;
    const double below = frame->top + frame->h;
    const int turned = axis->axis->names != NULL && axis->turned;
    char text[400];
    double place;
    for (size_t i = 0; i < marks(axis); i++) {
        if (!mark(axis, i, &place, text)) continue;
        const double x = frame->left + place;
        plot_line(pen, LOCUS_INK_FAINT, 0.8, x, below, x, below + 3.0);
        const locus_label label = {.x = pen->x + (turned ? x + TEXT_SIZE * 0.36 : x),
                                   .y = pen->y + below + GAP + (turned ? 0.0 : TEXT_SIZE * 0.85),
                                   .size = TEXT_SIZE,
                                   .anchor = turned ? 1 : 0,
                                   .turned = turned,
                                   .ink = LOCUS_INK_TEXT,
                                   .text = text};
        pen->canvas->label(pen->canvas->context, &label);
    }
    plot_axis_title(text, sizeof text, axis->axis);
    plot_label(pen, frame->left + frame->w / 2, below + plot_axis_height(axis) - 4.0, TEXT_SIZE, 0,
               LOCUS_INK_TEXT, text);
}

void plot_axis_draw_y(plot_pen *pen, const plot_frame *frame)
{
    const plot_axis *axis = &frame->y;
    char text[400];
    double place;
    for (size_t i = 0; i < marks(axis); i++) {
        if (!mark(axis, i, &place, text)) continue;
        /* Rows count downwards, values upwards. */
        const double y = axis->cells > 0 ? frame->top + place : frame->top + frame->h - place;
        plot_line(pen, LOCUS_INK_FAINT, 0.8, frame->left - 3.0, y, frame->left, y);
        plot_label(pen, frame->left - GAP, y + TEXT_SIZE * 0.36, TEXT_SIZE, 1, LOCUS_INK_TEXT,
                   text);
    }
    plot_axis_title(text, sizeof text, axis->axis);
    const locus_label label = {.x = pen->x + PAD + TEXT_SIZE * 0.8,
                               .y = pen->y + frame->top + frame->h / 2,
                               .size = TEXT_SIZE,
                               .turned = 1,
                               .ink = LOCUS_INK_TEXT,
                               .text = text};
    if (text[0] != '\0') pen->canvas->label(pen->canvas->context, &label);
}
