/* SPDX-License-Identifier: Apache-2.0 */

/* Pictures: ticks, numbers, colours, strangers' text, and a layout in which no text lies on
 * another or leaves the paper, from 200 to 10,000 pixels. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/plot.h>

#include "plot/colour.h"
#include "plot/text.h"
#include "plot/ticks.h"
#include "support/check.h"
#include "support/problem.h"

/* ---- numbers ---- */

static void test_ticks(void)
{
    static const double limits[][2] = {{0, 1},       {-1, 1},     {0, 7},       {-64, 64},
                                       {0.12, 0.98}, {-3.4, 3.4}, {1e-4, 3e-4}, {-2e6, 5e6},
                                       {5, 5},       {0, 1e-12},  {-0.1, 0},    {99, 101}};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        const double low = limits[i][0], high = limits[i][1];
        if (!check_begin("plot/ticks/%g..%g", low, high)) continue;
        for (size_t most = 2; most <= 12; most++) {
            const plot_ticks t = plot_ticks_between(low, high, most, 0);
            CHECK(t.count >= 1 && t.count <= most + 1, "%zu ticks, at most %zu", t.count, most);
            char before[PLOT_NUMBER] = "", text[PLOT_NUMBER];
            for (size_t k = 0; k < t.count; k++) {
                const double value = plot_tick(&t, k), slack = 1e-6 * (high - low) + 1e-300;
                CHECK(value >= low - slack && value <= high + slack, "tick %g outside", value);
                plot_fixed_text(text, value, t.digits);
                CHECK(high - low < 1e-5 || strcmp(before, text) != 0, "two ticks read %s", text);
                memcpy(before, text, sizeof before);
            }
            const plot_ticks whole = plot_ticks_between(low, high, most, 1);
            CHECK(high - low < 1 || whole.step >= 1, "a step of %g between whole numbers",
                  whole.step);
        }
    }
}

static void test_numbers(void)
{
    static const struct {
        double value;
        int digits;
        const char *fixed, *padded;
    } cases[] = {
        {0, 2, "0", "0.00"},     {-0.001, 2, "0", "0.00"},   {1, 2, "1", "1.00"},
        {0.5, 2, "0.5", "0.50"}, {-0.25, 1, "-0.3", "-0.3"}, {1234.5678, 3, "1234.568", "1234.568"},
        {100, 0, "100", "100"},  {1e15, 2, "inf", "inf"},    {-1e15, 2, "-inf", "-inf"},
        {NAN, 2, "nan", "nan"},  {0.05, 2, "0.05", "0.05"},  {9.999, 2, "10", "10.00"},
    };
    char text[PLOT_NUMBER];
    if (!check_begin("plot/numbers")) return;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        plot_fixed_text(text, cases[i].value, cases[i].digits);
        CHECK(strcmp(text, cases[i].fixed) == 0, "%g reads %s", cases[i].value, text);
        plot_padded_text(text, cases[i].value, cases[i].digits);
        CHECK(strcmp(text, cases[i].padded) == 0, "%g reads %s", cases[i].value, text);
    }
    static const double exact[] = {0.1, 1.0 / 3, -2.5e-300, 1e22, 123456789.0, 5e-324};
    for (size_t i = 0; i < sizeof exact / sizeof *exact; i++) {
        locus_text out = {0};
        plot_text to = {.to = &out};
        plot_exact(&to, exact[i]);
        CHECK(strtod(out.data, NULL) == exact[i], "%.17g became %s", exact[i], out.data);
        locus_text_free(&out);
    }
}

/* ---- colours ---- */

static double lightness(uint32_t ink, locus_theme theme)
{
    return plot_lightness(locus_ink_colour(ink, theme));
}

