/* SPDX-License-Identifier: Apache-2.0 */
/* The canvas that writes SVG. Things carry their ink as a class; the style at the end gives
 * colours to the inks that were used, twice when the reader's preference decides. */
#include <math.h>
#include <string.h>

#include "core/error.h"
#include "plot/layout.h"
#include "plot/render.h"

typedef struct svg {
    plot_text *text;
    const locus_render *render;
    const char *prefix;
    unsigned char filled[LOCUS_INK_COUNT], stroked[LOCUS_INK_COUNT], read[LOCUS_INK_COUNT];
} svg;

static void attribute(svg *s, const char *name, double value)
{
    plot_char(s->text, ' ');
    plot_puts(s->text, name);
    plot_puts(s->text, "=\"");
    plot_fixed(s->text, value, 2);
    plot_char(s->text, '"');
}

static void element(svg *s, const char *name, const char *content)
{
    if (content == NULL) return;
    plot_char(s->text, '<');
    plot_puts(s->text, name);
    plot_puts(s->text, " id=\"");
    plot_puts(s->text, s->prefix);
    plot_char(s->text, '-');
    plot_puts(s->text, name);
    plot_puts(s->text, "\">");
    plot_escaped(s->text, content);
    plot_puts(s->text, "</");
    plot_puts(s->text, name);
    plot_puts(s->text, ">\n");
}

/* A minus sign separates as well as a space: '\0' writes nothing in front. */
static void number_after(svg *s, char command, double value)
{
    if (command != '\0') plot_char(s->text, command);
    plot_fixed(s->text, value, 2);
}

static double hundredths(double value) { return floor(100.0 * value + 0.5) / 100.0; }

/* ---- the canvas ---- */

static void boxes(void *context, uint32_t ink, const locus_box *box, size_t count)
{
    svg *s = context;
    s->filled[ink] = 1;
    plot_puts(s->text, "<path class=\"i");
    plot_integer(s->text, ink);
    plot_puts(s->text, "\" d=\"");
    double x = 0, y = 0; /* the corner before, as it was written */
    for (size_t i = 0; i < count; i++) {
        const double right = hundredths(box[i].x - x), down = hundredths(box[i].y - y);
        number_after(s, 'm', right);
        number_after(s, down < 0 ? '\0' : ' ', down);
        x += right;
        y += down;
        number_after(s, 'h', box[i].width);
        number_after(s, 'v', box[i].height);
        number_after(s, 'h', -box[i].width);
        plot_char(s->text, 'z');
    }
    plot_puts(s->text, "\"/>\n");
}

static void dashes(svg *s, int dash, double width)
{
    const double *pattern = locus_dash(dash);
    if (pattern[0] == 0) return;
    plot_puts(s->text, " stroke-dasharray=\"");
    for (size_t i = 0; pattern[i] != 0; i++) number_after(s, ' ', pattern[i] * width);
    plot_char(s->text, '"');
}

static void line(void *context, uint32_t ink, double width, int dash, const locus_point *point,
                 size_t count)
{
    svg *s = context;
    s->stroked[ink] = 1;
    plot_puts(s->text, "<path class=\"s");
    plot_integer(s->text, ink);
    plot_char(s->text, '"');
    attribute(s, "stroke-width", width);
    dashes(s, dash, width);
    plot_puts(s->text, " d=\"");
    for (size_t i = 0; i < count; i++) {
        number_after(s, i == 0 ? 'M' : i == 1 ? 'L' : ' ', point[i].x);
        number_after(s, ' ', point[i].y);
    }
    if (count == 1) plot_puts(s->text, "h0.01"); /* a lone point shows as a dot */
    plot_puts(s->text, "\"/>\n");
}

static void area(void *context, uint32_t ink, const locus_point *point, size_t count)
{
    svg *s = context;
    s->filled[ink] = 1;
    plot_puts(s->text, "<path class=\"i");
    plot_integer(s->text, ink);
    plot_puts(s->text, "\" fill-opacity=\".16\" d=\"");
    for (size_t i = 0; i < count; i++) {
        number_after(s, i == 0 ? 'M' : i == 1 ? 'L' : ' ', point[i].x);
        number_after(s, ' ', point[i].y);
    }
    plot_puts(s->text, "z\"/>\n");
}

static void label(void *context, const locus_label *l)
{
    static const char *const anchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
    svg *s = context;
    const uint32_t ink = l->ink & ~(uint32_t)LOCUS_INK_ON;
    const int on = (l->ink & LOCUS_INK_ON) != 0;
    (on ? s->read : s->filled)[ink] = 1;
    plot_puts(s->text, on ? "<text class=\"o" : "<text class=\"i");
    plot_integer(s->text, ink);
    plot_char(s->text, '"');
    attribute(s, "x", l->x);
    attribute(s, "y", l->y);
    if (l->size != TEXT_SIZE) attribute(s, "font-size", l->size);
    plot_puts(s->text, anchors[l->anchor + 1]);
    if (l->bold) plot_puts(s->text, " font-weight=\"600\"");
    if (l->turned) {
        plot_puts(s->text, " transform=\"rotate(-90");
        number_after(s, ' ', l->x);
        number_after(s, ' ', l->y);
        plot_puts(s->text, ")\"");
    }
    plot_char(s->text, '>');
    plot_escaped(s->text, l->text);
    plot_puts(s->text, "</text>\n");
}

