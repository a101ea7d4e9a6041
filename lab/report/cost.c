/* SPDX-License-Identifier: Apache-2.0 */
/* What a scheme costs: time of a step, time to read far, memory, parameters. */
#include <math.h>
#include <string.h>

#include "lab/report/sheet.h"

typedef struct price {
    const char *metric, *title;
    double unit;
    int digits;
} price;

static const price prices[] = {{"ms_per_step", "ms per training step", 1, 2},
                               {"read_8x_ms", "ms to read 8&times;", 1, 1},
                               {"peak_bytes", "memory, MB", 1e6, 1},
                               {"position_parameters", "position parameters", 1, 0},
                               {"parameters", "all parameters", 1, 0}};
enum { PRICES = sizeof prices / sizeof *prices };

/* The task whose costs are shown: text where it was run, else the first that has any. */
static int32_t priced_task(const lab_results *r)
{
    const int32_t text = lab_task_index(r, "text");
    for (int32_t t = -1; t < (int32_t)r->task_count; t++)
        for (int32_t s = 0; s < (int32_t)r->scheme_count; s++)
            if (!isnan(lab_whole(r, t < 0 ? text : t, s, "ms_per_step"))) return t < 0 ? text : t;
    return -1;
}

static void draw(lab_sheet *sheet, int32_t task)
{
    static const char *const titles[] = {"ms per training step", "ms to read 8 times the context"};
    const lab_results *r = sheet->results;
    lab_chart chart;
    chart_begin(&chart, "What a scheme costs", "Bars, one per scheme.");
    const char **names = chart_names(&chart, r->scheme_count);
    size_t rows = 0;
    for (size_t s = 0; names != NULL && s < r->scheme_count; s++)
        if (lab_is_plain(r->schemes[s])) names[rows++] = r->schemes[s];
    for (size_t p = 0; p < 2 && names != NULL; p++) {
        double *y = chart_numbers(&chart, rows);
        size_t there = 0;
        for (size_t i = 0; y != NULL && i < rows; i++) {
            y[i] = lab_whole(r, task, lab_scheme_index(r, names[i]), prices[p].metric);
            there += isnan(y[i]) ? 0 : 1;
        }
        locus_panel *panel = there > 0 ? chart_panel(&chart, LOCUS_PANEL_BARS, titles[p]) : NULL;
        if (panel == NULL) continue;
        panel->x.names = names;
        panel->aspect = 0.45;
        chart_curve(&chart, NULL, NULL, y, NULL, NULL, rows, 0);
    }
    chart.figure.columns = 2;
    sheet_chart(sheet, "cost", &chart,
                "Mean over seeds, on the machine named at the end, where runs shared the cores.");
}

static void print_table(lab_sheet *sheet, int32_t task)
{
    const lab_results *r = sheet->results;
    sheet_print(sheet,
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Costs\">\n"
                "<table>\n<caption>Task %s, means over seeds</caption>\n<thead><tr><th "
                "scope=\"col\">scheme</th>",
                r->tasks[task]);
    for (size_t p = 0; p < PRICES; p++)
        sheet_print(sheet, "<th scope=\"col\">%s</th>", prices[p].title);
    sheet_print(sheet, "</tr></thead>\n<tbody>\n");
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++) {
        if (isnan(lab_whole(r, task, s, "ms_per_step"))) continue;
        sheet_print(sheet, "<tr><th scope=\"row\">%s</th>", r->schemes[s]);
        for (size_t p = 0; p < PRICES; p++) {
            const double value = lab_whole(r, task, s, prices[p].metric);
            if (isnan(value))
                sheet_print(sheet, "<td class=\"aside\">&ndash;</td>");
            else
                sheet_print(sheet, "<td>%.*f</td>", prices[p].digits, value / prices[p].unit);
        }
        sheet_print(sheet, "</tr>\n");
    }
    sheet_print(sheet, "</tbody>\n</table>\n</div>\n");
}

void sheet_cost(lab_sheet *sheet)
{
    const int32_t task = priced_task(sheet->results);
    if (task < 0) return;
    sheet_section(sheet, "cost", "What they cost");
    draw(sheet, task);
    print_table(sheet, task);
    sheet_section_end(sheet);
}
