/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_REPORT_CHART_H
#define LOCUS_LAB_REPORT_CHART_H

/* A figure with the numbers and texts it borrows. A failed allocation is remembered, and what
 * follows does nothing. */

#include "core/compiler.h"
#include "io/store.h"
#include "lab/results.h"

enum { CHART_PANELS = 16, CHART_SERIES = 32, CHART_FAMILIES = 4 };

typedef struct lab_chart {
    locus_figure figure;
    locus_panel panels[CHART_PANELS];
    locus_series series[CHART_PANELS][CHART_SERIES];
    locus_arena arena;
    int failed;
} lab_chart;

/* `description`: for those who cannot see it. Both are borrowed. */
void chart_begin(lab_chart *chart, const char *title, const char *description);
void chart_free(lab_chart *chart);

double *chart_numbers(lab_chart *chart, size_t count); /* NaN each */
const char *chart_text(lab_chart *chart, const char *format, ...) LOCUS_PRINTF(2, 3);
const char **chart_names(lab_chart *chart, size_t count);

/* The next panel, or NULL. */
locus_panel *chart_panel(lab_chart *chart, locus_panel_kind kind, const char *title);
/* The next curve of the newest panel; `low` and `high` may be NULL. A panel takes CHART_SERIES. */
void chart_curve(lab_chart *chart, const char *name, const double *x, const double *y,
                 const double *low, const double *high, size_t count, int behind);

/* ---- schemes side by side ---- */

/* Which of four families a scheme belongs to: none and absolute, bias, vectors, rotation. */
size_t chart_family(const char *scheme);
const char *chart_family_title(size_t family);

/* One curve of a scheme. */
typedef struct chart_line {
    int32_t scheme;
    size_t count;
    const double *x, *y, *low, *high; /* low, high: over seeds, or NULL */
} chart_line;

/* A panel per family that has a line: its own in colour, all others in grey behind them. `panel`
 * holds axes, limits and mark of each. */
void chart_families(lab_chart *chart, const lab_results *results, const chart_line *lines,
                    size_t count, const locus_panel *panel);

/* Rows are schemes, columns have names; rows without any number are left out. */
void chart_heat(lab_chart *chart, const lab_results *results, const char *title,
                const char *const *columns, size_t column_count,
                double (*value)(const void *context, int32_t scheme, size_t column),
                const void *context);

#endif
