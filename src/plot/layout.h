/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_LAYOUT_H
#define LOCUS_PLOT_LAYOUT_H

/* A panel on a canvas: measured first, drawn with the same numbers afterwards. All lengths
 * are units of the canvas; letters are TEXT_SIZE of them. */

#include "plot/colour.h"
#include "plot/pen.h"
#include "plot/text.h"
#include "plot/ticks.h"
#include "plot/wrap.h"

#define PAD 10.0 /* around a panel       */
#define GAP 5.0  /* between axis and its numbers */

enum { NAME_BYTES = 96, NAME_LIMIT = 16 }; /* of a tick that is a word */

/* One axis, ready to be drawn. */
typedef struct plot_axis {
    const locus_axis *axis;
    size_t cells;     /* rows, columns or categories; 0: a continuous axis           */
    double low, high; /* of the numbers                                              */
    plot_ticks ticks; /* where there are no names                                    */
    size_t every;     /* names: each so many-th is shown                             */
    int turned;       /* names read upwards                                          */
    double extent;    /* along the axis                                              */
    double labels;    /* width of the widest label                                   */
} plot_axis;

typedef struct plot_frame {
    double width, height;   /* of the whole panel                                  */
    double left, top, w, h; /* data area                                           */
    double legend;          /* height of the legend above the data                 */
    plot_axis x, y;
    locus_colours colours; /* heatmap: settled                                    */
    double low, high;      /* of the colours, or of the values of bars and lines  */
    int digits;            /* of cell numbers                                     */
    double cell_size;      /* letters in cells, 0: none                           */
    plot_ticks bar;        /* of the colour bar                                   */
    double bar_labels;
} plot_frame;

void plot_measure(plot_frame *frame, const locus_panel *panel, double width);
void plot_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame);

/* axis.c */
void plot_axis_names(plot_axis *axis);                /* chooses every, turned          */
void plot_axis_numbers(plot_axis *axis, double each); /* ticks, `each` units per label  */
double plot_axis_height(const plot_axis *axis);       /* below the data                 */
char *plot_axis_text(char *buffer, const plot_axis *axis, size_t index); /* of a cell    */
char *plot_axis_title(char *buffer, size_t capacity, const locus_axis *axis);
void plot_axis_draw_x(plot_pen *pen, const plot_frame *frame);
void plot_axis_draw_y(plot_pen *pen, const plot_frame *frame);
/* A title that reads upwards beside the data, in smaller letters or cut where it is longer. */
void plot_upright_title(plot_pen *pen, const plot_frame *frame, double x, const locus_axis *axis);
double plot_axis_place(const plot_axis *axis, double value); /* 0 .. extent              */

/* heatmap.c, curves.c, bars.c, legend.c */
void plot_heatmap_limits(plot_frame *frame, const locus_panel *panel);
void plot_heatmap_numbers(plot_frame *frame, const locus_panel *panel);
void plot_heatmap_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame);
void plot_curves_limits(plot_frame *frame, const locus_panel *panel);
void plot_curves_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame);
void plot_bars_limits(plot_frame *frame, const locus_panel *panel);
void plot_bars_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame);
double plot_legend_height(const locus_panel *panel, double width);
void plot_legend_draw(plot_pen *pen, const locus_panel *panel, const plot_frame *frame);
size_t plot_categories(const locus_panel *panel); /* bars: the longest series */
double plot_series_x(const locus_panel *panel, const locus_series *series, size_t index);

#endif
