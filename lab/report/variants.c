/* SPDX-License-Identifier: Apache-2.0 */
/* Variants beside what was published for them: clip sweep, terms, memory, random positions. */
#include <math.h>
#include <string.h>

#include "lab/report/sheet.h"

enum { MOST = 8 };

/* A sweep: our numbers of one metric, and the published ones of another. */
typedef struct sweep {
    const char *name, *title, *task, *metric, *ours, *theirs;
    int beyond; /* 2: at twice L; 1: at L */
    struct {
        const char *scheme, *label;
        double published; /* NAN: none */
    } points[MOST];
} sweep;

static const sweep sweeps[] = {
    {"clip",
     "Shaw: how far distances are told apart (clip k)",
     "masked",
     "loss",
     "masked loss here (less is better)",
     "BLEU, EN-DE dev (Shaw 2018; more is better)",
     1,
     {{"shaw+clip0", "0", 12.5},
      {"shaw+clip1", "1", 25.5},
      {"shaw+clip2", "2", 25.8},
      {"shaw+clip4", "4", 25.9},
      {"shaw", "16", 25.8},
      {"shaw+clip64", "64", 25.9}}},
    {"terms",
     "DeBERTa: which terms of the score it has",
     "masked",
     "loss",
     "masked loss here (less is better)",
     "MNLI-m (He 2020; more is better)",
     1,
     {{"deberta", "both", 86.3},
      {"deberta+terms-c2p", "c2p", 86.0},
      {"deberta+terms-p2c", "p2c", 85.9},
      {"deberta+terms-none", "neither", NAN}}},
    {"memory",
     "Transformer-XL: memory of the segment before",
     "text",
     "bpc",
     "bits per byte here (less is better)",
     "WikiText-103 perplexity (Dai 2019; less is better)",
     1,
     {{"transformer_xl", "without", 29.02}, {"transformer_xl+memory", "with", 26.77}}},
    {"positions",
     "Sinusoidal: random positions in training",
     "copy",
     "token_accuracy",
     "token accuracy here, at 2 L",
     "points gained, mean of 15 tasks (Ruoss 2023)",
     2,
     {{"sinusoidal", "plain", 0}, {"sinusoidal+positions-subset", "random", 12}}},
};
enum { SWEEPS = sizeof sweeps / sizeof *sweeps };

/* A scheme whose name begins so; a number may follow a variant's. */
static int32_t find(const lab_results *r, const char *name)
{
    const int32_t exact = lab_scheme_index(r, name);
    for (int32_t s = 0; exact < 0 && strchr(name, '+') != NULL && s < (int32_t)r->scheme_count; s++)
        if (strncmp(r->schemes[s], name, strlen(name)) == 0) return s;
    return exact;
}

static int draw(lab_sheet *sheet, const sweep *w)
{
    const lab_results *r = sheet->results;
    const int32_t task = lab_task_index(r, w->task);
    const int64_t length = task >= 0 ? w->beyond * lab_length(r, task) : 0;
    size_t count = 0, variants = 0, published = 0;
    lab_chart chart;
    chart_begin(&chart, w->title, "Bars of our numbers, beside them bars of the published ones.");
    double *ours = chart_numbers(&chart, MOST), *theirs = chart_numbers(&chart, MOST);
    const char **names = chart_names(&chart, MOST), **all = chart_names(&chart, MOST);
    if (chart.failed || task < 0) {
        chart_free(&chart);
        return 0;
    }
    for (size_t i = 0; i < MOST && w->points[i].scheme != NULL; i++) {
        const double value = lab_mean(r, task, find(r, w->points[i].scheme), w->metric, length);
        if (!isnan(w->points[i].published)) {
            theirs[published] = w->points[i].published;
            all[published++] = w->points[i].label;
        }
        if (isnan(value)) continue;
        ours[count] = value;
        names[count++] = w->points[i].label;
        variants += strchr(w->points[i].scheme, '+') != NULL;
    }
    if (variants > 0) {
        locus_panel *panel = chart_panel(&chart, LOCUS_PANEL_BARS, w->ours);
        panel->x.names = names;
        panel->aspect = 0.5;
        chart_curve(&chart, NULL, NULL, ours, NULL, NULL, count, 0);
        panel = chart_panel(&chart, LOCUS_PANEL_BARS, w->theirs);
        panel->x.names = all;
        panel->aspect = 0.5;
        chart_curve(&chart, NULL, NULL, theirs, NULL, NULL, published, 0);
        chart.figure.columns = 2;
    }
    sheet_chart(
        sheet, w->name, &chart,
        "Left: the mean over seeds of this comparison. Right: as published, on another task "
        "and another scale; only the order can be compared.");
    return variants > 0;
}

static int has_variants(const lab_results *r)
{
    for (size_t s = 0; s < r->scheme_count; s++)
        if (!lab_is_plain(r->schemes[s])) return 1;
    return 0;
}

void sheet_variants(lab_sheet *sheet)
{
    if (!has_variants(sheet->results)) return;
    sheet_section(sheet, "variants", "Variants");
    sheet_print(sheet, "<p>One thing changed at a time: how far distances are told apart, which "
                       "terms the score has, whether the segment before is remembered, whether "
                       "positions are drawn at random in training.</p>\n");
    for (size_t i = 0; i < SWEEPS; i++) draw(sheet, &sweeps[i]);
    sheet_section_end(sheet);
}