static void test_colours(void)
{
    if (check_begin("plot/colours/sequential"))
        for (uint32_t i = 1; i < PLOT_SEQUENTIAL; i++)
            CHECK(lightness(LOCUS_INK_SEQUENTIAL + i, LOCUS_THEME_LIGHT) >
                      lightness(LOCUS_INK_SEQUENTIAL + i - 1, LOCUS_THEME_LIGHT),
                  "step %u is not lighter than the one before", (unsigned)i);
    for (int dark = 0; dark <= 1; dark++) {
        const locus_theme theme = dark ? LOCUS_THEME_DARK : LOCUS_THEME_LIGHT;
        if (!check_begin("plot/colours/diverging/%s", dark ? "dark" : "light")) continue;
        for (uint32_t i = 1; i < PLOT_DIVERGING; i++) {
            const double step = lightness(LOCUS_INK_DIVERGING + i, theme) -
                                lightness(LOCUS_INK_DIVERGING + i - 1, theme);
            CHECK((i <= PLOT_DIVERGING / 2) != dark ? step > 0 : step < 0,
                  "step %u goes the wrong way by %g", (unsigned)i, step);
        }
        /* Zero is neutral: its channels hardly differ. */
        const uint32_t zero = locus_ink_colour(LOCUS_INK_DIVERGING + PLOT_DIVERGING / 2, theme);
        const int red = zero >> 16 & 0xFF, blue = zero & 0xFF;
        CHECK(abs(red - blue) <= 8, "zero is #%06x", (unsigned)zero);
        for (uint32_t ink = LOCUS_INK_SERIES; ink < LOCUS_INK_COUNT; ink++)
            CHECK(fabs(lightness(ink, theme) - lightness(ink | LOCUS_INK_ON, theme)) > 35,
                  "letters on ink %u cannot be read", (unsigned)ink);
    }
    if (check_begin("plot/colours/levels")) {
        CHECK(plot_level(NAN, 0, 1, LOCUS_COLOURS_SEQUENTIAL) == LOCUS_INK_HIDDEN, "NaN");
        CHECK(plot_level(INFINITY, 0, 1, LOCUS_COLOURS_SEQUENTIAL) ==
                  LOCUS_INK_SEQUENTIAL + PLOT_SEQUENTIAL - 1,
              "infinity is not at the end");
        CHECK(plot_level(0, -3, 3, LOCUS_COLOURS_DIVERGING) ==
                  LOCUS_INK_DIVERGING + PLOT_DIVERGING / 2,
              "zero is not in the middle");
        CHECK(plot_level(5, 5, 5, LOCUS_COLOURS_SEQUENTIAL) < LOCUS_INK_DIVERGING, "constant");
    }
}

/* ---- a figure with everything that can go wrong in it ---- */

enum { TOKENS = 12, CELLS = TOKENS * TOKENS, POINTS = 200, SERIES = 8 };

static const char *const hostile[TOKENS] = {
    "<script>",
    "&amp;",
    "\"quoted\"",
    "'",
    "\x80\xff",
    "\xe2\x80\xae reversed",
    "\033[31m",
    "",
    "extraordinarily-long-token-that-never-ends",
    "\xe6\xbc\xa2\xe5\xad\x97",
    "a b",
    "\xcc\x81",
};

typedef struct sample {
    double cells[CELLS], curves[SERIES][POINTS];
    locus_series series[SERIES];
    locus_panel panels[5];
    locus_figure figure;
} sample;

