/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_PEN_H
#define LOCUS_PLOT_PEN_H

/* Small things on a canvas, at panel coordinates. All lengths are units of the canvas; letters are
 * TEXT_SIZE of them. */

#include "plot/text.h"

#define TEXT_SIZE 11.0
#define TITLE_SIZE 13.0
#define HEAD_SIZE 16.0
#define LINE_HEIGHT 1.35 /* of the letters' size */

/* Where panels are drawn. */
typedef struct plot_pen {
    const locus_canvas *canvas;
    const locus_allocator *allocator;
    double x, y; /* of the panel */
    int failed;
} plot_pen;

/* Text at panel coordinates; empty text is not drawn. */
void plot_label(plot_pen *pen, double x, double y, double size, int anchor, uint32_t ink,
                const char *text);
void plot_line(plot_pen *pen, uint32_t ink, double width, double x1, double y1, double x2,
               double y2);
void plot_box(plot_pen *pen, uint32_t ink, double x, double y, double width, double height);
/* A wrapped paragraph whose first line stands at y; returns where the next would. */
double plot_paragraph(plot_pen *pen, double x, double y, double width, double size, int bold,
                      uint32_t ink, const char *text);

#endif