static void begin(void *context, const locus_figure *figure, double width, double height,
                  uint32_t pixels)
{
    svg *s = context;
    const char *described = figure->description;
    if (!s->render->fragment) plot_puts(s->text, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    plot_puts(s->text, "<svg xmlns=\"http://www.w3.org/2000/svg\" id=\"");
    plot_puts(s->text, s->prefix);
    plot_puts(s->text, "\" role=\"img\"");
    if (figure->title != NULL || described != NULL) {
        plot_puts(s->text, " aria-labelledby=\"");
        if (figure->title != NULL) plot_puts(s->text, s->prefix), plot_puts(s->text, "-title");
        if (figure->title != NULL && described != NULL) plot_char(s->text, ' ');
        if (described != NULL) plot_puts(s->text, s->prefix), plot_puts(s->text, "-desc");
        plot_char(s->text, '"');
    }
    attribute(s, "font-size", TEXT_SIZE);
    attribute(s, "width", pixels);
    attribute(s, "height", height * pixels / width);
    plot_puts(s->text, " viewBox=\"0 0");
    number_after(s, ' ', width);
    number_after(s, ' ', height);
    plot_puts(s->text, "\">\n");
    element(s, "title", figure->title);
    element(s, "desc", described);
    const locus_box paper = {0, 0, width, height};
    if (!s->render->fragment || s->render->background) boxes(s, LOCUS_INK_PAPER, &paper, 1);
}

/* ---- the style ---- */

static void rule(svg *s, char kind, uint32_t ink, const char *property, uint32_t colour)
{
    static const char hex[] = "0123456789abcdef";
    plot_char(s->text, '#');
    plot_puts(s->text, s->prefix);
    plot_puts(s->text, " .");
    plot_char(s->text, kind);
    plot_integer(s->text, ink);
    plot_char(s->text, '{');
    plot_puts(s->text, property);
    plot_puts(s->text, ":#");
    for (int shift = 20; shift >= 0; shift -= 4) plot_char(s->text, hex[colour >> shift & 15]);
    plot_puts(s->text, "}\n");
}

/* The rules of one theme; those that `other` gives too are left out. */
static void rules(svg *s, locus_theme theme, locus_theme other)
{
    for (uint32_t ink = 0; ink < LOCUS_INK_COUNT; ink++) {
        const uint32_t colour = locus_ink_colour(ink, theme);
        const uint32_t on = locus_ink_colour(ink | LOCUS_INK_ON, theme);
        const int same = theme != other && colour == locus_ink_colour(ink, other);
        if (s->filled[ink] && !same) rule(s, 'i', ink, "fill", colour);
        if (s->stroked[ink] && !same) rule(s, 's', ink, "stroke", colour);
        if (s->read[ink] && (theme == other || on != locus_ink_colour(ink | LOCUS_INK_ON, other)))
            rule(s, 'o', ink, "fill", on);
    }
}

static void end(void *context)
{
    svg *s = context;
    const locus_theme theme = s->render->theme;
    const locus_theme first = theme == LOCUS_THEME_DARK ? LOCUS_THEME_DARK : LOCUS_THEME_LIGHT;
    plot_puts(s->text, "<style>\n#");
    plot_puts(s->text, s->prefix);
    plot_puts(s->text, " text{font-family:\"Helvetica Neue\",Helvetica,Arial,\"DejaVu Sans\","
                       "sans-serif}\n#");
    plot_puts(s->text, s->prefix);
    plot_puts(s->text, " path[class^=i]{shape-rendering:crispEdges}\n#");
    plot_puts(s->text, s->prefix);
    plot_puts(s->text, " path[class^=s]{fill:none;stroke-linejoin:round}\n");
    rules(s, first, first);
    if (theme == LOCUS_THEME_AUTO) {
        plot_puts(s->text, "@media (prefers-color-scheme:dark){\n");
        rules(s, LOCUS_THEME_DARK, LOCUS_THEME_LIGHT);
        plot_puts(s->text, "}\n");
    }
    plot_puts(s->text, "</style>\n</svg>\n");
}

static int is_name(const char *prefix)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    if (*prefix == '\0' || strchr(letters, *prefix) == NULL) return 0;
    for (; *prefix != '\0'; prefix++)
        if (strchr(letters, *prefix) == NULL && strchr("0123456789-_", *prefix) == NULL) return 0;
    return 1;
}

locus_status plot_svg(plot_text *text, const locus_figure *figure, const locus_render *render,
                      locus_error *error)
{
    svg s = {.text = text, .render = render, .prefix = render->prefix};
    if (s.prefix == NULL) s.prefix = "locus";
    if (!is_name(s.prefix))
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "prefix: expected a letter, then letters, digits, '-' and '_'");
    const locus_canvas canvas = {.size = sizeof canvas,
                                 .context = &s,
                                 .begin = begin,
                                 .boxes = boxes,
                                 .line = line,
                                 .label = label,
                                 .end = end,
                                 .area = area};
    return locus_figure_draw(figure, render, &canvas, text->to->allocator, error);
}
