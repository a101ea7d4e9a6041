/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/pen.h"

#include <string.h>

#include "plot/wrap.h"

void plot_label(plot_pen *pen, double x, double y, double size, int anchor, uint32_t ink,
                const char *text)
{
    const locus_label label = {
        .x = pen->x + x, .y = pen->y + y, .size = size, .anchor = anchor, .ink = ink, .text = text};
    if (text[0] != '\0') pen->canvas->label(pen->canvas->context, &label);
}

void plot_line(plot_pen *pen, uint32_t ink, double width, double x1, double y1, double x2,
               double y2)
{
    const locus_point points[] = {{pen->x + x1, pen->y + y1}, {pen->x + x2, pen->y + y2}};
    pen->canvas->line(pen->canvas->context, ink, width, 0, points, 2);
}

void plot_box(plot_pen *pen, uint32_t ink, double x, double y, double width, double height)
{
    const locus_box box = {pen->x + x, pen->y + y, width, height};
    pen->canvas->boxes(pen->canvas->context, ink, &box, 1);
}

double plot_paragraph(plot_pen *pen, double x, double y, double width, double size, int bold,
                      uint32_t ink, const char *text)
{
    char part[512], safe[768];
    const char *line;
    size_t bytes;
    while (text != NULL && plot_wrap(&text, width / size, &line, &bytes)) {
        const size_t count = bytes < sizeof part ? bytes : sizeof part - 1;
        memcpy(part, line, count);
        part[count] = '\0';
        const locus_label label = {.x = pen->x + x,
                                   .y = pen->y + y,
                                   .size = size,
                                   .anchor = -1,
                                   .bold = bold,
                                   .ink = ink,
                                   .text = plot_copy(safe, sizeof safe, part, 0)};
        pen->canvas->label(pen->canvas->context, &label);
        y += size * LINE_HEIGHT;
    }
    return y;
}
