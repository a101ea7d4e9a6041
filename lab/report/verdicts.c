/* SPDX-License-Identifier: Apache-2.0 */
/* The scoreboard, ranks, all seeds, and how to do it again. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/report/sheet.h"

enum { SEEDS = 16, LENGTHS = 32 };

void sheet_scoreboard(lab_sheet *sheet)
{
    static const char *const classes[] = {"none", "open", "bad", "good"};
    size_t count[4] = {0};
    for (size_t i = 0; i < LAB_CLAIMS; i++) count[sheet->claims[i].verdict]++;
    sheet_section(sheet, "scoreboard", "What others published, and what came out here");
    sheet_print(
        sheet,
        "<p>%zu reproduced, %zu open, %zu contradicted, %zu not run. Runs are paired by "
        "seed. Reproduced: the right sign in every seed, a mean difference of more than "
        "twice the pooled standard deviation, and the margin of the last column; with one "
        "seed the margin alone. Contradicted: the wrong sign in every seed. Open: anything "
        "else.</p>\n<div class=\"scroll broad\" tabindex=\"0\" role=\"region\" "
        "aria-label=\"Scoreboard\">\n<table class=\"words\" id=\"scoreboard-table\">\n"
        "<thead><tr><th scope=\"col\">id</th><th scope=\"col\">claim</th><th "
        "scope=\"col\">published</th><th scope=\"col\">here</th><th "
        "scope=\"col\">verdict</th><th scope=\"col\">counts as reproduced</th></tr></thead>\n"
        "<tbody>\n",
        count[LAB_REPRODUCED], count[LAB_OPEN], count[LAB_CONTRADICTED], count[LAB_NOT_RUN]);
    for (size_t i = 0; i < LAB_CLAIMS; i++) {
        const lab_claim *c = &sheet->claims[i];
        sheet_print(sheet, "<tr><th scope=\"row\">%s</th><td>", c->id);
        sheet_escape(sheet, c->claim);
        sheet_print(sheet, "</td><td>");
        sheet_escape(sheet, c->published);
        sheet_print(sheet, "</td><td>");
        sheet_escape(sheet, c->ours);
        sheet_print(sheet, "</td><td class=\"verdict %s\">%s</td><td>", classes[c->verdict],
                    lab_verdict_text(c->verdict));
        sheet_escape(sheet, c->rule);
        sheet_print(sheet, "</td></tr>\n");
    }
    sheet_print(sheet, "</tbody>\n</table>\n</div>\n");
    sheet_section_end(sheet);
}

void sheet_ranks(lab_sheet *sheet)
{
    const lab_ranks *ranks = sheet->ranks;
    if (ranks == NULL || ranks->count == 0) return;
    sheet_section(sheet, "ranks", "Ranks beyond the trained length");
    sheet_print(
        sheet,
        "<p>In each of %zu contests (a task and a seed) the schemes are ranked by their mean "
        "over all lengths beyond L; a scheme scores 1 divided by its place, equal ones "
        "share theirs, and 0 where it is not ranked or has no value. The interval holds "
        "90&nbsp;%% of %d bootstraps over tasks and seeds. Published, on other tasks: none "
        "0.69, T5 0.55, ALiBi 0.50, RoPE 0.33, sinusoidal 0.22 (Kazemnejad 2023).</p>\n"
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ranks\">\n<table>\n"
        "<thead><tr><th scope=\"col\">scheme</th><th scope=\"col\">mean reciprocal "
        "rank</th><th scope=\"col\">90&nbsp;%% interval</th><th scope=\"col\">ranked "
        "in</th></tr></thead>\n<tbody>\n",
        ranks->contests, LAB_BOOTSTRAPS);
    for (size_t i = 0; i < ranks->count; i++) {
        const lab_rank *k = &ranks->each[i];
        sheet_print(sheet,
                    "<tr><th scope=\"row\">%s</th><td>%.3f</td><td>%.3f to %.3f</td><td>%zu of "
                    "%zu</td></tr>\n",
                    sheet->results->schemes[k->scheme], k->mean, k->low, k->high, k->contests,
                    ranks->contests);
    }
    sheet_print(sheet, "</tbody>\n</table>\n</div>\n");
    sheet_section_end(sheet);
}

/* ---- all seeds ---- */

typedef struct strip {
    const lab_results *results;
    int32_t task;
    const char *metric;
    int64_t length;
    int32_t seeds[SEEDS];
} strip;

static double strip_value(const void *context, int32_t scheme, size_t column)
{
    const strip *s = context;
    const lab_value *v =
        lab_find(s->results, s->task, scheme, s->metric, s->length, s->seeds[column]);
    return v != NULL ? v->value : NAN;
}

static size_t take_seeds(const lab_results *r, int32_t task, int32_t *seeds)
{
    size_t count = 0;
    for (size_t i = 0; i < r->run_count; i++) {
        size_t at = 0;
        if (r->runs[i].task != task || !r->runs[i].finished) continue;
        while (at < count && seeds[at] < r->runs[i].seed) at++;
        if ((at < count && seeds[at] == r->runs[i].seed) || count == SEEDS) continue;
        memmove(seeds + at + 1, seeds + at, (count - at) * sizeof *seeds);
        seeds[at] = r->runs[i].seed;
        count++;
    }
    return count;
}

