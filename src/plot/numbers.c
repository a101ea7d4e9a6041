/* SPDX-License-Identifier: Apache-2.0 */
/* The numbers of a figure as CSV and as JSON. */
#include <math.h>
#include <string.h>

#include "plot/layout.h"
#include "plot/render.h"

static double axis_number(const locus_axis *axis, size_t i)
{
    return axis->first + (double)i * (axis->step != 0 ? axis->step : 1.0);
}

static const char *kind_name(locus_panel_kind kind)
{
    static const char *const names[] = {"heatmap", "lines", "bars", "stack"};
    return names[kind];
}

/* ---- CSV (RFC 4180): panel,kind,series,y,x,value ---- */

static void csv_text(plot_text *text, const char *string)
{
    unsigned char bytes[4];
    size_t count;
    if (string == NULL) return;
    plot_char(text, '"');
    while ((count = plot_next(&string, bytes)) > 0) {
        if (bytes[0] == '"') plot_char(text, '"');
        plot_put(text, (const char *)bytes, count);
    }
    plot_char(text, '"');
}

static void csv_number(plot_text *text, double value)
{
    if (isfinite(value))
        plot_exact(text, value);
    else
        plot_puts(text, isnan(value) ? "" : value > 0 ? "inf" : "-inf");
}

static void csv_place(plot_text *text, const locus_axis *axis, size_t i)
{
    if (axis->names != NULL)
        csv_text(text, axis->names[i]);
    else
        csv_number(text, axis_number(axis, i));
}

static void csv_begin(plot_text *text, const locus_panel *panel, size_t number)
{
    plot_integer(text, (int64_t)number);
    plot_char(text, ',');
    csv_text(text, panel->title);
    plot_char(text, ',');
    plot_puts(text, kind_name(panel->kind));
    plot_char(text, ',');
}

static void csv_heatmap(plot_text *text, const locus_panel *panel, size_t number)
{
    for (size_t row = 0; row < panel->rows; row++) {
        for (size_t column = 0; column < panel->columns; column++) {
            csv_begin(text, panel, number);
            plot_char(text, ',');
            csv_place(text, &panel->y, row);
            plot_char(text, ',');
            csv_place(text, &panel->x, column);
            plot_char(text, ',');
            csv_number(text, panel->values[row * panel->columns + column]);
            plot_char(text, '\n');
        }
    }
}

/* `edge`: what stands behind the name, "" for the curve itself. */
static void csv_curve(plot_text *text, const locus_panel *panel, size_t number,
                      const locus_series *series, const double *y, const char *edge)
{
    char name[NAME_BYTES];
    plot_copy(name, sizeof name - 16, series->name, 0);
    memcpy(name + strlen(name), edge, strlen(edge) + 1);
    for (size_t i = 0; i < series->count; i++) {
        csv_begin(text, panel, number);
        csv_text(text, *edge != '\0' ? name : series->name);
        plot_puts(text, ",,");
        if (panel->x.names != NULL && panel->kind != LOCUS_PANEL_LINES)
            csv_text(text, panel->x.names[i]);
        else
            csv_number(text, plot_series_x(panel, series, i));
        plot_char(text, ',');
        csv_number(text, y[i]);
        plot_char(text, '\n');
    }
}

static void csv_series(plot_text *text, const locus_panel *panel, size_t number)
{
    for (size_t s = 0; s < panel->series_count; s++) {
        const locus_series *series = &panel->series[s];
        if (series->behind) continue; /* shown for comparison: its numbers are elsewhere */
        csv_curve(text, panel, number, series, series->y, "");
        if (series->low == NULL || series->high == NULL) continue;
        csv_curve(text, panel, number, series, series->low, " low");
        csv_curve(text, panel, number, series, series->high, " high");
    }
}

void plot_csv(plot_text *text, const locus_figure *figure)
{
    plot_puts(text, "panel,title,kind,series,y,x,value\n");
    for (size_t i = 0; i < figure->panel_count; i++) {
        const locus_panel *panel = &figure->panels[i];
        (panel->kind == LOCUS_PANEL_HEATMAP ? csv_heatmap : csv_series)(text, panel, i);
    }
}

/* ---- JSON ---- */

