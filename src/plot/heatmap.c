/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "plot/layout.h"

#define BAR_GAP 10.0
#define BAR_WIDTH 10.0

/* ---- measuring ---- */

void plot_heatmap_limits(plot_frame *frame, const locus_panel *panel)
{
    double low = panel->low, high = panel->high;
    const size_t count = panel->rows * panel->columns;
    if (!(high > low)) {
        low = INFINITY, high = -INFINITY;
        for (size_t i = 0; i < count; i++) {
            if (!isfinite(panel->values[i])) continue;
            low = fmin(low, panel->values[i]);
            high = fmax(high, panel->values[i]);
        }
        if (low > high) low = high = 0.0; /* nothing is there */
    }
    frame->colours = panel->colours;
    if (frame->colours == LOCUS_COLOURS_AUTO)
        frame->colours = low < 0 && high > 0 ? LOCUS_COLOURS_DIVERGING : LOCUS_COLOURS_SEQUENTIAL;
    if (frame->colours == LOCUS_COLOURS_DIVERGING) {
        high = fmax(fabs(low), fabs(high));
        low = -high;
    }
    frame->low = low;
    frame->high = high;
    frame->digits = panel->whole ? 0 : plot_digits(high - low);
}

/* The letters with which every number stands in its cell; 0 where they would be too small. */
static double fitting_size(const plot_frame *frame, const locus_panel *panel, int digits)
{
    const double cell_width = frame->w / (double)panel->columns;
    const double cell_height = frame->h / (double)panel->rows;
    char text[PLOT_NUMBER];
    double widest = 0;
    for (size_t i = 0; i < panel->rows * panel->columns; i++) {
        if (isnan(panel->values[i])) continue;
        plot_padded_text(text, panel->values[i], digits);
        widest = fmax(widest, locus_text_width(text));
    }
    double size = fmin(TEXT_SIZE + 1.0, cell_height * 0.8);
    if (widest > 0) size = fmin(size, (cell_width - 3.0) / widest);
    return size >= 7.0 ? size : 0.0;
}

/* With all decimals, or else with one less. */
void plot_heatmap_numbers(plot_frame *frame, const locus_panel *panel)
{
    enum { MOST_CELLS = 1024 };
    frame->cell_size = 0;
    if (panel->cells == LOCUS_CELLS_NEVER || panel->rows * panel->columns > MOST_CELLS) return;
    frame->cell_size = fitting_size(frame, panel, frame->digits);
    if (frame->cell_size > 0 || frame->digits < 2) return;
    frame->digits--;
    frame->cell_size = fitting_size(frame, panel, frame->digits);
}

/* ---- drawing ---- */

enum { BATCH = 512 };

typedef struct batch {
    plot_pen *pen;
    uint32_t ink;
    size_t count;
    locus_box boxes[BATCH];
} batch;

static void flush(batch *b)
{
    if (b->count > 0) b->pen->canvas->boxes(b->pen->canvas->context, b->ink, b->boxes, b->count);
    b->count = 0;
}

static void add(batch *b, double x, double y, double width, double height)
{
    if (b->count == BATCH) flush(b);
    b->boxes[b->count++] = (locus_box){b->pen->x + x, b->pen->y + y, width, height};
}

/* Cells reach a little under their right and lower neighbours: where an edge falls on the centre of
 * a pixel, the last bit of a coordinate would decide whether either of the two paints it. */
#define OVERLAP 0.1

/* Edges on a grid of tenths: neighbours share theirs, and numbers stay short. */
static double edge(double start, double each, size_t index)
{
    return floor(10.0 * (start + (double)index * each) + 0.5) / 10.0;
}

/* All cells of one ink; neighbours in a row become one box. */
static void draw_ink(batch *b, const locus_panel *panel, const plot_frame *frame)
{
    const double wide = frame->w / (double)panel->columns, high = frame->h / (double)panel->rows;
    for (size_t row = 0; row < panel->rows; row++) {
        const double *values = panel->values + row * panel->columns;
        const double top = edge(frame->top, high, row), bottom = edge(frame->top, high, row + 1);
        size_t column = 0;
        while (column < panel->columns) {
            const size_t start = column;
            while (column < panel->columns &&
                   plot_level(values[column], frame->low, frame->high, frame->colours) == b->ink)
                column++;
            const double left = edge(frame->left, wide, start);
            if (column > start)
                add(b, left, top, edge(frame->left, wide, column) - left + OVERLAP,
                    bottom - top + OVERLAP);
            else
                column++;
        }
    }
    flush(b);
}

static void draw_cells(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    unsigned char used[LOCUS_INK_COUNT] = {0};
    for (size_t i = 0; i < panel->rows * panel->columns; i++)
        used[plot_level(panel->values[i], frame->low, frame->high, frame->colours)] = 1;
    for (uint32_t ink = 0; ink < LOCUS_INK_COUNT; ink++) {
        batch b = {.pen = pen, .ink = ink};
        if (used[ink]) draw_ink(&b, panel, frame);
    }
}

static void draw_numbers(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    char text[PLOT_NUMBER];
    if (frame->cell_size == 0) return;
    for (size_t i = 0; i < panel->rows * panel->columns; i++) {
        const double value = panel->values[i];
        const uint32_t ink = plot_level(value, frame->low, frame->high, frame->colours);
        const size_t row = i / panel->columns, column = i % panel->columns;
        if (isnan(value)) continue;
        plot_label(pen, frame->left + ((double)column + 0.5) * frame->w / (double)panel->columns,
                   frame->top + ((double)row + 0.5) * frame->h / (double)panel->rows +
                       0.36 * frame->cell_size,
                   frame->cell_size, 0, ink | LOCUS_INK_ON,
                   plot_padded_text(text, value, frame->digits));
    }
}

static void draw_bar(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    const int diverging = frame->colours == LOCUS_COLOURS_DIVERGING;
    const uint32_t first = diverging ? LOCUS_INK_DIVERGING : LOCUS_INK_SEQUENTIAL;
    const uint32_t count = diverging ? PLOT_DIVERGING : PLOT_SEQUENTIAL;
    const double x = frame->left + frame->w + BAR_GAP, each = frame->h / count;
    char text[PLOT_NUMBER];
    for (uint32_t i = count; i-- > 0;) /* each over the one above, so that no gap can open */
        plot_box(pen, first + i, x, frame->top + (count - 1 - i) * each, BAR_WIDTH, (i + 1) * each);
    for (size_t i = 0; i < frame->bar.count; i++) {
        const double value = plot_tick(&frame->bar, i);
        const double share =
            frame->high > frame->low ? (value - frame->low) / (frame->high - frame->low) : 0.5;
        const double y = frame->top + frame->h * (1.0 - share);
        plot_line(pen, LOCUS_INK_FAINT, 0.8, x + BAR_WIDTH, y, x + BAR_WIDTH + 3.0, y);
        plot_label(pen, x + BAR_WIDTH + GAP, y + 0.36 * TEXT_SIZE, TEXT_SIZE, -1, LOCUS_INK_TEXT,
                   plot_fixed_text(text, value, frame->bar.digits));
    }
    const locus_axis title = {.label = panel->value_name, .unit = panel->value_unit};
    plot_upright_title(pen, frame,
                       x + BAR_WIDTH + GAP + frame->bar_labels + TEXT_SIZE * LINE_HEIGHT, &title);
}

void plot_heatmap_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    draw_cells(pen, panel, frame);
    draw_numbers(pen, panel, frame);
    draw_bar(pen, panel, frame);
}