static void fill(sample *s, double scale)
{
    for (size_t i = 0; i < CELLS; i++) s->cells[i] = i % 7 == 0 ? NAN : scale * sin((double)i);
    for (size_t c = 0; c < SERIES; c++) {
        for (size_t i = 0; i < POINTS; i++)
            s->curves[c][i] = i == 50 ? NAN : scale * cos((double)(c * i) / 20);
        s->series[c] = (locus_series){
            .size = sizeof(locus_series), .name = hostile[c], .y = s->curves[c], .count = POINTS};
    }
    const locus_axis words = {.label = "key <n>", .unit = "tokens & more", .names = hostile};
    const locus_axis numbers = {.label = "position", .first = -1000, .step = 250};
    const locus_panel panels[5] = {
        {.title = "a title that is so long that it has to be broken more than once on its way",
         .values = s->cells,
         .rows = TOKENS,
         .columns = TOKENS,
         .x = words,
         .y = words,
         .value_name = "a name that is far too long for the height of the colour bar beside it",
         .note = "and a note under it that is a good deal longer than the panel is wide, so that "
                 "it has to be broken too"},
        {.title = "numbers",
         .values = s->cells,
         .rows = 2,
         .columns = CELLS / 2,
         .x = numbers,
         .y = numbers,
         .value_unit = "rad",
         .whole = 1},
        {.kind = LOCUS_PANEL_LINES,
         .title = "curves",
         .series = s->series,
         .series_count = SERIES,
         .x = {.label = "x"},
         .y = {.label = "y"}},
        {.kind = LOCUS_PANEL_BARS, .series = s->series, .series_count = 3, .x = {.first = 0.5}},
        {.kind = LOCUS_PANEL_STACK, .series = s->series, .series_count = 3},
    };
    memcpy(s->panels, panels, sizeof panels);
    for (size_t i = 0; i < 5; i++) s->panels[i].size = sizeof *s->panels;
    s->figure = (locus_figure){.size = sizeof s->figure,
                               .title = "Tokens <of> strangers & what they do to a long head line",
                               .description = "\"everything\" at once",
                               .caption = "query down, key across; and some more words that make "
                                          "this caption break at small widths",
                               .panels = s->panels,
                               .panel_count = 5};
}

/* ---- layout: the labels as boxes ---- */

enum { LABELS = 4096 };

typedef struct recorder {
    double width, height;
    size_t count;
    struct {
        locus_box box;
        char text[48];
    } labels[LABELS];
    int began, ended;
    double outside; /* by how much a box or a line leaves the paper */
} recorder;

static void leave(recorder *r, double x, double y)
{
    const double out = fmax(fmax(-x, -y), fmax(x - r->width, y - r->height));
    r->outside = fmax(r->outside, out);
}

static void on_begin(void *context, const locus_figure *figure, double width, double height,
                     uint32_t pixels)
{
    recorder *r = context;
    (void)figure;
    (void)pixels;
    r->width = width;
    r->height = height;
    r->began++;
}

static void on_boxes(void *context, uint32_t ink, const locus_box *boxes, size_t count)
{
    (void)ink;
    for (size_t i = 0; i < count; i++) {
        leave(context, boxes[i].x, boxes[i].y);
        leave(context, boxes[i].x + boxes[i].width, boxes[i].y + boxes[i].height);
    }
}

static void on_line(void *context, uint32_t ink, double width, int dash, const locus_point *points,
                    size_t count)
{
    (void)ink;
    (void)width;
    (void)dash;
    for (size_t i = 0; i < count; i++) leave(context, points[i].x, points[i].y);
}

/* Letters reach 0.75 of their size above the line and 0.22 below it. */
static void on_label(void *context, const locus_label *l)
{
    recorder *r = context;
    if (r->count == LABELS) return;
    const double length = locus_text_width(l->text) * l->size * (l->bold ? 1.08 : 1.0) / 1.03;
    const double start = -length * (l->anchor + 1) / 2.0;
    locus_box box = {l->x + start, l->y - 0.75 * l->size, length, 0.97 * l->size};
    if (l->turned)
        box = (locus_box){l->x - 0.75 * l->size, l->y - start - length, 0.97 * l->size, length};
    CHECK(box.x >= 0 && box.y >= 0 && box.x + box.width <= r->width &&
              box.y + box.height <= r->height,
          "\"%s\" leaves the paper", l->text);
    r->labels[r->count].box = box;
    snprintf(r->labels[r->count++].text, 48, "%s", l->text);
}

static void on_end(void *context) { ((recorder *)context)->ended++; }

static int overlap(const locus_box *a, const locus_box *b)
{
    return a->x + a->width > b->x + 0.01 && b->x + b->width > a->x + 0.01 &&
           a->y + a->height > b->y + 0.01 && b->y + b->height > a->y + 0.01;
}