static void json_text(plot_text *text, const char *string)
{
    unsigned char bytes[4];
    size_t count;
    if (string == NULL) {
        plot_puts(text, "null");
        return;
    }
    plot_char(text, '"');
    while ((count = plot_next(&string, bytes)) > 0) {
        if (bytes[0] == '"' || bytes[0] == '\\') plot_char(text, '\\');
        plot_put(text, (const char *)bytes, count);
    }
    plot_char(text, '"');
}

static void json_member(plot_text *text, const char *key, const char *string)
{
    if (string == NULL) return;
    json_text(text, key);
    plot_puts(text, ": ");
    json_text(text, string);
    plot_puts(text, ", ");
}

/* JSON knows neither NaN nor infinities. */
static void json_number(plot_text *text, double value)
{
    if (isfinite(value))
        plot_exact(text, value);
    else
        plot_puts(text, isnan(value) ? "null" : value > 0 ? "\"inf\"" : "\"-inf\"");
}

static void json_numbers(plot_text *text, const double *values, size_t count)
{
    plot_char(text, '[');
    for (size_t i = 0; i < count; i++) {
        if (i > 0) plot_puts(text, ", ");
        json_number(text, values[i]);
    }
    plot_char(text, ']');
}

static void json_axis(plot_text *text, const char *key, const locus_axis *axis, size_t cells)
{
    json_text(text, key);
    plot_puts(text, ": {");
    json_member(text, "label", axis->label);
    json_member(text, "unit", axis->unit);
    plot_puts(text, axis->names != NULL ? "\"names\": [" : "\"numbers\": [");
    for (size_t i = 0; i < cells; i++) {
        if (i > 0) plot_puts(text, ", ");
        if (axis->names != NULL)
            json_text(text, axis->names[i]);
        else
            json_number(text, axis_number(axis, i));
    }
    plot_puts(text, "]},\n     ");
}

static void json_heatmap(plot_text *text, const locus_panel *panel)
{
    json_axis(text, "y", &panel->y, panel->rows);
    json_axis(text, "x", &panel->x, panel->columns);
    json_member(text, "value", panel->value_name);
    json_member(text, "unit", panel->value_unit);
    plot_puts(text, "\"values\": [");
    for (size_t row = 0; row < panel->rows; row++) {
        plot_puts(text, row > 0 ? ",\n      " : "\n      ");
        json_numbers(text, panel->values + row * panel->columns, panel->columns);
    }
    plot_puts(text, "]}");
}

static void json_series(plot_text *text, const locus_panel *panel)
{
    const int bars = panel->kind != LOCUS_PANEL_LINES;
    json_axis(text, "x", &panel->x, bars ? plot_categories(panel) : 0);
    json_member(text, "value", panel->y.label);
    json_member(text, "unit", panel->y.unit);
    plot_puts(text, "\"series\": [");
    for (size_t s = 0; s < panel->series_count; s++) {
        const locus_series *series = &panel->series[s];
        if (series->behind) break; /* such series come last */
        plot_puts(text, s > 0 ? ",\n      {" : "\n      {");
        json_member(text, "name", series->name);
        plot_puts(text, "\"x\": [");
        for (size_t i = 0; i < series->count; i++) {
            if (i > 0) plot_puts(text, ", ");
            json_number(text, plot_series_x(panel, series, i));
        }
        plot_puts(text, "], \"y\": ");
        json_numbers(text, series->y, series->count);
        if (series->low != NULL && series->high != NULL) {
            plot_puts(text, ", \"low\": ");
            json_numbers(text, series->low, series->count);
            plot_puts(text, ", \"high\": ");
            json_numbers(text, series->high, series->count);
        }
        plot_char(text, '}');
    }
    plot_puts(text, "]}");
}

void plot_json(plot_text *text, const locus_figure *figure)
{
    plot_puts(text, "{");
    json_member(text, "title", figure->title);
    json_member(text, "description", figure->description);
    json_member(text, "caption", figure->caption);
    plot_puts(text, "\n  \"panels\": [");
    for (size_t i = 0; i < figure->panel_count; i++) {
        const locus_panel *panel = &figure->panels[i];
        plot_puts(text, i > 0 ? ",\n    {" : "\n    {");
        json_member(text, "kind", kind_name(panel->kind));
        json_member(text, "title", panel->title);
        json_member(text, "note", panel->note);
        plot_puts(text, "\n     ");
        (panel->kind == LOCUS_PANEL_HEATMAP ? json_heatmap : json_series)(text, panel);
    }
    plot_puts(text, "]}\n");
}
