/* SPDX-License-Identifier: Apache-2.0 */
/* Pictures around the constants that cut them: boxes that are handed on in batches, rows and
 * columns of letters, curves and heads that are shown. */

#include <locus/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds/constants.h"
#include "support/check.h"

/* ---- boxes ---- */

typedef struct tally {
    size_t boxes, largest; /* of cells: inks of the palettes */
} tally;

static void begin(void *context, const locus_figure *figure, double width, double height,
                  uint32_t pixels)
{
    (void)context, (void)figure, (void)width, (void)height, (void)pixels;
}
static void boxes(void *context, uint32_t ink, const locus_box *list, size_t count)
{
    tally *t = context;
    if (ink < LOCUS_INK_SEQUENTIAL) return;
    t->boxes += count;
    if (count > t->largest) t->largest = count;
    for (size_t i = 0; i < count; i++)
        CHECK(list[i].width > 0 && list[i].height > 0, "an empty box");
}
static void line(void *context, uint32_t ink, double width, int dash, const locus_point *points,
                 size_t count)
{
    (void)context, (void)ink, (void)width, (void)dash, (void)points, (void)count;
}
static void label(void *context, const locus_label *text) { (void)context, (void)text; }
static void end(void *context) { (void)context; }

/* A chequerboard: no two neighbours of a row have one ink, so every cell is a box. */
static tally draw_board(size_t rows, size_t columns)
{
    double *values = malloc(rows * columns * sizeof *values);
    for (size_t i = 0; i < rows * columns; i++) values[i] = (double)((i / columns + i) % 2);
    const locus_panel panel = {.size = sizeof panel,
                               .values = values,
                               .rows = rows,
                               .columns = columns,
                               .high = 1,
                               .colours = LOCUS_COLOURS_SEQUENTIAL,
                               .cells = LOCUS_CELLS_NEVER};
    const locus_figure figure = {
        .size = sizeof figure, .title = "t", .panels = &panel, .panel_count = 1};
    tally found = {0};
    const locus_canvas canvas = {.size = sizeof canvas,
                                 .context = &found,
                                 .begin = begin,
                                 .boxes = boxes,
                                 .line = line,
                                 .label = label,
                                 .end = end};
    locus_error error = {{0}};
    CHECK(locus_figure_draw(&figure, NULL, &canvas, NULL, &error) == LOCUS_OK, "%s", error.text);
    free(values);
    return found;
}

static void test_batches(void)
{
    const size_t batch = (size_t)constant_value("plot/BATCH");
    for (size_t times = 1; times <= 2; times++)
        for (size_t cells = 2 * (batch * times - 1); cells <= 2 * (batch * times + 1); cells += 2) {
            if (!check_begin("bounds/plot/BATCH/%zu", cells)) continue;
            const size_t bar = draw_board(1, 2).boxes - 2; /* boxes of the colour bar */
            const tally found = draw_board(2, cells / 2);
            CHECK(found.boxes == cells + bar, "%zu boxes, expected %zu", found.boxes, cells + bar);
            CHECK(found.largest <= batch, "%zu boxes at once", found.largest);
        }
}

/* ---- letters ---- */

static char *letters(const locus_panel *panel, uint32_t width, int plain)
{
    const locus_figure figure = {.size = sizeof figure, .panels = panel, .panel_count = 1};
    const locus_render render = {.size = sizeof render, .width = width, .plain = (uint32_t)plain};
    locus_text text = {0};
    locus_error error = {{0}};
    CHECK(locus_figure_render(&figure, LOCUS_FORMAT_TERMINAL, &render, &text, &error) == LOCUS_OK,
          "%s", error.text);
    char *copy = calloc(text.length + 1, 1);
    memcpy(copy, text.data, text.length);
    locus_text_free(&text);
    return copy;
}

/* Lines that begin with blanks and a number: rows of the picture. The numbers ascend by `step`. */
static size_t count_rows(const char *text, long step)
{
    size_t rows = 0;
    long next = 0;
    for (const char *at = text; at != NULL && *at != '\0'; at = strchr(at, '\n')) {
        if (*at == '\n') at++;
        char *rest;
        const long number = strtol(at, &rest, 10);
        if (rest == at || number != next || (*rest != ' ' && *rest != '\033')) continue;
        rows++;
        next += step;
    }
    return rows;
}

/* Rows of a heatmap in letters: all of them up to the constant, then every second, third, ... */
static void test_rows(const char *constant, int plain, int table)
{
    const size_t most = (size_t)constant_value(constant);
    for (size_t times = 1; times <= 2; times++)
        for (size_t rows = most * times - 1; rows <= most * times + 1; rows++) {
            if (!check_begin("bounds/%s/%zu", constant, rows)) continue;
            double *values = malloc(rows * 3 * sizeof *values);
            for (size_t i = 0; i < rows * 3; i++) values[i] = (double)(i % 7);
            const locus_panel panel = {.size = sizeof panel,
                                       .values = values,
                                       .rows = rows,
                                       .columns = 3,
                                       .cells = table ? LOCUS_CELLS_AUTO : LOCUS_CELLS_NEVER};
            char *text = letters(&panel, 80, plain);
            const size_t each = table && rows <= most ? 1 : (rows + most - 1) / most;
            const size_t step = plain ? each : 2 * each; /* half blocks: two rows per line */
            const size_t want = (rows + step - 1) / step;
            CHECK(count_rows(text, (long)step) == want, "%zu lines for %zu rows, expected %zu:\n%s",
                  count_rows(text, (long)step), rows, want, text);
            free(values);
            free(text);
        }
}

