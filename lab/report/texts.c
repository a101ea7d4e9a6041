/* SPDX-License-Identifier: Apache-2.0 */
/* Bits per byte: by context, relative to one's own, and by index inside a long window. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "lab/report/sheet.h"

enum { LINES = 64, INDICES = 4096, LENGTHS = 32 };

/* What packers make of the text that validates, the novel inside the program, alone. */
#define AUSTEN_NOTE                                                                                \
    "For comparison, bits per byte of the novel that validates (Northanger Abbey): bytes by "      \
    "frequency 4.44, gzip 2.99, bzip2 2.22."

static const char *builtin_note(const lab_results *r)
{
    return strcmp(r->text_sum, "04b9179d") == 0 ? AUSTEN_NOTE : "";
}

static void draw_context(lab_sheet *sheet, int32_t task)
{
    const lab_results *r = sheet->results;
    const double n = (double)lab_length(r, task);
    int64_t lengths[LENGTHS];
    chart_line lines[LINES];
    lab_chart chart;
    size_t used = 0;
    chart_begin(&chart, "Reading further than trained: bits per byte, own context = 1",
                "Lines over the context as a multiple of the trained one, a panel per family of "
                "schemes; the other schemes in grey.");
    const size_t count = lab_lengths(r, task, "bpc", lengths, LENGTHS);
    for (int32_t s = 0; s < (int32_t)r->scheme_count && used < LINES; s++) {
        double *x = chart_numbers(&chart, count), *y = chart_numbers(&chart, count);
        double *low = chart_numbers(&chart, count), *high = chart_numbers(&chart, count);
        size_t rows;
        const lab_value *v = lab_range(r, task, s, "bpc_ratio", &rows);
        if (chart.failed || isnan(lab_mean(r, task, s, "bpc", (int64_t)n))) continue;
        for (size_t k = 0; k < count; k++) {
            x[k] = log2((double)lengths[k] / n);
            if (lengths[k] == (int64_t)n) y[k] = low[k] = high[k] = 1;
            for (size_t i = 0; i < rows; i++) {
                if (v[i].length != lengths[k] || isnan(v[i].value)) continue;
                if (v[i].seed == LAB_MEAN)
                    y[k] = v[i].value;
                else {
                    low[k] = isnan(low[k]) ? v[i].value : fmin(low[k], v[i].value);
                    high[k] = isnan(high[k]) ? v[i].value : fmax(high[k], v[i].value);
                }
            }
        }
        lines[used++] = (chart_line){s, count, x, y, low, high};
    }
    const locus_panel like = {.x = {.label = "doublings of the context"},
                              .y = {.label = "bpc / own bpc at 1x"}};
    chart_families(&chart, r, lines, used, &like);
    sheet_chart(sheet, "context", &chart,
                "0: the trained context; 3: eight times that. Below 1, more context helps; above, "
                "it hurts. Long disjoint windows have fewer early bytes, which lowers every curve "
                "a little.");
}

/* ---- by index ---- */

/* The i of bpc_index_i, or -1. */
static int64_t index_of(const char *metric)
{
    const char *digits = metric + strlen("bpc_index_");
    return strncmp(metric, "bpc_index_", strlen("bpc_index_")) == 0 ? strtoll(digits, NULL, 10)
                                                                    : -1;
}

static int by_number(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
    return left < right ? -1 : left > right;
}

static size_t take_indices(const lab_results *r, int64_t *indices)
{
    size_t count = 0;
    for (size_t m = 0; m < r->metric_count && count < INDICES; m++)
        if (index_of(r->metrics[m]) >= 0) indices[count++] = index_of(r->metrics[m]);
    if (count > 0) qsort(indices, count, sizeof *indices, by_number);
    return count;
}