static void check_layout(const locus_figure *figure, uint32_t width)
{
    static recorder r;
    const locus_canvas canvas = {.size = sizeof canvas,
                                 .context = &r,
                                 .begin = on_begin,
                                 .boxes = on_boxes,
                                 .line = on_line,
                                 .label = on_label,
                                 .end = on_end};
    const locus_render render = {.size = sizeof render, .width = width};
    locus_error error = {""};
    memset(&r, 0, sizeof r);
    CHECK(locus_figure_draw(figure, &render, &canvas, NULL, &error) == LOCUS_OK, "%s", error.text);
    CHECK(r.began == 1 && r.ended == 1, "begun %d times, ended %d times", r.began, r.ended);
    CHECK(r.count > 20 && r.count < LABELS, "%zu labels", r.count);
    CHECK(r.outside < 1e-6, "something leaves the paper by %g", r.outside);
    for (size_t i = 0; i < r.count; i++)
        for (size_t k = i + 1; k < r.count; k++)
            CHECK(!overlap(&r.labels[i].box, &r.labels[k].box), "\"%s\" lies on \"%s\"",
                  r.labels[i].text, r.labels[k].text);
}

static void test_layout(void)
{
    static const uint32_t widths[] = {200, 300, 400, 560, 800, 960, 1600, 4000, 10000};
    static const double scales[] = {1, 1e-4, 12345.678, 0};
    static sample s;
    for (size_t k = 0; k < sizeof scales / sizeof *scales; k++) {
        fill(&s, scales[k]);
        for (size_t w = 0; w < sizeof widths / sizeof *widths; w++)
            if (check_begin("plot/layout/scale%g/%upx", scales[k], (unsigned)widths[w]))
                check_layout(&s.figure, widths[w]);
    }
}

/* ---- cells ---- */

enum { SIDE = 24, CELL_BOXES = SIDE * SIDE };

typedef struct cell_list {
    size_t count;
    locus_box boxes[CELL_BOXES];
} cell_list;

/* Cells alone: in a colour of values, and wider or higher than a step of the colour bar. */
static void on_cells(void *context, uint32_t ink, const locus_box *boxes, size_t count)
{
    cell_list *list = context;
    for (size_t i = 0; i < count && ink == LOCUS_INK_SEQUENTIAL + 63; i++)
        if (list->count < CELL_BOXES) list->boxes[list->count++] = boxes[i];
    for (size_t i = 0; i < count && ink == LOCUS_INK_SEQUENTIAL; i++)
        if (list->count < CELL_BOXES) list->boxes[list->count++] = boxes[i];
}
static void no_begin(void *context, const locus_figure *figure, double width, double height,
                     uint32_t pixels)
{
    (void)context, (void)figure, (void)width, (void)height, (void)pixels;
}
static void no_line(void *context, uint32_t ink, double width, int dash, const locus_point *points,
                    size_t count)
{
    (void)context, (void)ink, (void)width, (void)dash, (void)points, (void)count;
}
static void no_label(void *context, const locus_label *label) { (void)context, (void)label; }
static void no_end(void *context) { (void)context; }

/* Does another box reach under the left (or upper) edge of box b, and past it? */
static int is_covered(const cell_list *list, const locus_box *b, int upper)
{
    const double enough = 0.05, x = b->x + b->width / 2, y = b->y + b->height / 2;
    for (size_t i = 0; i < list->count; i++) {
        const locus_box *o = &list->boxes[i];
        if (upper ? o->y < b->y - 0.5 && o->y + o->height >= b->y + enough && o->x <= x &&
                        o->x + o->width >= x
                  : o->x < b->x - 0.5 && o->x + o->width >= b->x + enough && o->y <= y &&
                        o->y + o->height >= y)
            return 1;
    }
    return 0;
}

