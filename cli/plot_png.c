/* SPDX-License-Identifier: Apache-2.0 */
/* PNG through cairo, where the program was built with it. */
#include "plot.h"

#ifdef LOCUS_CAIRO

#include <cairo.h>
#include <math.h>

typedef struct bitmap {
    cairo_surface_t *surface;
    cairo_t *cairo;
    cairo_font_options_t *options; /* letters as wide as they are, at any size */
    locus_theme theme;
} bitmap;

static void set_ink(bitmap *b, uint32_t ink)
{
    const uint32_t rgb = locus_ink_colour(ink, b->theme);
    cairo_set_source_rgb(b->cairo, (rgb >> 16 & 0xFF) / 255.0, (rgb >> 8 & 0xFF) / 255.0,
                         (rgb & 0xFF) / 255.0);
}

static void begin(void *context, const locus_figure *figure, double width, double height,
                  uint32_t pixels)
{
    bitmap *b = context;
    (void)figure;
    const double scale = pixels / width;
    b->surface =
        cairo_image_surface_create(CAIRO_FORMAT_RGB24, (int)pixels, (int)ceil(height * scale));
    b->cairo = cairo_create(b->surface);
    b->options = cairo_font_options_create();
    cairo_font_options_set_hint_metrics(b->options, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_hint_style(b->options, CAIRO_HINT_STYLE_NONE);
    set_ink(b, LOCUS_INK_PAPER);
    cairo_paint(b->cairo);
    cairo_scale(b->cairo, scale, scale);
}

static void boxes(void *context, uint32_t ink, const locus_box *box, size_t count)
{
    bitmap *b = context;
    set_ink(b, ink);
    cairo_set_antialias(b->cairo, CAIRO_ANTIALIAS_NONE);
    for (size_t i = 0; i < count; i++)
        cairo_rectangle(b->cairo, box[i].x, box[i].y, box[i].width, box[i].height);
    cairo_fill(b->cairo);
    cairo_set_antialias(b->cairo, CAIRO_ANTIALIAS_DEFAULT);
}

static void line(void *context, uint32_t ink, double width, int dash, const locus_point *point,
                 size_t count)
{
    bitmap *b = context;
    const double *pattern = locus_dash(dash);
    double lengths[8];
    int parts = 0;
    for (; parts < 8 && pattern[parts] != 0; parts++) lengths[parts] = pattern[parts] * width;
    cairo_set_dash(b->cairo, lengths, parts, 0);
    cairo_set_line_width(b->cairo, width);
    cairo_set_line_join(b->cairo, CAIRO_LINE_JOIN_ROUND);
    set_ink(b, ink);
    cairo_move_to(b->cairo, point[0].x, point[0].y);
    for (size_t i = 1; i < count; i++) cairo_line_to(b->cairo, point[i].x, point[i].y);
    if (count == 1) cairo_rel_line_to(b->cairo, 0.01, 0);
    cairo_stroke(b->cairo);
}

static void area(void *context, uint32_t ink, const locus_point *point, size_t count)
{
    bitmap *b = context;
    const uint32_t rgb = locus_ink_colour(ink, b->theme);
    cairo_set_source_rgba(b->cairo, (rgb >> 16 & 0xFF) / 255.0, (rgb >> 8 & 0xFF) / 255.0,
                          (rgb & 0xFF) / 255.0, 0.16);
    cairo_move_to(b->cairo, point[0].x, point[0].y);
    for (size_t i = 1; i < count; i++) cairo_line_to(b->cairo, point[i].x, point[i].y);
    cairo_fill(b->cairo);
}

static void label(void *context, const locus_label *l)
{
    bitmap *b = context;
    cairo_text_extents_t extents;
    cairo_select_font_face(b->cairo, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                           l->bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
    cairo_set_font_size(b->cairo, l->size);
    cairo_set_font_options(b->cairo, b->options);
    cairo_text_extents(b->cairo, l->text, &extents);
    set_ink(b, l->ink);
    cairo_save(b->cairo);
    cairo_translate(b->cairo, l->x, l->y);
    if (l->turned) cairo_rotate(b->cairo, -acos(0.0));
    cairo_move_to(b->cairo, -extents.x_advance * (l->anchor + 1) / 2.0, 0);
    cairo_show_text(b->cairo, l->text);
    cairo_restore(b->cairo);
}

static void end(void *context) { cairo_surface_flush(((bitmap *)context)->surface); }

static cairo_status_t put(void *file, const unsigned char *bytes, unsigned count)
{
    return fwrite(bytes, 1, count, file) == count ? CAIRO_STATUS_SUCCESS : CAIRO_STATUS_WRITE_ERROR;
}

int plot_write_png(const locus_figure *figure, const locus_render *render, const char *path)
{
    bitmap b = {.theme = render->theme};
    const locus_canvas canvas = {.size = sizeof canvas,
                                 .context = &b,
                                 .begin = begin,
                                 .boxes = boxes,
                                 .line = line,
                                 .label = label,
                                 .end = end,
                                 .area = area};
    locus_error error = {""};
    const locus_status status = locus_figure_draw(figure, render, &canvas, NULL, &error);
    int exit_code = CLI_DONE;
    if (status != LOCUS_OK) {
        exit_code = cli_report("plot", status, path, &error);
    } else if (cairo_status(b.cairo) != CAIRO_STATUS_SUCCESS) {
        exit_code = cli_complain("plot", CLI_RESOURCES, "cairo: %s",
                                 cairo_status_to_string(cairo_status(b.cairo)));
    } else {
        cli_output output;
        cli_output_begin(&output, path);
        if (output.file != NULL) cairo_surface_write_to_png_stream(b.surface, put, output.file);
        exit_code = cli_output_finish(&output, "plot");
    }
    if (b.options != NULL) cairo_font_options_destroy(b.options);
    if (b.cairo != NULL) cairo_destroy(b.cairo);
    if (b.surface != NULL) cairo_surface_destroy(b.surface);
    return exit_code;
}

#else

int plot_write_png(const locus_figure *figure, const locus_render *render, const char *path)
{
    (void)figure;
    (void)render;
    (void)path;
    return cli_complain("plot", CLI_USAGE,
                        "this program was built without PNG; install libcairo2-dev and pkg-config "
                        "and build it again, or write an .svg");
}

#endif
