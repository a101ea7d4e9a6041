/* SPDX-License-Identifier: Apache-2.0 */
/* A figure: a title, panels in a grid, a caption. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "core/adopt.h"
#include "core/error.h"
#include "core/memory.h"
#include "plot/layout.h"
#include "plot/render.h"

/* A panel narrower than LEAST has no room for its labels; one as wide as COMFORTABLE is laid
 * out at the size of its letters; wider ones are magnified. */
#define LEAST 300.0
#define COMFORTABLE 460.0
#define MAGNIFIED 2.5

typedef struct grid {
    const locus_figure *figure;
    plot_frame *frames;
    size_t columns, rows;
    double panel, width, height; /* of one panel, of all */
    double head;                 /* where the first row starts */
} grid;

static void lay_out(grid *g, uint32_t pixels)
{
    const locus_figure *figure = g->figure;
    const size_t wish = figure->columns > 0 ? figure->columns : 4;
    const size_t fit = pixels / (size_t)LEAST > 0 ? pixels / (size_t)LEAST : 1;
    g->columns = wish < fit ? wish : fit;
    if (g->columns > figure->panel_count) g->columns = figure->panel_count;
    /* Full rows look better than one panel alone in the last. */
    g->rows = (figure->panel_count + g->columns - 1) / g->columns;
    g->columns = (figure->panel_count + g->rows - 1) / g->rows;
    const double share = pixels / (double)g->columns;
    double scale = share < LEAST ? share / LEAST : fmax(1.0, share / COMFORTABLE);
    scale = fmin(scale, MAGNIFIED);
    g->panel = share / scale;
    g->width = g->panel * (double)g->columns;
}

static uint32_t usual_width(const locus_figure *figure)
{
    const size_t side = figure->columns > 0 && figure->columns < figure->panel_count
                            ? figure->columns
                            : figure->panel_count;
    return side < 2 ? 560 : side < 3 ? 800 : 960;
}

static double row_height(const grid *g, size_t row)
{
    double height = 0;
    for (size_t i = row * g->columns; i < (row + 1) * g->columns && i < g->figure->panel_count; i++)
        height = fmax(height, g->frames[i].height);
    return height;
}

/* Data areas side by side start at one height, however long their titles are. */
static void align(grid *g, size_t row)
{
    const size_t first = row * g->columns, count = g->figure->panel_count;
    double top = 0;
    for (size_t i = first; i < first + g->columns && i < count; i++)
        top = fmax(top, g->frames[i].top);
    for (size_t i = first; i < first + g->columns && i < count; i++) {
        g->frames[i].height += top - g->frames[i].top;
        g->frames[i].top = top;
    }
}

static void measure(grid *g)
{
    const double inner = g->width - 2 * PAD;
    const size_t title = plot_wrap_lines(g->figure->title, inner / (1.1 * HEAD_SIZE));
    const size_t caption = plot_wrap_lines(g->figure->caption, inner / TEXT_SIZE);
    g->head = title > 0 ? PAD + (double)title * HEAD_SIZE * LINE_HEIGHT : 0.0;
    g->height = g->head;
    for (size_t i = 0; i < g->figure->panel_count; i++)
        plot_measure(&g->frames[i], &g->figure->panels[i], g->panel);
    for (size_t row = 0; row < g->rows; row++) {
        align(g, row);
        g->height += row_height(g, row);
    }
    if (caption > 0) g->height += (double)caption * TEXT_SIZE * LINE_HEIGHT + PAD;
}

static void draw(grid *g, plot_pen *pen)
{
    const double inner = g->width - 2 * PAD;
    plot_paragraph(pen, PAD, PAD + HEAD_SIZE, inner / 1.1, HEAD_SIZE, 1, LOCUS_INK_TEXT,
                   g->figure->title);
    double y = g->head;
    for (size_t row = 0; row < g->rows; row++) {
        for (size_t column = 0; column < g->columns; column++) {
            const size_t i = row * g->columns + column;
            if (i >= g->figure->panel_count) break;
            pen->x = (double)column * g->panel;
            pen->y = y;
            plot_draw(pen, &g->figure->panels[i], &g->frames[i]);
        }
        y += row_height(g, row);
    }
    pen->x = pen->y = 0;
    plot_paragraph(pen, PAD, y + TEXT_SIZE, inner, TEXT_SIZE, 0, LOCUS_INK_FAINT,
                   g->figure->caption);
}

/* All structs are of this version. */
static locus_status draw_figure(const locus_figure *figure, const locus_render *render,
                                const locus_canvas *canvas, const locus_allocator *allocator,
                                locus_error *error)
{
    LOCUS_TRY(plot_check(figure, error));
    const uint32_t pixels = render->width != 0 ? render->width : usual_width(figure);
    if (pixels < 200 || pixels > 10000)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "width: found %" PRIu32 ", expected 200..10,000 pixels", pixels);
    grid g = {.figure = figure};
    g.frames = locus_allocate(allocator, figure->panel_count, sizeof *g.frames);
    if (g.frames == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "figure: out of memory");
    plot_pen pen = {.canvas = canvas, .allocator = allocator};
    lay_out(&g, pixels);
    measure(&g);
    canvas->begin(canvas->context, figure, g.width, g.height, pixels);
    draw(&g, &pen);
    canvas->end(canvas->context);
    locus_release(allocator, g.frames);
    return pen.failed ? locus_fail(error, LOCUS_ERR_MEMORY, "figure: out of memory") : LOCUS_OK;
}

/* Every call that a canvas of 0.2 makes. */
static locus_status check_canvas(const locus_canvas *canvas, locus_error *error)
{
    if (canvas->begin != NULL && canvas->boxes != NULL && canvas->line != NULL &&
        canvas->label != NULL && canvas->end != NULL)
        return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_ARGUMENT, "canvas: found NULL among its functions");
}

locus_status locus_figure_draw(const locus_figure *figure, const locus_render *render,
                               const locus_canvas *canvas, const locus_allocator *allocator,
                               locus_error *error)
{
    locus_render own_render = {.size = sizeof own_render};
    locus_canvas own_canvas = {.size = 0};
    plot_adopted adopted;
    if (canvas == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "canvas: expected one, found NULL");
    if (render == NULL) render = &own_render;
    LOCUS_ADOPT(render, own_render, "render", error);
    LOCUS_ADOPT(canvas, own_canvas, "canvas", error);
    LOCUS_TRY(check_canvas(canvas, error));
    LOCUS_TRY(plot_adopt(&figure, &adopted, allocator, error));
    const locus_status status = draw_figure(figure, render, canvas, allocator, error);
    plot_adopted_free(&adopted);
    return status;
}