/* A chequered map: no pixel between two cells can be left unpainted, whatever the zoom. */
static void test_cells(void)
{
    static double values[SIDE * SIDE];
    static cell_list list;
    for (size_t i = 0; i < SIDE * SIDE; i++) values[i] = (double)((i + i / SIDE) % 2);
    const locus_panel panel = {.size = sizeof panel,
                               .kind = LOCUS_PANEL_HEATMAP,
                               .values = values,
                               .rows = SIDE,
                               .columns = SIDE};
    const locus_figure figure = {.size = sizeof figure, .panels = &panel, .panel_count = 1};
    const locus_canvas canvas = {sizeof canvas, &list,    no_begin, on_cells,
                                 no_line,       no_label, no_end,   NULL};
    for (uint32_t width = 300; width <= 1500; width += 397) {
        const locus_render render = {.size = sizeof render, .width = width};
        locus_error error = {""};
        int bare = 0;
        if (!check_begin("plot/cells/%upx", (unsigned)width)) continue;
        list.count = 0;
        CHECK(locus_figure_draw(&figure, &render, &canvas, NULL, &error) == LOCUS_OK, "%s",
              error.text);
        double left = INFINITY, top = INFINITY;
        for (size_t i = 0; i < list.count; i++) {
            left = fmin(left, list.boxes[i].x);
            top = fmin(top, list.boxes[i].y);
        }
        for (size_t i = 0; i < list.count; i++) {
            const locus_box *b = &list.boxes[i];
            bare += b->x > left + 0.5 && !is_covered(&list, b, 0);
            bare += b->y > top + 0.5 && !is_covered(&list, b, 1);
        }
        CHECK(list.count >= SIDE * SIDE - 4, "%zu cells", list.count);
        CHECK(bare == 0, "%d edges are not covered", bare);
    }
}

/* ---- axes ---- */

/* An axis of numbers tells a scale: three of them at least, where there is room for five. */
static void test_readable_axes(void)
{
    if (!check_begin("plot/readable-axes")) return;
    for (int i = 0; i < 20000; i++) {
        const double size = pow(10.0, 8.0 * test_uniform(1, (uint64_t)i) - 4.0);
        const double low = size * (2.0 * test_uniform(2, (uint64_t)i) - 1.0);
        const double high = low + size * (0.01 + test_uniform(3, (uint64_t)i));
        const size_t most = 5 + (size_t)(i % 6);
        const plot_ticks ticks = plot_ticks_between(low, high, most, 0);
        CHECK(ticks.count >= 3 && ticks.count <= most, "%g to %g, room for %zu: %zu numbers", low,
              high, most, ticks.count);
        CHECK(plot_tick(&ticks, 0) >= low - 1e-6 * size &&
                  plot_tick(&ticks, ticks.count - 1) <= high + 1e-6 * size,
              "%g to %g: a number lies outside", low, high);
    }
}

/* ---- formats ---- */

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (; (text = strstr(text, part)) != NULL; text += strlen(part)) count++;
    return count;
}

static void test_svg(void)
{
    static sample s;
    locus_text out = {0};
    locus_error error = {""};
    const locus_render render = {
        .size = sizeof render, .fragment = 1, .prefix = "fig-7", .theme = LOCUS_THEME_AUTO};
    fill(&s, 1);
    if (check_begin("plot/svg/fragment")) {
        CHECK(locus_figure_render(&s.figure, LOCUS_FORMAT_SVG, &render, &out, &error) == LOCUS_OK,
              "%s", error.text);
        CHECK(strncmp(out.data, "<svg ", 5) == 0, "starts with %.20s", out.data);
        CHECK(count_of(out.data, "<script") == 0, "a token became an element");
        CHECK(count_of(out.data, "&lt;script&gt;") > 0, "a token is not there at all");
        CHECK(count_of(out.data, "id=\"fig-7") == count_of(out.data, " id=\""), "an id of its own");
        CHECK(count_of(out.data, "prefers-color-scheme") == 1, "no second theme");
        CHECK(strlen(out.data) == out.length, "a NUL inside");
        CHECK(strchr(out.data, '\033') == NULL, "an escape character");
    }
    if (check_begin("plot/svg/same-twice")) {
        locus_text again = {0};
        CHECK(locus_figure_render(&s.figure, LOCUS_FORMAT_SVG, &render, &again, &error) == LOCUS_OK,
              "%s", error.text);
        CHECK(out.length > 0 && again.length == out.length &&
                  memcmp(again.data, out.data, out.length) == 0,
              "two drawings differ");
        locus_text_free(&again);
    }
    locus_text_free(&out);
}

