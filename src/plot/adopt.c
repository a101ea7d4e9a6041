/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of callers that were compiled against another version: arrays whose elements have
 * another size are copied, once, into elements of this one. */
#include "core/adopt.h"

#include "core/error.h"
#include "core/memory.h"
#include "plot/render.h"

static uint32_t size_at(const void *element) { return *(const uint32_t *)element; }

static int is_own(const locus_figure *figure)
{
    if (figure->size != sizeof *figure) return 0;
    for (size_t i = 0; figure->panels != NULL && i < figure->panel_count; i++) {
        const locus_panel *panel = &figure->panels[i];
        if (panel->size != sizeof *panel) return 0;
        for (size_t s = 0; panel->series != NULL && s < panel->series_count; s++)
            if (panel->series[s].size != sizeof *panel->series) return 0;
    }
    return 1;
}

static const void *element(const void *array, uint32_t size, size_t i)
{
    return (const char *)array + i * size;
}

static locus_status adopt_panels(plot_adopted *a, locus_error *error)
{
    const locus_figure *figure = &a->figure;
    const uint32_t size = size_at(figure->panels);
    a->panels = locus_allocate(a->allocator, figure->panel_count, sizeof *a->panels);
    if (a->panels == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "figure: out of memory");
    for (size_t i = 0; i < figure->panel_count; i++)
        LOCUS_TRY(locus_adopt(&a->panels[i], sizeof *a->panels, element(figure->panels, size, i),
                              "panel", error));
    return LOCUS_OK;
}

static locus_status adopt_series(plot_adopted *a, locus_error *error)
{
    size_t count = 0, used = 0;
    for (size_t i = 0; i < a->figure.panel_count; i++) {
        const locus_panel *panel = &a->panels[i];
        if (panel->series == NULL) a->panels[i].series_count = 0;
        if (panel->series_count > PLOT_MOST_SERIES)
            return locus_fail(error, LOCUS_ERR_ARGUMENT,
                              "panel %zu: found %zu series, expected 1..%d", i, panel->series_count,
                              PLOT_MOST_SERIES);
        count += panel->series_count;
    }
    a->series = locus_allocate(a->allocator, count, sizeof *a->series);
    if (a->series == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "figure: out of memory");
    for (size_t i = 0; i < a->figure.panel_count; i++) {
        locus_panel *panel = &a->panels[i];
        locus_series *first = a->series + used;
        for (size_t s = 0; s < panel->series_count; s++)
            LOCUS_TRY(locus_adopt(&a->series[used++], sizeof *a->series,
                                  element(panel->series, size_at(panel->series), s), "series",
                                  error));
        if (panel->series != NULL) panel->series = first;
    }
    return LOCUS_OK;
}

locus_status plot_adopt(const locus_figure **figure, plot_adopted *a,
                        const locus_allocator *allocator, locus_error *error)
{
    *a = (plot_adopted){.allocator = allocator};
    if (*figure == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "figure: expected one, found NULL");
    if ((*figure)->size == sizeof **figure && (*figure)->panel_count > PLOT_MOST_PANELS)
        return LOCUS_OK; /* plot_check refuses it */
    if (is_own(*figure)) return LOCUS_OK;
    LOCUS_TRY(locus_adopt(&a->figure, sizeof a->figure, *figure, "figure", error));
    *figure = &a->figure;
    if (a->figure.panels == NULL || a->figure.panel_count > PLOT_MOST_PANELS) return LOCUS_OK;
    locus_status status = adopt_panels(a, error);
    a->figure.panels = a->panels;
    if (status == LOCUS_OK) status = adopt_series(a, error);
    if (status != LOCUS_OK) plot_adopted_free(a);
    return status;
}

void plot_adopted_free(plot_adopted *a)
{
    locus_release(a->allocator, a->panels);
    locus_release(a->allocator, a->series);
    a->panels = NULL;
    a->series = NULL;
}
