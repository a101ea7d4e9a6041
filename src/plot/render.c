/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/render.h"

#include <string.h>

#include "core/adopt.h"
#include "core/error.h"

enum { MOST_CELLS = 1 << 20, MOST_POINTS = 1 << 20 };

static locus_status check_heatmap(const locus_panel *panel, size_t i, locus_error *error)
{
    if (panel->values == NULL || panel->rows == 0 || panel->columns == 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "panel %zu: found no values, expected some",
                          i);
    if (panel->rows > MOST_CELLS / panel->columns)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "panel %zu: found %zu x %zu values, expected at most %d", i, panel->rows,
                          panel->columns, MOST_CELLS);
    return LOCUS_OK;
}

static locus_status check_series(const locus_panel *panel, size_t i, locus_error *error)
{
    size_t points = 0;
    if (panel->series == NULL || panel->series_count == 0 || panel->series_count > PLOT_MOST_SERIES)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "panel %zu: found %zu series, expected 1..%d",
                          i, panel->series_count, PLOT_MOST_SERIES);
    for (size_t s = 0; s < panel->series_count; s++) {
        const locus_series *series = &panel->series[s];
        if (series->count > MOST_POINTS || (series->count > 0 && series->y == NULL))
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "panel %zu: found %zu points in series %zu, expected at most %d", i,
                              series->count, s, MOST_POINTS);
        points += series->count;
    }
    if (points == 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "panel %zu: found no points, expected some",
                          i);
    return LOCUS_OK;
}

locus_status plot_check(const locus_figure *figure, locus_error *error)
{
    if (figure == NULL || figure->panels == NULL || figure->panel_count == 0 ||
        figure->panel_count > PLOT_MOST_PANELS)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "figure: expected 1..%d panels",
                          PLOT_MOST_PANELS);
    for (size_t i = 0; i < figure->panel_count; i++) {
        const locus_panel *panel = &figure->panels[i];
        if (panel->kind > LOCUS_PANEL_STACK)
            return locus_fail(error, LOCUS_ERR_ARGUMENT, "panel %zu: found an unknown kind", i);
        LOCUS_TRY(panel->kind == LOCUS_PANEL_HEATMAP ? check_heatmap(panel, i, error)
                                                     : check_series(panel, i, error));
    }
    return LOCUS_OK;
}

static locus_status write_format(plot_text *text, const locus_figure *figure, locus_format format,
                                 const locus_render *render, locus_error *error)
{
    switch (format) {
    case LOCUS_FORMAT_SVG: return plot_svg(text, figure, render, error);
    case LOCUS_FORMAT_TERMINAL: plot_terminal(text, figure, render); return LOCUS_OK;
    case LOCUS_FORMAT_CSV: plot_csv(text, figure); return LOCUS_OK;
    case LOCUS_FORMAT_JSON: plot_json(text, figure); return LOCUS_OK;
    }
    return locus_fail(error, LOCUS_ERR_ARGUMENT, "format: found %d, expected a LOCUS_FORMAT_",
                      (int)format);
}

/* The figure is of this version. */
static locus_status render_figure(const locus_figure *figure, locus_format format,
                                  const locus_render *render, locus_text *out, locus_error *error)
{
    LOCUS_TRY(plot_check(figure, error));
    plot_text text = {.to = out};
    const size_t before = out->length;
    locus_status status = write_format(&text, figure, format, render, error);
    if (status == LOCUS_OK && text.failed)
        status = locus_fail(error, LOCUS_ERR_MEMORY, "render: out of memory");
    if (status == LOCUS_OK || out->data == NULL) return status;
    out->length = before;
    out->data[before] = '\0';
    return status;
}

locus_status locus_figure_render(const locus_figure *figure, locus_format format,
                                 const locus_render *render, locus_text *out, locus_error *error)
{
    locus_render own = {.size = sizeof own};
    plot_adopted adopted;
    if (out == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "render: out is NULL");
    if (render == NULL) render = &own;
    LOCUS_ADOPT(render, own, "render", error);
    LOCUS_TRY(plot_adopt(&figure, &adopted, out->allocator, error));
    const locus_status status = render_figure(figure, format, render, out, error);
    plot_adopted_free(&adopted);
    return status;
}
