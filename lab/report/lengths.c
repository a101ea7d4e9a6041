/* SPDX-License-Identifier: Apache-2.0 */
/* Beyond the trained length: curves, heat maps, controls, the look-back probe. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/report/sheet.h"

enum { LENGTHS = 32, LINES = 64 };

/* A scheme's curve over lengths: mean, least and most over seeds. */
static int take_line(lab_chart *c, const lab_results *r, int32_t task, int32_t scheme,
                     const char *metric, const int64_t *lengths, size_t count, chart_line *out)
{
    const double unit = (double)(lab_length(r, task) > 0 ? lab_length(r, task) : 1);
    double *x = chart_numbers(c, count), *y = chart_numbers(c, count);
    double *low = chart_numbers(c, count), *high = chart_numbers(c, count);
    size_t rows, there = 0;
    const lab_value *v = lab_range(r, task, scheme, metric, &rows);
    if (c->failed) return 0;
    for (size_t k = 0; k < count; k++) {
        x[k] = (double)lengths[k] / unit;
        for (size_t i = 0; i < rows; i++) {
            if (v[i].length != lengths[k] || isnan(v[i].value)) continue;
            if (v[i].seed == LAB_MEAN) {
                y[k] = v[i].value;
                there++;
                continue;
            }
            low[k] = isnan(low[k]) ? v[i].value : fmin(low[k], v[i].value);
            high[k] = isnan(high[k]) ? v[i].value : fmax(high[k], v[i].value);
        }
    }
    *out = (chart_line){.scheme = scheme, .count = count, .x = x, .y = y, .low = low, .high = high};
    return there > 0;
}

static size_t take_lines(lab_chart *c, const lab_results *r, int32_t task, const char *metric,
                         chart_line *lines)
{
    int64_t lengths[LENGTHS];
    const size_t count = lab_lengths(r, task, metric, lengths, LENGTHS);
    size_t used = 0;
    for (int32_t s = 0; s < (int32_t)r->scheme_count && used < LINES; s++)
        used += (size_t)take_line(c, r, task, s, metric, lengths, count, &lines[used]);
    return used;
}

static void draw_curves(lab_sheet *sheet, int32_t task, const lab_subject *subject,
                        const char *metric, const char *words)
{
    const lab_results *r = sheet->results;
    char name[LAB_NAME], title[256], caption[512];
    chart_line lines[LINES];
    lab_chart chart;
    snprintf(title, sizeof title, "%s: %s beyond the trained length", subject->title, words);
    chart_begin(&chart, title,
                "Lines over the length as a multiple of the trained one, a panel per family of "
                "schemes; the other schemes in grey.");
    const size_t count = take_lines(&chart, r, task, metric, lines);
    const locus_panel like = {.x = {.label = "length / L"},
                              .y = {.label = words, .low = -0.03, .high = 1.03},
                              .mark = 1,
                              .mark_name = "L"};
    chart_families(&chart, r, lines, count, &like);
    snprintf(name, sizeof name, "%s-%s", metric, subject->name);
    snprintf(caption, sizeof caption,
             "Mean over seeds; the band reaches from the worst seed to the best. A line that ends "
             "is undefined further on: its table has no rows there.");
    sheet_chart(sheet, name, &chart, caption);
}

/* ---- heat maps over lengths ---- */

typedef struct heat {
    const lab_results *results;
    int32_t task;
    const char *metric;
    int64_t lengths[LENGTHS];
} heat;

static double heat_value(const void *context, int32_t scheme, size_t column)
{
    const heat *h = context;
    return lab_mean(h->results, h->task, scheme, h->metric, h->lengths[column]);
}

static void add_heat(lab_chart *c, const lab_results *r, int32_t task, const char *metric,
                     const char *title, const char *value_name)
{
    heat h = {.results = r, .task = task, .metric = metric};
    const size_t count = lab_lengths(r, task, metric, h.lengths, LENGTHS);
    const char **names = chart_names(c, count);
    for (size_t i = 0; names != NULL && i < count; i++)
        names[i] = chart_text(c, "%lld", (long long)h.lengths[i]);
    const size_t before = c->figure.panel_count;
    if (count > 0) chart_heat(c, r, title, names, count, heat_value, &h);
    if (c->figure.panel_count == before) return;
    locus_panel *panel = &c->panels[before];
    panel->x.label = "length";
    panel->low = 0;
    panel->high = 1;
    panel->colours = LOCUS_COLOURS_SEQUENTIAL;
    panel->value_name = value_name;
}

static void draw_heat(lab_sheet *sheet, int32_t task, const lab_subject *subject)
{
    const lab_results *r = sheet->results;
    char name[LAB_NAME], title[128], caption[256];
    lab_chart chart;
    snprintf(title, sizeof title, "%s: scheme by length", subject->title);
    chart_begin(&chart, title,
                "Rows are schemes, columns lengths, colours exact match from 0 to 1.");
    add_heat(&chart, r, task, "em", "", "exact match");
    snprintf(name, sizeof name, "heat-%s", subject->name);
    snprintf(caption, sizeof caption,
             "The same numbers, trained up to L&nbsp;=&nbsp;%lld. Empty cells are undefined.",
             (long long)lab_length(r, task));
    sheet_chart(sheet, name, &chart, caption);
}

