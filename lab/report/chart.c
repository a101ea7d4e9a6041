/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/report/chart.h"
#include "core/print.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 512 };

void chart_begin(lab_chart *c, const char *title, const char *description)
{
    *c = (lab_chart){.figure = {.size = sizeof c->figure,
                                .title = title,
                                .description = description,
                                .panels = c->panels}};
}

void chart_free(lab_chart *c) { locus_arena_clear(&c->arena); }

static void *take(lab_chart *c, size_t count, size_t bytes)
{
    void *memory = locus_arena_take(&c->arena, count * bytes, 16);
    c->failed |= memory == NULL;
    return memory;
}

double *chart_numbers(lab_chart *c, size_t count)
{
    double *numbers = take(c, count + 1, sizeof *numbers);
    for (size_t i = 0; numbers != NULL && i < count; i++) numbers[i] = NAN;
    return numbers;
}

const char *chart_text(lab_chart *c, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    locus_vprint(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *copy = locus_arena_copy(&c->arena, text, strlen(text));
    c->failed |= copy == NULL;
    return copy != NULL ? copy : "";
}

const char **chart_names(lab_chart *c, size_t count) { return take(c, count + 1, sizeof(char *)); }

locus_panel *chart_panel(lab_chart *c, locus_panel_kind kind, const char *title)
{
    if (c->failed || c->figure.panel_count == CHART_PANELS) return NULL;
    locus_panel *panel = &c->panels[c->figure.panel_count];
    *panel = (locus_panel){.size = sizeof *panel,
                           .kind = kind,
                           .title = title,
                           .series = c->series[c->figure.panel_count]};
    c->figure.panel_count++;
    return panel;
}

void chart_curve(lab_chart *c, const char *name, const double *x, const double *y,
                 const double *low, const double *high, size_t count, int behind)
{
    if (c->failed || c->figure.panel_count == 0) return;
    locus_panel *panel = &c->panels[c->figure.panel_count - 1];
    if (panel->series_count == CHART_SERIES) return;
    c->series[c->figure.panel_count - 1][panel->series_count++] =
        (locus_series){.size = sizeof(locus_series),
                       .name = name,
                       .x = x,
                       .y = y,
                       .low = low,
                       .high = high,
                       .count = count,
                       .behind = behind ? 1u : 0u};
}

/* ---- schemes side by side ---- */

size_t chart_family(const char *scheme)
{
    static const char *const bias[] = {"t5", "alibi", "kerple", "fire", "distance", NULL};
    static const char *const vectors[] = {"shaw",           "relative_key", "relative_key_query",
                                          "transformer_xl", "deberta",      NULL};
    static const char *const rotation[] = {"rope", "xpos", NULL};
    const char *const *const lists[] = {bias, vectors, rotation};
    const size_t length = strcspn(scheme, "+");
    for (size_t f = 0; f < CHART_FAMILIES - 1; f++)
        for (const char *const *name = lists[f]; *name != NULL; name++)
            if (strlen(*name) == length && strncmp(*name, scheme, length) == 0) return f + 1;
    return 0;
}

const char *chart_family_title(size_t family)
{
    static const char *const titles[CHART_FAMILIES] = {"none, and absolute positions",
                                                       "a bias by distance", "vectors by distance",
                                                       "rotation"};
    return titles[family];
}

static void add_lines(lab_chart *c, const lab_results *r, const chart_line *lines, size_t count,
                      size_t family, int behind)
{
    for (size_t i = 0; i < count; i++) {
        const char *name = r->schemes[lines[i].scheme];
        if ((chart_family(name) == family) == behind) continue;
        chart_curve(c, name, lines[i].x, lines[i].y, behind ? NULL : lines[i].low,
                    behind ? NULL : lines[i].high, lines[i].count, behind);
    }
}

void chart_families(lab_chart *c, const lab_results *r, const chart_line *lines, size_t count,
                    const locus_panel *like)
{
    for (size_t f = 0; f < CHART_FAMILIES; f++) {
        size_t own = 0;
        for (size_t i = 0; i < count; i++) own += chart_family(r->schemes[lines[i].scheme]) == f;
        locus_panel *panel =
            own > 0 ? chart_panel(c, LOCUS_PANEL_LINES, chart_family_title(f)) : NULL;
        if (panel == NULL) continue;
        panel->x = like->x;
        panel->y = like->y;
        panel->aspect = like->aspect > 0 ? like->aspect : 0.55;
        panel->mark = like->mark;
        panel->mark_name = like->mark_name;
        add_lines(c, r, lines, count, f, 0);
        add_lines(c, r, lines, count, f, 1);
    }
    c->figure.columns = 2;
}

void chart_heat(lab_chart *c, const lab_results *r, const char *title, const char *const *columns,
                size_t column_count,
                double (*value)(const void *context, int32_t scheme, size_t column),
                const void *context)
{
    double *values = chart_numbers(c, r->scheme_count * column_count);
    const char **names = chart_names(c, r->scheme_count);
    size_t rows = 0;
    if (c->failed) return;
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++) {
        size_t there = 0;
        for (size_t k = 0; k < column_count; k++) {
            const double v = value(context, s, k);
            values[rows * column_count + k] = v;
            there += isnan(v) ? 0 : 1;
        }
        if (there > 0) names[rows++] = r->schemes[s];
    }
    locus_panel *panel = rows > 0 ? chart_panel(c, LOCUS_PANEL_HEATMAP, title) : NULL;
    if (panel == NULL) return;
    panel->values = values;
    panel->rows = rows;
    panel->columns = column_count;
    panel->y.names = names;
    panel->x.names = columns;
    panel->aspect = 0.075 * (double)rows > 1.1 ? 1.1 : 0.075 * (double)rows;
}
