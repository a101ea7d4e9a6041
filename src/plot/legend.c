/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/layout.h"

#define SWATCH 20.0
#define ROW (TEXT_SIZE + 5.0)

static double entry_width(char *name, const locus_series *series, double width)
{
    plot_copy_within(name, NAME_BYTES, series->name, (width - SWATCH - 5.0) / TEXT_SIZE);
    return SWATCH + 5.0 + TEXT_SIZE * locus_text_width(name) + 12.0;
}

static int named(const locus_panel *panel)
{
    for (size_t i = 0; i < panel->series_count; i++)
        if (panel->series[i].name != NULL) return 1;
    return 0;
}

static void draw_entry(plot_pen *pen, const locus_panel *panel, size_t i, double x, double y,
                       const char *name)
{
    const uint32_t ink = plot_series_ink(panel, i);
    const locus_point points[] = {{pen->x + x, pen->y + y}, {pen->x + x + SWATCH, pen->y + y}};
    if (panel->kind == LOCUS_PANEL_LINES)
        pen->canvas->line(pen->canvas->context, ink, 1.8, (int)i, points, 2);
    else
        plot_box(pen, ink, x + SWATCH - 10.0, y - 5.0, 10.0, 10.0);
    plot_label(pen, x + SWATCH + 5.0, y + TEXT_SIZE * 0.36, TEXT_SIZE, -1, LOCUS_INK_TEXT, name);
}

/* Entries in rows, as many per row as fit. With a pen they are drawn too. */
static double lay(plot_pen *pen, const locus_panel *panel, double left, double top, double width)
{
    char name[NAME_BYTES];
    double x = 0, y = ROW / 2;
    if (panel->kind == LOCUS_PANEL_HEATMAP || !named(panel)) return 0.0;
    for (size_t i = 0; i < panel->series_count; i++) {
        if (panel->series[i].behind) continue;
        const double wide = entry_width(name, &panel->series[i], width);
        if (x > 0 && x + wide - 12.0 > width) {
            x = 0;
            y += ROW;
        }
        if (pen != NULL) draw_entry(pen, panel, i, left + x, top + y, name);
        x += wide;
    }
    return y + ROW / 2 + 3.0;
}

double plot_legend_height(const locus_panel *panel, double width)
{
    return lay(NULL, panel, 0, 0, width);
}

void plot_legend_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame)
{
    lay(pen, panel, PAD, frame->top - frame->legend, frame->width - 2 * PAD);
}
