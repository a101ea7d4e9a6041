/* SPDX-License-Identifier: Apache-2.0 */
/* Limits: the last value that is taken and the first that is refused, of extents, options,
 * figures and pictures. */

#include <inttypes.h>
#include <locus/locus.h>
#include <locus/picture.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bounds/constants.h"
#include "support/check.h"

/* ---- extents of a call ---- */

/* B, H, Tq, Tk, D, Dv; a plan reads no data. */
static locus_status plan_of(const int64_t extent[6], const locus_config *config, locus_error *error)
{
    locus_tensors shapes = {.size = sizeof shapes};
    const int64_t q[] = {extent[0], extent[1], extent[2], extent[4]};
    const int64_t k[] = {extent[0], extent[1], extent[3], extent[4]};
    const int64_t v[] = {extent[0], extent[1], extent[3], extent[5]};
    shapes.q = locus_view(NULL, LOCUS_F32, 4, q);
    shapes.k = locus_view(NULL, LOCUS_F32, 4, k);
    shapes.v = locus_view(NULL, LOCUS_F32, 4, v);
    locus_plan *plan = NULL;
    const locus_status status = locus_plan_new(&plan, config, &shapes, error);
    if (status == LOCUS_OK)
        CHECK(locus_forward_workspace(plan) > 0 && locus_backward_workspace(plan) > 0,
              "no workspace");
    locus_plan_free(plan);
    return status;
}

static void test_extents(void)
{
    static const struct {
        const char *constant;
        size_t axis;
        const char *tensor;
    } limits[] = {
        {"schemes/MAX_OTHER", 0, "q"},       {"schemes/MAX_OTHER", 1, "q"},
        {"schemes/MAX_ROWS", 2, "q"},        {"schemes/MAX_ROWS", 3, "k"},
        {"schemes/LOCUS_MAX_WIDTH", 4, "q"}, {"schemes/LOCUS_MAX_WIDTH", 5, "v"},
    };
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        if (!check_begin("bounds/limits/%s/%zu", limits[i].constant, limits[i].axis)) continue;
        for (int64_t over = -1; over <= 1; over++) {
            int64_t extent[] = {1, 1, 2, 2, 2, 2};
            locus_config config;
            locus_error error = {{0}};
            CHECK(locus_config_init(&config, "none") == LOCUS_OK, "none");
            config.threads = 1;
            extent[limits[i].axis] = constant_value(limits[i].constant) + over;
            const locus_status status = plan_of(extent, &config, &error);
            CHECK((status == LOCUS_OK) == (over <= 0), "%" PRId64 ": %s", extent[limits[i].axis],
                  error.text);
            CHECK(over <= 0 || strstr(error.text, limits[i].tensor) != NULL, "%s", error.text);
        }
    }
}

static void test_config(void)
{
    const int64_t extent[] = {1, 1, 2, 2, 2, 2}, most = constant_value("schemes/max_offset");
    const int64_t threads = constant_value("schemes/MAX_THREADS");
    if (!check_begin("bounds/limits/config")) return;
    for (int64_t over = -1; over <= 1; over++) {
        for (int64_t sign = -1; sign <= 1; sign += 2) {
            locus_config config;
            CHECK(locus_config_init(&config, "none") == LOCUS_OK, "none");
            config.threads = 1;
            config.query_offset = sign * (most + over);
            CHECK((plan_of(extent, &config, NULL) == LOCUS_OK) == (over <= 0),
                  "query_offset %" PRId64, config.query_offset);
        }
        locus_config config;
        CHECK(locus_config_init(&config, "none") == LOCUS_OK, "none");
        config.threads = (uint32_t)(threads + over);
        CHECK((plan_of(extent, &config, NULL) == LOCUS_OK) == (over <= 0), "%u threads",
              (unsigned)config.threads);
    }
}

/* ---- options ---- */

static int takes(const locus_scheme_info *scheme, const locus_option_info *o, double value)
{
    char text[64];
    locus_options options;
    const uint32_t level = (o->levels & LOCUS_ATTEND) != 0 ? LOCUS_ATTEND : LOCUS_LAYER;
    CHECK(locus_options_init(&options, scheme->name) == LOCUS_OK, "%s", scheme->name);
    snprintf(text, sizeof text, o->kind == LOCUS_OPTION_REAL ? "%.17g" : "%.0f", value);
    return locus_options_set(&options, scheme->name, level, o->name, text, NULL) == LOCUS_OK;
}

static void test_options(void)
{
    for (size_t s = 0; s < locus_scheme_count(); s++) {
        const locus_scheme_info *scheme = locus_scheme_at(s);
        const locus_option_info *o;
        for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
            if (o->kind == LOCUS_OPTION_CHOICE) continue;
            if (!check_begin("bounds/limits/option/%s/%s", scheme->name, o->name)) continue;
            const int real = o->kind == LOCUS_OPTION_REAL;
            const double under = real ? nextafter(o->minimum, -INFINITY) : o->minimum - 1;
            const double over = real ? nextafter(o->maximum, INFINITY) : o->maximum + 1;
            CHECK(takes(scheme, o, o->minimum) && takes(scheme, o, o->maximum),
                  "an end of its range is refused");
            CHECK(!takes(scheme, o, over), "%.17g is taken", over);
            CHECK(!takes(scheme, o, under), "%.17g is taken", under);
        }
    }
}

/* ---- figures ---- */

