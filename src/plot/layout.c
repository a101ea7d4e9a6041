/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/layout.h"

#include <math.h>

#define NAME_ROW (TEXT_SIZE + 1.0) /* of a row that has a name */

/* ---- measuring a panel ---- */

/* Bold letters are a tenth wider. */
static double title_height(const char *title, double width)
{
    const size_t lines = plot_wrap_lines(title, width / (1.1 * TITLE_SIZE));
    return lines > 0 ? (double)lines * TITLE_SIZE * LINE_HEIGHT + 3.0 : 0.0;
}

static double note_height(const char *note, double width)
{
    const size_t lines = plot_wrap_lines(note, width / TEXT_SIZE);
    return lines > 0 ? (double)lines * TEXT_SIZE * LINE_HEIGHT + 4.0 : 0.0;
}

static double chosen_aspect(const locus_panel *panel)
{
    if (panel->aspect > 0) return panel->aspect;
    if (panel->kind != LOCUS_PANEL_HEATMAP) return 0.6;
    return fmin(1.15, fmax(0.3, (double)panel->rows / (double)panel->columns));
}

static void cell_limits(plot_axis *axis, const locus_axis *from, size_t cells)
{
    const double step = from->step != 0 ? from->step : 1.0;
    axis->cells = cells;
    axis->low = fmin(from->first, from->first + step * (double)(cells - 1));
    axis->high = fmax(from->first, from->first + step * (double)(cells - 1));
}

static void measure_limits(plot_frame *frame, const locus_panel *panel)
{
    frame->x.axis = &panel->x;
    frame->y.axis = &panel->y;
    if (panel->kind == LOCUS_PANEL_HEATMAP) {
        cell_limits(&frame->x, &panel->x, panel->columns);
        cell_limits(&frame->y, &panel->y, panel->rows);
        plot_heatmap_limits(frame, panel);
    } else if (panel->kind == LOCUS_PANEL_LINES) {
        plot_curves_limits(frame, panel);
    } else {
        cell_limits(&frame->x, &panel->x, plot_categories(panel));
        plot_bars_limits(frame, panel);
    }
}

/* What stands to the right of the data: the colour bar with its numbers and its name, or
 * room for half of the last number below. */
static double right_side(plot_frame *frame, const locus_panel *panel, double height)
{
    char text[PLOT_NUMBER];
    if (panel->kind != LOCUS_PANEL_HEATMAP) return PAD + 10.0;
    const size_t most = height > 180 ? 7 : 5;
    frame->bar = plot_ticks_between(frame->low, frame->high, most, panel->whole != 0);
    frame->bar_labels = 0;
    for (size_t i = 0; i < frame->bar.count; i++) {
        plot_fixed_text(text, plot_tick(&frame->bar, i), frame->bar.digits);
        frame->bar_labels = fmax(frame->bar_labels, TEXT_SIZE * locus_text_width(text));
    }
    const int titled = panel->value_name != NULL || panel->value_unit != NULL;
    return 10.0 + 10.0 + GAP + frame->bar_labels + (titled ? TEXT_SIZE * LINE_HEIGHT + 3.0 : 0.0) +
           PAD;
}

static void measure_rows(plot_frame *frame, double extent)
{
    plot_axis *y = &frame->y;
    y->extent = extent;
    if (y->axis->names != NULL && y->cells > 0) {
        plot_axis_names(y);
        const double each = extent / (double)y->cells;
        y->turned = 0;
        y->every = each < NAME_ROW - 1e-6 ? (size_t)ceil(NAME_ROW / each) : 1;
    } else {
        plot_axis_numbers(y, 26.0);
        if (y->cells == 0 && y->ticks.count < 3) /* closer, rather than without a scale */
            plot_axis_numbers(y, 17.0);
    }
}

/* As high as its shape asks for, or higher: no row goes without its name. */
static double data_height(const plot_frame *frame, const locus_panel *panel, double aspect)
{
    const int named = panel->kind == LOCUS_PANEL_HEATMAP && panel->y.names != NULL;
    return fmax(aspect * frame->w, named ? NAME_ROW * (double)panel->rows : 0.0);
}

static void measure_columns(plot_frame *frame, double extent)
{
    plot_axis *x = &frame->x;
    x->extent = extent;
    if (x->axis->names != NULL && x->cells > 0) {
        plot_axis_names(x);
        return;
    }
    plot_axis_numbers(x, 60.0);
    plot_axis_numbers(x, x->labels + 16.0);
    if (x->labels + 12.0 > x->extent / (double)(x->ticks.count > 0 ? x->ticks.count : 1))
        plot_axis_numbers(x, x->labels + 24.0);
}

void plot_measure(plot_frame *frame, const locus_panel *panel, double width)
{
    const double inner = width - 2 * PAD, aspect = chosen_aspect(panel);
    *frame = (plot_frame){.width = width};
    measure_limits(frame, panel);
    frame->legend = plot_legend_height(panel, inner);
    frame->top = PAD + title_height(panel->title, inner) + frame->legend + 4.0;
    const int titled = panel->y.label != NULL || panel->y.unit != NULL;
    const double beside = PAD + (titled ? TEXT_SIZE * LINE_HEIGHT + 2.0 : 0.0) + GAP;
    const double right = right_side(frame, panel, aspect * 0.75 * width);
    double labels = 0, before;
    frame->h = aspect * 0.75 * width;
    do { /* the height decides the numbers, their width the width, and that the height */
        measure_rows(frame, frame->h);
        before = labels;
        labels = fmax(labels, frame->y.labels);
        frame->left = beside + labels;
        frame->w = fmax(20.0, width - frame->left - right);
        frame->h = data_height(frame, panel, aspect);
    } while (labels > before);
    measure_rows(frame, frame->h);
    measure_columns(frame, frame->w);
    if (panel->kind == LOCUS_PANEL_HEATMAP) plot_heatmap_numbers(frame, panel);
    frame->height =
        frame->top + frame->h + plot_axis_height(&frame->x) + note_height(panel->note, inner) + PAD;
}

void plot_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    const double inner = frame->width - 2 * PAD;
    plot_paragraph(pen, PAD, PAD + TITLE_SIZE * 0.9, inner / 1.1, TITLE_SIZE, 1, LOCUS_INK_TEXT,
                   panel->title);
    if (panel->kind == LOCUS_PANEL_HEATMAP)
        plot_heatmap_draw(pen, panel, frame);
    else if (panel->kind == LOCUS_PANEL_LINES)
        plot_curves_draw(pen, panel, frame);
    else
        plot_bars_draw(pen, panel, frame);
    plot_axis_draw_x(pen, frame);
    plot_axis_draw_y(pen, frame);
    const double below = frame->top + frame->h + plot_axis_height(&frame->x);
    plot_paragraph(pen, PAD, below + 4.0 + TEXT_SIZE * 0.9, inner, TEXT_SIZE, 0, LOCUS_INK_FAINT,
                   panel->note);
}
