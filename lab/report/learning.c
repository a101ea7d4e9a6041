/* SPDX-License-Identifier: Apache-2.0 */
/* Learning curves by step and by second, and how many steps a target took. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/report/sheet.h"

enum { LINES = 64 };

/* The mean over seeds of the training loss, point by point of the first seed. */
static int take_line(lab_chart *c, const lab_results *r, int32_t task, int32_t scheme, int seconds,
                     chart_line *out)
{
    double *x = chart_numbers(c, LAB_POINTS), *y = chart_numbers(c, LAB_POINTS);
    size_t count = 0, seeds = 0;
    if (c->failed) return 0;
    for (size_t i = 0; i < r->run_count; i++) {
        const lab_run *run = &r->runs[i];
        if (run->task != task || run->scheme != scheme || run->point_count == 0) continue;
        if (seeds == 0) {
            count = run->point_count < LAB_POINTS ? run->point_count : LAB_POINTS;
            for (size_t p = 0; p < count; p++) x[p] = y[p] = 0;
        }
        if (run->point_count < count) continue;
        seeds++;
        for (size_t p = 0; p < count; p++) {
            x[p] += seconds ? run->points[p].seconds : run->points[p].step;
            y[p] += run->points[p].loss;
        }
    }
    for (size_t p = 0; p < count; p++) {
        x[p] /= (double)seeds;
        y[p] /= (double)seeds;
    }
    *out = (chart_line){.scheme = scheme, .count = count, .x = x, .y = y};
    return count > 1;
}

static void draw(lab_sheet *sheet, int32_t task, const lab_subject *subject, int seconds)
{
    const lab_results *r = sheet->results;
    char name[LAB_NAME], title[128];
    chart_line lines[LINES];
    lab_chart chart;
    size_t used = 0;
    snprintf(title, sizeof title, "%s: training loss by %s", subject->title,
             seconds ? "second" : "step");
    chart_begin(&chart, title,
                "Lines of the training loss, a panel per family of schemes; the "
                "other schemes in grey.");
    for (int32_t s = 0; s < (int32_t)r->scheme_count && used < LINES; s++)
        if (lab_is_plain(r->schemes[s]))
            used += (size_t)take_line(&chart, r, task, s, seconds, &lines[used]);
    const locus_panel like = {.x = {.label = seconds ? "seconds" : "step"},
                              .y = {.label = "loss"},
                              .aspect = 0.5};
    chart_families(&chart, r, lines, used, &like);
    snprintf(name, sizeof name, "%s-%s", seconds ? "seconds" : "steps", subject->name);
    sheet_chart(sheet, name, &chart,
                seconds ? "The same by the clock of this machine, two runs side by side: what a "
                          "scheme costs enters here, and only here."
                        : "Each point is a mean over neighbouring steps and over seeds.");
}

/* ---- steps to 99 % ---- */

static void draw_targets(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    lab_chart chart;
    chart_begin(&chart, "Steps until 99 % exact match inside L",
                "Bars, one per scheme and task; where one is missing, a seed never got there.");
    const char **names = chart_names(&chart, r->scheme_count);
    int32_t schemes[LINES];
    size_t rows = 0;
    for (int32_t s = 0; names != NULL && s < (int32_t)r->scheme_count && rows < LINES; s++) {
        if (!lab_is_plain(r->schemes[s])) continue;
        schemes[rows] = s;
        names[rows++] = r->schemes[s];
    }
    for (size_t i = 0; lab_subject_at(i) != NULL; i++) {
        const lab_subject *subject = lab_subject_at(i);
        const int32_t task = lab_task_index(r, subject->name);
        double *y = chart_numbers(&chart, rows);
        size_t there = 0;
        if (!subject->exact || task < 0 || y == NULL) continue;
        for (size_t k = 0; k < rows; k++) {
            y[k] = lab_whole(r, task, schemes[k], "steps_to_99");
            there += isnan(y[k]) ? 0 : 1;
        }
        locus_panel *panel =
            there > 0 ? chart_panel(&chart, LOCUS_PANEL_BARS, subject->title) : NULL;
        if (panel == NULL) continue;
        panel->x.names = names;
        panel->y.label = "steps";
        panel->aspect = 0.45;
        chart_curve(&chart, NULL, NULL, y, NULL, NULL, rows, 0);
    }
    chart.figure.columns = 2;
    sheet_chart(sheet, "targets", &chart,
                "Mean over seeds. No bar: a seed or more did not get there within the budget.");
}

void sheet_learning(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    sheet_section(sheet, "learning", "How fast they learn");
    draw_targets(sheet);
    for (size_t i = 0; lab_subject_at(i) != NULL; i++) {
        const lab_subject *subject = lab_subject_at(i);
        const int32_t task = lab_task_index(r, subject->name);
        if (task < 0) continue;
        char title[LAB_NAME];
        snprintf(title, sizeof title, "%s: learning curves", subject->title);
        sheet_details(sheet, title);
        draw(sheet, task, subject, 0);
        draw(sheet, task, subject, 1);
        sheet_details_end(sheet);
    }
    sheet_section_end(sheet);
}