/* A rising line of as many points as columns: one mark in each column, none beyond. */
static void test_width(void)
{
    const size_t most = (size_t)constant_value("plot/WIDEST"), margin = 12;
    const size_t height = (size_t)constant_value("plot/HEIGHT");
    for (size_t width = most - 1; width <= most + 1; width++) {
        if (!check_begin("bounds/plot/WIDEST/%zu", width)) continue;
        double y[512];
        for (size_t i = 0; i < 512; i++) y[i] = (double)i;
        const size_t shown = width < most ? width : most;
        const locus_series series = {.size = sizeof series, .name = "line", .y = y, .count = shown};
        const locus_panel panel = {
            .size = sizeof panel, .kind = LOCUS_PANEL_LINES, .series = &series, .series_count = 1};
        char *text = letters(&panel, (uint32_t)(width + margin), 1);
        size_t marks = 0, lines = 0, longest = 0;
        for (const char *at = text; *at != '\0';) {
            const size_t length = strcspn(at, "\n");
            const char *bar = memchr(at, '|', length);
            if (bar != NULL) {
                lines++;
                for (const char *c = bar; c < at + length; c++) marks += *c == 'a';
                if (length > longest) longest = length;
            }
            at += length + (at[length] == '\n');
        }
        CHECK(lines == height, "%zu lines, expected %zu", lines, height);
        CHECK(marks == shown, "%zu marks, expected %zu\n%s", marks, shown, text);
        CHECK(longest == shown + margin, "%zu letters, expected %zu", longest, shown + margin);
        free(text);
    }
}

/* ---- pictures of schemes ---- */

/* Panels, or curves of all panels, of a picture. */
static size_t parts(const char *scheme, const char *what, int64_t heads, int64_t dim, int curves)
{
    locus_picture_request request;
    locus_picture *picture = NULL;
    locus_error error = {{0}};
    locus_picture_request_init(&request, scheme);
    request.what = what;
    request.heads = heads;
    request.dim = dim;
    request.length = 9;
    CHECK(locus_picture_new(&picture, &request, &error) == LOCUS_OK, "%s", error.text);
    const locus_figure *figure = picture != NULL ? locus_picture_figure(picture) : NULL;
    size_t count = 0;
    for (size_t i = 0; figure != NULL && i < figure->panel_count; i++)
        count += curves ? figure->panels[i].series_count : 1;
    locus_picture_free(picture);
    return count;
}

static void test_shown(void)
{
    const size_t heads = (size_t)constant_value("pictures/PICTURE_HEADS");
    const size_t curves = (size_t)constant_value("pictures/CURVES");
    for (size_t step = 0; step <= 2; step++) {
        if (check_begin("bounds/pictures/PICTURE_HEADS/%zu", heads + step - 1)) {
            const size_t want = step < 2 ? heads + step - 1 : heads;
            const int64_t n = (int64_t)(heads + step) - 1;
            CHECK(parts("alibi", "bias", n, 8, 1) == want, "%zu curves",
                  parts("alibi", "bias", n, 8, 1));
            CHECK(parts("alibi", "attention", n, 8, 0) == want, "%zu maps",
                  parts("alibi", "attention", n, 8, 0));
        }
        if (check_begin("bounds/pictures/CURVES/%zu", curves + step - 1)) {
            const size_t want = step < 2 ? curves + step - 1 : curves;
            const int64_t dim = 2 * ((int64_t)(curves + step) - 1);
            CHECK(parts("xpos", "angles", 1, dim, 1) == want, "%zu curves",
                  parts("xpos", "angles", 1, dim, 1));
        }
    }
}

/* The curve of head h is -slope(h) |m - n|, for every head that is shown. */
static void test_curves(void)
{
    enum { HEADS = 8 };
    locus_picture_request request;
    locus_picture *picture = NULL;
    locus_error error = {{0}};
    if (!check_begin("bounds/pictures/curves")) return;
    locus_picture_request_init(&request, "alibi");
    request.what = "bias";
    request.heads = HEADS;
    request.length = 40;
    CHECK(locus_picture_new(&picture, &request, &error) == LOCUS_OK, "%s", error.text);
    const locus_panel *panel = &locus_picture_figure(picture)->panels[0];
    CHECK(panel->series_count == HEADS, "%zu curves", panel->series_count);
    for (size_t h = 0; h < panel->series_count; h++) {
        const locus_series *curve = &panel->series[h];
        for (size_t i = 0; i < curve->count; i++)
            CHECK(fabs(curve->y[i] + exp2(-(double)(h + 1)) * fabs(curve->x[i])) < 1e-12,
                  "head %zu at %g: %g", h, curve->x[i], curve->y[i]);
    }
    locus_picture_free(picture);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_batches();
    test_rows("plot/TABLE_ROWS", 1, 1);
    test_rows("plot/ASCII_ROWS", 1, 0);
    test_rows("plot/BLOCK_ROWS", 0, 0);
    test_width();
    test_shown();
    test_curves();
    return check_finish("bounds/pictures");
}