static void test_other_formats(void)
{
    static sample s;
    locus_error error = {""};
    fill(&s, 1);
    for (int format = LOCUS_FORMAT_TERMINAL; format <= LOCUS_FORMAT_JSON; format++) {
        for (uint32_t width = 1; width <= 161; width += 40) {
            const locus_render render = {.size = sizeof render, .width = width, .plain = 1};
            locus_text out = {0};
            if (!check_begin("plot/format%d/%u", format, (unsigned)width)) continue;
            CHECK(locus_figure_render(&s.figure, (locus_format)format, &render, &out, &error) ==
                      LOCUS_OK,
                  "%s", error.text);
            CHECK(out.length > 1000 && strlen(out.data) == out.length, "%zu bytes", out.length);
            CHECK(strchr(out.data, '\033') == NULL, "an escape character");
            for (size_t i = 0; format == LOCUS_FORMAT_TERMINAL && i < out.length; i++)
                CHECK((unsigned char)out.data[i] < 0x80, "byte %zu is not ASCII", i);
            locus_text_free(&out);
        }
    }
}

/* ---- refusals ---- */

static void refuse(const char *name, const locus_figure *figure, const locus_render *render)
{
    locus_text out = {0};
    locus_error error = {""};
    if (!check_begin("plot/refuse/%s", name)) return;
    CHECK(locus_figure_render(figure, LOCUS_FORMAT_SVG, render, &out, &error) == LOCUS_ERR_ARGUMENT,
          "not refused");
    CHECK(error.text[0] != '\0' && out.length == 0, "\"%s\", %zu bytes", error.text, out.length);
    locus_text_free(&out);
}

static void test_refusals(void)
{
    static sample s;
    fill(&s, 1);
    const locus_render narrow = {.size = sizeof narrow, .width = 10},
                       wide = {.size = sizeof wide, .width = 10001},
                       prefix = {.size = sizeof prefix, .prefix = "a b"},
                       digit = {.size = sizeof digit, .prefix = "7"};
    const locus_figure none = {.size = sizeof none, .title = "no panels"};
    const locus_panel huge = {
        .size = sizeof huge, .values = s.cells, .rows = 1 << 20, .columns = 2};
    const locus_panel empty = {.size = sizeof empty, .values = s.cells, .rows = 0, .columns = 2};
    const locus_panel bare = {.size = sizeof bare, .kind = LOCUS_PANEL_LINES};
    const locus_figure of_huge = {.size = sizeof of_huge, .panels = &huge, .panel_count = 1};
    const locus_figure of_empty = {.size = sizeof of_empty, .panels = &empty, .panel_count = 1};
    const locus_figure of_bare = {.size = sizeof of_bare, .panels = &bare, .panel_count = 1};
    refuse("no-figure", NULL, NULL);
    refuse("no-panels", &none, NULL);
    refuse("too-many-cells", &of_huge, NULL);
    refuse("no-cells", &of_empty, NULL);
    refuse("no-series", &of_bare, NULL);
    refuse("too-narrow", &s.figure, &narrow);
    refuse("too-wide", &s.figure, &wide);
    refuse("prefix-with-blank", &s.figure, &prefix);
    refuse("prefix-with-digit", &s.figure, &digit);
}

