/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PLOT_H
#define LOCUS_PLOT_H

/* Pictures: numbers in, a picture out. Nothing here knows a scheme.
 *
 *     double weight[4 * 4] = ...;
 *     locus_panel panel = {.size = sizeof panel, .kind = LOCUS_PANEL_HEATMAP,
 *                          .title = "attention", .values = weight, .rows = 4, .columns = 4,
 *                          .x = {.label = "key n"}, .y = {.label = "query m"}};
 *     locus_figure figure = {.size = sizeof figure, .title = "Four tokens",
 *                            .panels = &panel, .panel_count = 1};
 *     locus_text svg = {0};
 *     status = locus_figure_render(&figure, LOCUS_FORMAT_SVG, NULL, &svg, &error);
 *     fwrite(svg.data, 1, svg.length, file);
 *     locus_text_free(&svg);
 *
 * A figure borrows everything it points to; a zeroed field means "none" or "choose". Texts
 * are UTF-8; what is broken or unsafe in them is replaced, never passed on. */

#include <locus/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a figure is made of ---- */

typedef enum locus_panel_kind {
    LOCUS_PANEL_HEATMAP = 0, /* `values`; row 0 on top, column 0 on the left               */
    LOCUS_PANEL_LINES,       /* `series` over a common x axis                              */
    LOCUS_PANEL_BARS,        /* `series` over categories, side by side                     */
    LOCUS_PANEL_STACK,       /* the same, on top of each other; negative parts below zero  */
} locus_panel_kind;

typedef enum locus_colours {
    LOCUS_COLOURS_AUTO = 0,   /* diverging where values have both signs, else sequential   */
    LOCUS_COLOURS_SEQUENTIAL, /* dark to light, lightness rises steadily                   */
    LOCUS_COLOURS_DIVERGING,  /* zero is neutral, the limits are symmetric                 */
} locus_colours;

/* Numbers in the cells of a heatmap. */
typedef enum locus_cells {
    LOCUS_CELLS_AUTO = 0, /* where all of them fit  */
    LOCUS_CELLS_NEVER,
} locus_cells;

/* This struct never grows. */
typedef struct locus_axis {
    const char *label;        /* "key n"                                                    */
    const char *unit;         /* "rad": behind the label, in brackets                       */
    const char *const *names; /* one per row, column or category: tokens; NULL: numbers     */
    double first, step;       /* number of row, column or point 0, and spacing; step 0 = 1  */
    double low, high;         /* limits of a line axis; equal: from the data                */
} locus_axis;

/* A curve, or one colour of bars. NaN leaves a gap. All series of a panel have one size. */
typedef struct locus_series {
    uint32_t size;    /* sizeof(locus_series) as the caller compiled it  */
    uint32_t steps;   /* lines: 1 = a staircase, for rules on integers   */
    const char *name; /* in the legend                                   */
    const double *x;  /* NULL: first + i * step of the x axis            */
    const double *y;
    size_t count;
    const double *low, *high; /* lines: a band around the curve, [count] each; NULL: none       */
    uint32_t behind;          /* lines: 1 = thin and grey behind the others, for comparison; not
                                 in the legend or among the numbers. Such series come last      */
    uint32_t ink; /* a locus_ink of its own; 0: by its place among the series          */
} locus_series;

/* All panels of a figure have one size. */
typedef struct locus_panel {
    uint32_t size; /* sizeof(locus_panel) as the caller compiled it      */
    locus_panel_kind kind;
    const char *title;
    const char *note; /* a line or two under the panel                      */
    locus_axis x, y;
    double aspect; /* height / width of the data area, 0: chosen         */

    /* heatmaps */
    const double *values; /* [rows][columns], dense; NaN: not there, a hidden pair          */
    size_t rows, columns;
    locus_colours colours;
    locus_cells cells;
    double low, high;       /* limits of the colours; equal: from the data                   */
    const char *value_name; /* at the colour bar: "weight"                                   */
    const char *value_unit;
    uint32_t whole; /* 1: the values are whole numbers, rows of a table for example          */

    /* lines and bars; axis y holds the label of the values */
    const locus_series *series;
    size_t series_count;
    const char *mark_name; /* lines: of an upright line at x = mark; NULL: none */
    double mark;
} locus_panel;

typedef struct locus_figure {
    uint32_t size;    /* sizeof(locus_figure) as the caller compiled it                      */
    uint32_t columns; /* panels side by side where the width allows; 0: chosen               */
    const char *title;
    const char *description; /* what the picture shows, for those who cannot see it          */
    const char *caption;     /* under the panels: orientation, seed, citation                */
    const locus_panel *panels;
    size_t panel_count;
} locus_figure;

/* ---- text that grows ---- */

/* Zeroed, or with an allocator, before use. NUL-terminated behind `length` once there is data.
 * This struct never grows. */
typedef struct locus_text {
    char *data;
    size_t length, capacity;
    const locus_allocator *allocator; /* NULL: malloc */
} locus_text;
LOCUS_API void locus_text_free(locus_text *text); /* and zero it; NULL is allowed */