static void draw_index(lab_sheet *sheet, int32_t task, int64_t *indices)
{
    const lab_results *r = sheet->results;
    const size_t count = take_indices(r, indices);
    chart_line lines[LINES];
    lab_chart chart;
    size_t used = 0;
    double most = 0, least = INFINITY;
    chart_begin(&chart, "Where in a long window the bits go",
                "Bits per byte over the index inside a window of eight times the trained context, "
                "a panel per family of schemes; the other schemes in grey.");
    double *x = chart_numbers(&chart, count);
    for (size_t i = 0; x != NULL && i < count; i++) x[i] = (double)indices[i];
    for (int32_t s = 0; s < (int32_t)r->scheme_count && used < LINES && !chart.failed; s++) {
        double *y = chart_numbers(&chart, count);
        size_t there = 0;
        for (size_t i = 0; y != NULL && i < count; i++) {
            char metric[LAB_NAME];
            snprintf(metric, sizeof metric, "bpc_index_%lld", (long long)indices[i]);
            y[i] = lab_whole(r, task, s, metric);
            if (isnan(y[i])) continue;
            there++;
            least = fmin(least, y[i]);
            if (i > 0) most = fmax(most, y[i]);
        }
        if (there > 1) lines[used++] = (chart_line){.scheme = s, .count = count, .x = x, .y = y};
    }
    const locus_panel like = {
        .x = {.label = "index in the window"},
        .y = {.label = "bits per byte", .low = least - 0.1, .high = fmin(most + 0.1, least + 4)},
        .mark = (double)lab_length(r, task),
        .mark_name = "trained"};
    chart_families(&chart, r, lines, used, &like);
    sheet_chart(sheet, "index", &chart,
                "Left of the mark every index was trained; a curve that goes on falling uses what "
                "it reads, one that rises is lost. What leaves the picture at the top is worse "
                "still.");
}

void sheet_texts(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    const int32_t task = lab_task_index(r, "text");
    int64_t lengths[LENGTHS];
    int64_t *indices = locus_allocate(NULL, INDICES, sizeof *indices);
    if (task < 0 || indices == NULL || lab_lengths(r, task, "bpc", lengths, LENGTHS) == 0) {
        locus_release(NULL, indices);
        return;
    }
    sheet_section(sheet, "text", "A language model of bytes");
    sheet_print(sheet,
                "<p>Trained on windows of %lld bytes, read in windows of up to eight times "
                "that, always on text that no model was trained on. %s</p>\n",
                (long long)lab_length(r, task), builtin_note(r));
    draw_context(sheet, task);
    draw_index(sheet, task, indices);
    sheet_section_end(sheet);
    locus_release(NULL, indices);
}

/* ---- masked bytes ---- */

void sheet_masked(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    const int32_t task = lab_task_index(r, "masked");
    int64_t lengths[LENGTHS];
    const size_t count = task >= 0 ? lab_lengths(r, task, "loss", lengths, LENGTHS) : 0;
    lab_chart chart;
    if (count == 0) return;
    chart_begin(&chart, "Masked bytes: loss of an encoder",
                "Bars, one per scheme, for the trained length and for twice that.");
    const char **names = chart_names(&chart, r->scheme_count);
    size_t rows = 0;
    for (size_t s = 0; names != NULL && s < r->scheme_count; s++)
        if (lab_is_plain(r->schemes[s])) names[rows++] = r->schemes[s];
    locus_panel *panel = chart_panel(&chart, LOCUS_PANEL_BARS, "");
    for (size_t k = 0; panel != NULL && k < count && k < 2; k++) {
        double *y = chart_numbers(&chart, rows);
        for (size_t i = 0; y != NULL && i < rows; i++)
            y[i] = lab_mean(r, task, lab_scheme_index(r, names[i]), "loss", lengths[k]);
        chart_curve(&chart, chart_text(&chart, "length %lld", (long long)lengths[k]), NULL, y, NULL,
                    NULL, rows, 0);
    }
    if (panel != NULL) {
        panel->x.names = names;
        panel->y.label = "loss";
        panel->aspect = 0.4;
    }
    sheet_section(sheet, "masked", "An encoder");
    sheet_print(sheet,
                "<p>Hidden spans of bytes are filled in, with sight to both sides. Without a "
                "causal mask nothing but the scheme tells where a byte stands.</p>\n");
    sheet_chart(sheet, "masked", &chart,
                "Cross entropy of the hidden bytes, natural logarithm; mean over seeds, less is "
                "better. No bar: undefined at that length.");
    sheet_section_end(sheet);
}