static void print_unranked(lab_sheet *sheet, int32_t task)
{
    const lab_results *r = sheet->results;
    size_t count = 0, ranked = 0;
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++)
        ranked += lab_is_ranked(r, task, s) ? 1 : 0;
    if (ranked == 0) {
        sheet_print(sheet,
                    "<p>Nobody reaches 95&nbsp;%% exact match inside L within this budget, so "
                    "nobody is ranked: what happens beyond L says how fast a scheme learns, "
                    "not how far it reaches.</p>\n");
        return;
    }
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++) {
        const double inside = lab_mean(r, task, s, "em", lab_length(r, task));
        if (isnan(inside) || lab_is_ranked(r, task, s)) continue;
        if (count++ == 0)
            sheet_print(sheet, "<p>Not ranked, because exact match inside L is below 95&nbsp;%% "
                               "in a seed or more (the mean is given):");
        sheet_print(sheet, "%s %s (%.2f)", count == 1 ? "" : ",", r->schemes[s], inside);
    }
    if (count > 0)
        sheet_print(sheet, ". For these, what happens beyond L says how fast they learn, not how "
                           "far they reach.</p>\n");
}

void sheet_lengths(lab_sheet *sheet)
{
    for (size_t i = 0; lab_subject_at(i) != NULL; i++) {
        const lab_subject *subject = lab_subject_at(i);
        const int32_t task = lab_task_index(sheet->results, subject->name);
        int64_t lengths[LENGTHS];
        if (!subject->exact || task < 0 ||
            lab_lengths(sheet->results, task, "em", lengths, LENGTHS) == 0)
            continue;
        sheet_section(sheet, subject->name, subject->title);
        sheet_print(sheet, "<p>%s</p>\n", subject->about);
        print_unranked(sheet, task);
        draw_curves(sheet, task, subject, "em", "exact match");
        draw_heat(sheet, task, subject);
        sheet_details(sheet, "Token by token");
        draw_curves(sheet, task, subject, "token_accuracy", "token accuracy");
        sheet_details_end(sheet);
        sheet_section_end(sheet);
    }
}

void sheet_controls(lab_sheet *sheet)
{
    static const char *const names[] = {"parity", "mod5"};
    const lab_results *r = sheet->results;
    lab_chart chart;
    chart_begin(&chart, "Controls: nothing should be learned beyond L",
                "Rows are schemes, columns lengths, colours accuracy from 0 to 1.");
    for (size_t i = 0; i < 2; i++) {
        const int32_t task = lab_task_index(r, names[i]);
        if (task >= 0)
            add_heat(&chart, r, task, "accuracy",
                     i == 0 ? "parity (chance 0.5)" : "sum modulo 5 (chance 0.2)", "accuracy");
    }
    if (chart.figure.panel_count == 0) {
        chart_free(&chart);
        return;
    }
    sheet_section(sheet, lab_task_index(r, "parity") >= 0 ? "parity" : "mod5",
                  "Controls: parity and counting");
    sheet_print(sheet, "<p>No scheme is known to learn these beyond the trained length. A success "
                       "would mean that something leaks.</p>\n");
    sheet_chart(sheet, "controls", &chart, "Accuracy by length; the first column is inside L.");
    sheet_section_end(sheet);
}

/* ---- look-back ---- */

typedef struct offsets {
    const lab_results *results;
    int32_t task;
    int64_t length;
    int offset[LENGTHS];
} offsets;

static double offset_value(const void *context, int32_t scheme, size_t column)
{
    const offsets *o = context;
    char metric[LAB_NAME];
    snprintf(metric, sizeof metric, "accuracy_k%d", o->offset[column]);
    return lab_mean(o->results, o->task, scheme, metric, o->length);
}

void sheet_lookback(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    int64_t lengths[LENGTHS];
    offsets o = {.results = r, .task = lab_task_index(r, "lookback")};
    lab_chart chart;
    size_t columns = 0;
    chart_begin(&chart, "Looking back k steps with one layer",
                "Rows are schemes, columns offsets, colours accuracy from 0 to 1.");
    const char **names = chart_names(&chart, LENGTHS);
    const size_t count = o.task >= 0 ? lab_lengths(r, o.task, "accuracy_k1", lengths, LENGTHS) : 0;
    for (int k = 1; count > 0 && names != NULL && k <= 1024 && columns < LENGTHS; k *= 2) {
        char metric[LAB_NAME];
        snprintf(metric, sizeof metric, "accuracy_k%d", k);
        if (lab_metric_index(r, metric) < 0) continue;
        names[columns] = chart_text(&chart, "%d", k);
        o.offset[columns++] = k;
    }
    for (size_t i = 0; i < count && i < 4; i++) {
        o.length = lengths[i];
        const size_t before = chart.figure.panel_count;
        chart_heat(&chart, r, chart_text(&chart, "rows of %lld", (long long)lengths[i]), names,
                   columns, offset_value, &o);
        if (chart.figure.panel_count == before) continue;
        locus_panel *panel = &chart.panels[before];
        panel->x.label = "k";
        panel->high = 1;
        panel->colours = LOCUS_COLOURS_SEQUENTIAL;
        panel->value_name = "accuracy";
    }
    if (chart.figure.panel_count == 0) {
        chart_free(&chart);
        return;
    }
    sheet_section(sheet, "lookback", "Look back");
    sheet_print(sheet, "<p>One layer is asked for the symbol k steps back. Schemes that know "
                       "distances exactly find it at any offset; a bias that only falls with the "
                       "distance cannot point at one place.</p>\n");
    sheet_chart(sheet, "lookback", &chart,
                "Accuracy by offset, at the trained length and beyond it. Chance is 1/32.");
    sheet_section_end(sheet);
}