/* ---- rendering ---- */

typedef enum locus_format {
    LOCUS_FORMAT_SVG = 0,
    LOCUS_FORMAT_TERMINAL, /* 24-bit colours and half blocks, or plain ASCII          */
    LOCUS_FORMAT_CSV,      /* one number per line, with where it belongs              */
    LOCUS_FORMAT_JSON,
} locus_format;

typedef enum locus_theme {
    LOCUS_THEME_AUTO = 0, /* SVG: follows the reader's prefers-color-scheme; else light */
    LOCUS_THEME_LIGHT,
    LOCUS_THEME_DARK,
} locus_theme;

/* How to render; NULL instead of it, or a zeroed field, means the default. */
typedef struct locus_render {
    uint32_t size; /* sizeof(locus_render) as the caller compiled it                            */
    locus_theme theme;
    uint32_t width;      /* pixels: 200 .. 10,000, default by the panels; terminal: columns, 80 */
    uint32_t plain;      /* terminal: 1 = ASCII without colour                                  */
    uint32_t fragment;   /* SVG: 1 = the <svg> element alone, to be put into a page            */
    const char *prefix;  /* SVG: id of the element and start of all others; letters, digits, - _;
                          default "locus"                                                     */
    uint32_t background; /* SVG: 1 = paint the paper even in a fragment                         */
} locus_render;

/* Append the picture to `out`. On failure `out` is as it was. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_figure_render(const locus_figure *figure,
                                                            locus_format format,
                                                            const locus_render *render,
                                                            locus_text *out, locus_error *error);

/* ---- drawing on something else: a bitmap, a window ---- */

/* What a thing is painted with; a theme gives it a colour. */
typedef enum locus_ink {
    LOCUS_INK_PAPER = 0,
    LOCUS_INK_TEXT,
    LOCUS_INK_FAINT,                                 /* notes, axes                          */
    LOCUS_INK_GRID,                                  /* lines behind curves                  */
    LOCUS_INK_HIDDEN,                                /* cells that are not there             */
    LOCUS_INK_SERIES,                                /* + 0 .. 7                             */
    LOCUS_INK_SEQUENTIAL = LOCUS_INK_SERIES + 8,     /* + 0 .. 63                            */
    LOCUS_INK_DIVERGING = LOCUS_INK_SEQUENTIAL + 64, /* + 0 .. 64, 32 is zero                */
    LOCUS_INK_TERM = LOCUS_INK_DIVERGING + 65,       /* + 0 .. 10, of locus_picture_term_ink */
    LOCUS_INK_COUNT = LOCUS_INK_TERM + 11,
    LOCUS_INK_ON = 1 << 12, /* | ink: a colour that can be read on top of it                 */
} locus_ink;
LOCUS_API uint32_t locus_ink_colour(uint32_t ink, locus_theme theme); /* 0xRRGGBB */

/* These two never grow. */
typedef struct locus_box {
    double x, y, width, height;
} locus_box;
typedef struct locus_point {
    double x, y;
} locus_point;
typedef struct locus_label {
    double x, y; /* of the anchor, on the base line                             */
    double size; /* of the letters, in units of the canvas                      */
    int anchor;  /* -1: starts there, 0: is centred there, 1: ends there        */
    int turned;  /* 1: reads upwards                                            */
    int bold;
    uint32_t ink;
    const char *text; /* valid UTF-8 without control characters                     */
} locus_label;

/* A surface, y downwards; what the calls are given lives until they return. `begin` comes first and tells its extent in units of the canvas and
 * how many pixels wide it is to become. */
typedef struct locus_canvas {
    uint32_t size; /* sizeof(locus_canvas) as the caller compiled it */
    void *context;
    void (*begin)(void *context, const locus_figure *figure, double width, double height,
                  uint32_t pixels);
    void (*boxes)(void *context, uint32_t ink, const locus_box *boxes, size_t count);
    void (*line)(void *context, uint32_t ink, double width, int dash, const locus_point *points,
                 size_t count);
    void (*label)(void *context, const locus_label *label);
    void (*end)(void *context);
    /* A translucent polygon; NULL: bands are left out. */
    void (*area)(void *context, uint32_t ink, const locus_point *points, size_t count);
} locus_canvas;

/* Lengths of dash and gap for `dash` of locus_canvas.line, in line widths; 0 ends them,
 * none at all: a solid line. */
LOCUS_API const double *locus_dash(int dash);

LOCUS_API LOCUS_MUST_CHECK locus_status locus_figure_draw(const locus_figure *figure,
                                                          const locus_render *render,
                                                          const locus_canvas *canvas,
                                                          const locus_allocator *allocator,
                                                          locus_error *error);

/* The width of a text in units of its size, as the layout reckons it: that of a wide font. */
LOCUS_API double locus_text_width(const char *text);

#ifdef __cplusplus
}
#endif
#endif