/* An allocator that gives `left` blocks and then none. */
static void *limited(void *context, size_t bytes)
{
    int *left = context;
    return (*left)-- > 0 ? aligned_alloc(64, bytes) : NULL;
}
static void give_back(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static void test_memory(void)
{
    static sample s;
    fill(&s, 1);
    if (!check_begin("plot/memory")) return;
    for (int blocks = 0;; blocks++) {
        int left = blocks;
        const locus_allocator allocator = {limited, give_back, &left};
        locus_text out = {.allocator = &allocator};
        const locus_status status =
            locus_figure_render(&s.figure, LOCUS_FORMAT_SVG, NULL, &out, NULL);
        CHECK(status == LOCUS_OK || status == LOCUS_ERR_MEMORY, "status %d", (int)status);
        CHECK((status == LOCUS_OK) == (out.length > 0), "%zu bytes beside status %d", out.length,
              (int)status);
        locus_text_free(&out);
        if (status == LOCUS_OK || blocks > 200) break;
    }
}

/* ---- bands, marks, curves for comparison ---- */

static void test_bands(void)
{
    const double y[] = {1, 2, 3}, low[] = {0.5, 1.5, 2}, high[] = {1.5, 9, 4};
    const locus_series series[] = {
        {.size = sizeof *series, .name = "own", .y = y, .count = 3, .low = low, .high = high},
        {.size = sizeof *series, .name = "other", .y = high, .count = 3, .behind = 1}};
    const locus_panel panel = {.size = sizeof panel,
                               .kind = LOCUS_PANEL_LINES,
                               .series = series,
                               .series_count = 2,
                               .mark = 1,
                               .mark_name = "trained"};
    const locus_figure figure = {.size = sizeof figure, .panels = &panel, .panel_count = 1};
    const struct {
        locus_format format;
        const char *has[4], *lacks;
    } cases[] = {
        {LOCUS_FORMAT_SVG, {"fill-opacity", ">own<", ">trained<", ">8<"}, ">other<"},
        {LOCUS_FORMAT_CSV,
         {"\"own\",,0,1\n", "\"own low\",,0,0.5\n", "\"own high\",,1,9\n"},
         "other"},
        {LOCUS_FORMAT_JSON, {"\"low\": [0.5, 1.5, 2]", "\"high\": [1.5, 9, 4]"}, "other"},
        {LOCUS_FORMAT_TERMINAL, {"own"}, "other"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        locus_text out = {0};
        if (!check_begin("plot/bands/%zu", i)) continue;
        CHECK(locus_figure_render(&figure, cases[i].format, NULL, &out, NULL) == LOCUS_OK,
              "refused");
        for (size_t k = 0; k < 4 && cases[i].has[k] != NULL; k++)
            CHECK(strstr(out.data, cases[i].has[k]) != NULL, "no %s", cases[i].has[k]);
        CHECK(strstr(out.data, cases[i].lacks) == NULL, "%s is there", cases[i].lacks);
        locus_text_free(&out);
    }
}

/* Rows of categories are never thinned: at any width each has its name. */
static void test_row_names(void)
{
    enum { ROWS = 17, COLUMNS = 60 };
    static char names[ROWS][16];
    const char *list[ROWS + 1] = {NULL};
    double values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++) values[i] = i % 7;
    for (int i = 0; i < ROWS; i++) {
        snprintf(names[i], sizeof names[i], "scheme-%c", 'a' + i);
        list[i] = names[i];
    }
    const locus_panel panel = {.size = sizeof panel,
                               .kind = LOCUS_PANEL_HEATMAP,
                               .values = values,
                               .rows = ROWS,
                               .columns = COLUMNS,
                               .y = {.names = list}};
    const locus_figure figure = {.size = sizeof figure, .panels = &panel, .panel_count = 1};
    for (uint32_t width = 240; width <= 1200; width += 240) {
        locus_text out = {0};
        const locus_render render = {.size = sizeof render, .width = width};
        if (!check_begin("plot/row-names/%u", (unsigned)width)) continue;
        CHECK(locus_figure_render(&figure, LOCUS_FORMAT_SVG, &render, &out, NULL) == LOCUS_OK,
              "refused");
        for (int i = 0; i < ROWS; i++) {
            char text[24];
            snprintf(text, sizeof text, ">%.15s<", names[i]);
            CHECK(out.data != NULL && strstr(out.data, text) != NULL, "no name of row %d", i);
        }
        locus_text_free(&out);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_ticks();
    test_numbers();
    test_colours();
    test_layout();
    test_cells();
    test_readable_axes();
    test_svg();
    test_other_formats();
    test_refusals();
    test_memory();
    test_bands();
    test_row_names();
    return check_finish("plot");
}