static locus_status draw(const locus_panel *panels, size_t count)
{
    const locus_figure figure = {.size = sizeof figure,
                                 .title = "t",
                                 .description = "d",
                                 .panels = panels,
                                 .panel_count = count};
    locus_text text = {0};
    locus_error error = {{0}};
    const locus_status status = locus_figure_render(&figure, LOCUS_FORMAT_CSV, NULL, &text, &error);
    CHECK(status == LOCUS_OK ? text.length > 0 : error.text[0] != '\0', "no text");
    locus_text_free(&text);
    return status;
}

/* render.c has its own MOST_CELLS, 2^20; that of heatmap.c is about numbers in cells. */
static void test_figures(void)
{
    const size_t most_panels = 256, most_cells = (size_t)1 << 20;
    const size_t most_series = (size_t)constant_value("plot/PLOT_MOST_SERIES");
    const size_t most_points = (size_t)constant_value("plot/MOST_POINTS");
    double *numbers = calloc(most_points + 1, sizeof *numbers);
    if (numbers == NULL) exit(2);
    if (check_begin("bounds/limits/plot/PLOT_MOST_PANELS")) {
        locus_panel panels[257];
        CHECK((int64_t)most_panels == constant_value("plot/PLOT_MOST_PANELS"), "room of this test");
        for (size_t i = 0; i < 257; i++)
            panels[i] =
                (locus_panel){.size = sizeof *panels, .values = numbers, .rows = 1, .columns = 2};
        CHECK(draw(panels, 256) == LOCUS_OK && draw(panels, 255) == LOCUS_OK, "256 panels");
        CHECK(draw(panels, 257) != LOCUS_OK && draw(panels, 0) != LOCUS_OK, "257 panels");
    }
    if (check_begin("bounds/limits/plot/MOST_CELLS")) {
        const locus_panel fits = {
            .size = sizeof fits, .values = numbers, .rows = 1024, .columns = most_cells / 1024};
        const locus_panel wide = {
            .size = sizeof wide, .values = numbers, .rows = 1, .columns = most_cells + 1};
        const locus_panel tall = {
            .size = sizeof tall, .values = numbers, .rows = most_cells + 1, .columns = 1};
        CHECK(draw(&fits, 1) == LOCUS_OK, "2^20 cells");
        CHECK(draw(&wide, 1) != LOCUS_OK && draw(&tall, 1) != LOCUS_OK, "2^20 + 1 cells");
    }
    if (check_begin("bounds/limits/plot/PLOT_MOST_SERIES")) {
        locus_series *series = calloc(most_series + 1, sizeof *series);
        for (size_t i = 0; i <= most_series; i++)
            series[i] =
                (locus_series){.size = sizeof *series, .name = "s", .y = numbers, .count = 2};
        locus_panel panel = {.size = sizeof panel,
                             .kind = LOCUS_PANEL_LINES,
                             .series = series,
                             .series_count = most_series};
        CHECK(draw(&panel, 1) == LOCUS_OK, "%zu series", most_series);
        panel.series_count++;
        CHECK(draw(&panel, 1) != LOCUS_OK, "%zu series", panel.series_count);
        free(series);
    }
    if (check_begin("bounds/limits/plot/MOST_POINTS")) {
        locus_series series = {
            .size = sizeof series, .name = "s", .y = numbers, .count = most_points};
        const locus_panel panel = {
            .size = sizeof panel, .kind = LOCUS_PANEL_LINES, .series = &series, .series_count = 1};
        CHECK(draw(&panel, 1) == LOCUS_OK, "%zu points", most_points);
        series.count++;
        CHECK(draw(&panel, 1) != LOCUS_OK, "%zu points", series.count);
    }
    free(numbers);
}

/* ---- pictures ---- */

static void picture(const char *what, locus_picture_request request, int fits)
{
    locus_picture *made = NULL;
    locus_error error = {{0}};
    const locus_status status = locus_picture_new(&made, &request, &error);
    CHECK((status == LOCUS_OK) == fits, "%s: %s", what, error.text);
    CHECK(fits || strstr(error.text, what) != NULL, "\"%s\" does not name %s", error.text, what);
    locus_picture_free(made);
}

static void test_pictures(void)
{
    if (!check_begin("bounds/limits/pictures")) return;
    const char *names[LOCUS_PICTURE_TOKENS + 1];
    for (size_t i = 0; i <= LOCUS_PICTURE_TOKENS; i++) names[i] = "token";
    for (int over = 0; over <= 1; over++) {
        locus_picture_request request;
        locus_picture_request_init(&request, "t5");
        request.what = "rows";
        locus_picture_request length = request, heads = request, dim = request, tokens = request,
                              window = request;
        length.length = LOCUS_PICTURE_LENGTH + over;
        heads.heads = LOCUS_PICTURE_HEADS + over;
        dim.dim = LOCUS_PICTURE_DIM + 2 * over;
        tokens.tokens = names;
        tokens.token_count = (size_t)(LOCUS_PICTURE_TOKENS + over);
        window.window = LOCUS_PICTURE_LENGTH + over;
        picture("length", length, !over);
        picture("heads", heads, !over);
        picture("dim", dim, !over);
        picture("tokens", tokens, !over);
        picture("window", window, !over);
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    test_extents();
    test_config();
    test_options();
    test_figures();
    test_pictures();
    return check_finish("bounds/limits");
}
