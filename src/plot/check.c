/* SPDX-License-Identifier: Apache-2.0 */
/* Can a figure be drawn at all? */
#include "core/error.h"
#include "plot/render.h"

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