/* The first length beyond the trained one where exact match is shown, the trained one else. */
static int64_t strip_length(const lab_results *r, int32_t task, const lab_subject *subject)
{
    int64_t lengths[LENGTHS];
    const int64_t inside = lab_length(r, task);
    const size_t count = lab_lengths(r, task, subject->metric, lengths, LENGTHS);
    for (size_t i = 0; subject->exact && i < count; i++)
        if ((double)lengths[i] >= 1.2 * (double)inside) return lengths[i];
    return inside;
}

void sheet_seeds(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    lab_chart chart;
    size_t most = 0;
    chart_begin(&chart, "Every seed",
                "A strip per scheme, a cell per seed, colours the number that is ranked.");
    for (size_t i = 0; lab_subject_at(i) != NULL; i++) {
        const lab_subject *subject = lab_subject_at(i);
        strip s = {.results = r,
                   .task = lab_task_index(r, subject->name),
                   .metric = subject->metric};
        if (s.task < 0) continue;
        s.length = strip_length(r, s.task, subject);
        const size_t count = take_seeds(r, s.task, s.seeds);
        const char **names = chart_names(&chart, count);
        const size_t before = chart.figure.panel_count;
        for (size_t k = 0; names != NULL && k < count; k++)
            names[k] = chart_text(&chart, "%d", (int)s.seeds[k]);
        if (count > 0)
            chart_heat(&chart, r,
                       chart_text(&chart, "%s: %s at %lld", subject->title, subject->words,
                                  (long long)s.length),
                       names, count, strip_value, &s);
        if (count > most) most = count;
        if (chart.figure.panel_count > before) {
            chart.panels[before].x.label = "seed";
            chart.panels[before].high = subject->lower ? 0 : 1;
            chart.panels[before].colours = LOCUS_COLOURS_SEQUENTIAL;
        }
    }
    chart.figure.columns = 2;
    sheet_section(sheet, "seeds", "Every seed");
    sheet_print(sheet, "<p>Nothing is hidden in a mean: the number that is ranked, run by "
                       "run.</p>\n");
    sheet_chart(sheet, "seeds", &chart,
                "A row per scheme, a column per seed. Empty: not run, or "
                "undefined at that length.");
    sheet_section_end(sheet);
}

/* ---- how it was run ---- */

static void print_setting(lab_sheet *sheet, const char *label, const char *value)
{
    if (*value == '\0') return;
    sheet_print(sheet, "<tr><th scope=\"row\">%s</th><td class=\"text\">", label);
    sheet_escape(sheet, value);
    sheet_print(sheet, "</td></tr>\n");
}

static void print_unfinished(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    if (r->finished == r->run_count) return;
    char title[LAB_NAME];
    snprintf(title, sizeof title, "%zu runs have not finished", r->run_count - r->finished);
    sheet_details(sheet, title);
    sheet_print(sheet, "<ul>\n");
    for (size_t i = 0; i < r->run_count; i++)
        if (!r->runs[i].finished)
            sheet_print(sheet, "<li>%s, %s, seed %d: step %lld of %lld</li>\n",
                        r->tasks[r->runs[i].task], r->schemes[r->runs[i].scheme],
                        (int)r->runs[i].seed, (long long)r->runs[i].reached,
                        (long long)r->runs[i].steps);
    sheet_print(sheet, "</ul>\n");
    sheet_details_end(sheet);
}

void sheet_machine(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    const char *command = sheet->options != NULL ? sheet->options->command : NULL;
    if (command == NULL) command = lab_record_text(&r->settings, "command");
    sheet_section(sheet, "machine", "How it was run");
    if (*command != '\0') {
        sheet_print(sheet, "<p>To do it again, bit for bit on the same instruction set:</p>\n"
                           "<pre tabindex=\"0\"><code>");
        sheet_escape(sheet, command);
        sheet_print(sheet, "</code></pre>\n");
    }
    sheet_print(sheet, "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Settings "
                       "and machine\">\n<table>\n<tbody>\n");
    for (size_t i = 0; i < r->settings.count; i++)
        if (strcmp(r->settings.settings[i].name, "command") != 0) {
            sheet_print(sheet, "<tr><th scope=\"row\">");
            sheet_escape(sheet, r->settings.settings[i].name);
            sheet_print(sheet, "</th><td class=\"text\">");
            sheet_escape(sheet, r->settings.settings[i].value);
            sheet_print(sheet, "</td></tr>\n");
        }
    print_setting(sheet, "commit", lab_record_text(&r->run, "commit"));
    print_setting(sheet, "CPU", lab_record_text(&r->run, "cpu"));
    print_setting(sheet, "instruction set", lab_record_text(&r->run, "isa"));
    sheet_print(sheet, "</tbody>\n</table>\n</div>\n");
    print_unfinished(sheet);
    sheet_section_end(sheet);
}
