/* SPDX-License-Identifier: Apache-2.0 */
/* Which one should I use? A column is a need; a grade says how far a scheme is from the best. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "lab/report/sheet.h"

/* How a grade is reckoned. */
typedef enum rule {
    UNGRADED,
    BELOW_BEST, /* at most so much below the best         */
    TIMES_BEST, /* at most so many times the best         */
    AT_MOST,    /* at most this, whatever the others have */
    AT_LEAST,   /* at least this, likewise                */
} rule;

typedef struct column {
    const char *need, *title; /* of the sentence, NULL: none; of the column    */
    const char *task, *metric;
    double factor; /* of the trained length; 0: a number of the whole run      */
    int digits;
    rule rule;
    double good, fair;
    int beyond; /* 1: only runs that know the task inside L are ranked         */
} column;

static const column columns[] = {
    {NULL, "copy: EM inside L", "copy", "em", 1, 3, AT_LEAST, LAB_INSIDE, 0.5, 0},
    {"To read further than trained, on copying", "copy: EM at 1.25&nbsp;L", "copy", "em", 1.25, 3,
     BELOW_BEST, 0.05, 0.3, 1},
    {"A language model that reads 8 times its context", "text: bpc 8&times; / 1&times;", "text",
     "bpc_ratio", 8, 3, AT_MOST, 1.01, 1.05, 0},
    {"A language model inside its context", "text: bpc 1&times;", "text", "bpc", 1, 3, TIMES_BEST,
     1.01, 1.05, 0},
    {"An encoder", "masked loss", "masked", "loss", 1, 3, TIMES_BEST, 1.02, 1.1, 0},
    {"To learn fast, on copying", "copy: steps to 99&nbsp;%", "copy", "steps_to_99", 0, 0,
     TIMES_BEST, 1.25, 2, 0},
    {"Cheap steps", "ms per step", "text", "ms_per_step", 0, 2, TIMES_BEST, 1.1, 1.5, 0},
    {NULL, "position parameters", "text", "position_parameters", 0, 0, UNGRADED, 0, 0, 0},
    {NULL, "mean recip. rank", "all", "mean_reciprocal_rank", 0, 3, UNGRADED, 0, 0, 0},
};
enum { COLUMNS = sizeof columns / sizeof *columns, GRADES = 3, NAMED = 4 };

/* A column as this comparison can fill it. */
typedef struct filled {
    const column *column;
    int32_t task;   /* -1: nobody has it */
    int64_t length; /* where the number stands */
    double best;
} filled;

static double value_of(const lab_results *r, const filled *f, int32_t scheme)
{
    return f->column->factor > 0 ? lab_mean(r, f->task, scheme, f->column->metric, f->length)
                                 : lab_whole(r, f->task, scheme, f->column->metric);
}

static int is_row(const lab_results *r, int32_t scheme) { return lab_is_plain(r->schemes[scheme]); }

static int counts(const lab_results *r, const filled *f, int32_t scheme)
{
    return is_row(r, scheme) && !isnan(value_of(r, f, scheme)) &&
           (!f->column->beyond || lab_is_ranked(r, f->task, scheme));
}

/* Where the numbers of a column are; costs of another task stand in for those of text. */
static filled fill(const lab_results *r, const column *c)
{
    const char *const tasks[] = {c->task, strcmp(c->task, "text") == 0 ? "copy" : c->task};
    filled f = {.column = c, .task = -1, .best = NAN};
    for (size_t t = 0; t < 2; t++) {
        f.task = lab_task_index(r, tasks[t]);
        f.length = f.task >= 0 && c->factor > 0 ? lab_length_near(r, tasks[t], c->metric, c->factor)
                                                : LAB_NO_LENGTH;
        int there = 0;
        for (int32_t s = 0; f.task >= 0 && s < (int32_t)r->scheme_count; s++) {
            const double value = value_of(r, &f, s);
            there |= is_row(r, s) && !isnan(value);
            if (!counts(r, &f, s)) continue;
            const int better = c->rule == BELOW_BEST ? value > f.best : value < f.best;
            if (isnan(f.best) || better) f.best = value;
        }
        if (there) return f;
    }
    f.task = -1;
    return f;
}

static int is_within(const filled *f, double value, double limit)
{
    switch (f->column->rule) {
    case BELOW_BEST: return value >= f->best - limit;
    case TIMES_BEST: return value <= f->best * limit;
    case AT_LEAST: return value >= limit;
    default: return value <= limit;
    }
}

/* 0 strong, 1 fair, 2 weak. */
static size_t grade_of(const filled *f, double value)
{
    return is_within(f, value, f->column->good) ? 0 : is_within(f, value, f->column->fair) ? 1 : 2;
}

/* ---- sentences ---- */

/* Spread over seeds, 0 where there is one. */
static double variance(const lab_results *r, const filled *f, int32_t scheme, size_t *seeds)
{
    size_t count;
    double sum = 0;
    const double centre = value_of(r, f, scheme);
    const lab_value *v = lab_range(r, f->task, scheme, f->column->metric, &count);
    *seeds = 0;
    for (size_t i = 0; i < count; i++) {
        if (v[i].seed == LAB_MEAN || isnan(v[i].value)) continue;
        if (f->column->factor > 0 && v[i].length != f->length) continue;
        sum += (v[i].value - centre) * (v[i].value - centre);
        ++*seeds;
    }
    return *seeds > 1 ? sum / (double)(*seeds - 1) : 0;
}

/* Is it apart from the best by more than twice the pooled deviation; with one seed: graded less? */
static int is_behind(const lab_results *r, const filled *f, int32_t best, int32_t scheme)
{
    size_t seeds, others;
    const double pooled =
        sqrt((variance(r, f, best, &seeds) + variance(r, f, scheme, &others)) / 2);
    const double value = value_of(r, f, scheme);
    if (seeds < 2 || others < 2) return grade_of(f, value) > 0;
    return fabs(value - f->best) > 2 * pooled;
}

static void print_sentence(lab_sheet *sheet, const filled *f)
{
    const lab_results *r = sheet->results;
    int32_t best = -1;
    size_t level = 0;
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++)
        if (best < 0 && counts(r, f, s) && value_of(r, f, s) == f->best) best = s;
    sheet_print(sheet, "<dt>%s</dt><dd>", f->column->need);
    if (best < 0) {
        sheet_print(sheet, "nobody knows the task well enough inside L to be ranked</dd>\n");
        return;
    }
    sheet_print(sheet, "<b>%s</b>", r->schemes[best]);
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++) {
        if (s == best || !counts(r, f, s) || is_behind(r, f, best, s)) continue;
        if (level++ < NAMED)
            sheet_print(sheet, "%s %s", level == 1 ? "; not told apart from it:" : ",",
                        r->schemes[s]);
    }
    if (level > NAMED) sheet_print(sheet, " and %zu more", level - NAMED);
    sheet_print(sheet, "</dd>\n");
}

/* ---- the table ---- */

static void print_cell(lab_sheet *sheet, const filled *f, int32_t scheme)
{
    static const char *const marks[GRADES] = {"\xe2\x97\x8f", "\xe2\x97\x90", "\xe2\x97\x8b"};
    static const char *const words[GRADES] = {"strong", "fair", "weak"};
    const lab_results *r = sheet->results;
    const double value = value_of(r, f, scheme);
    size_t count;
    lab_range(r, f->task, scheme, f->column->metric, &count);
    if (isnan(value)) {
        sheet_print(sheet, "<td class=\"aside\">%s</td>", count > 0 ? "undefined" : "&ndash;");
        return;
    }
    sheet_print(sheet, "<td>%.*f", f->column->digits, value);
    if (f->column->beyond && !counts(r, f, scheme)) {
        sheet_print(sheet, "<span class=\"g\" role=\"img\" aria-label=\"not ranked\" title=\"not "
                           "ranked\">&times;</span>");
    } else if (f->column->rule != UNGRADED) {
        const size_t grade = grade_of(f, value);
        sheet_print(sheet,
                    "<span class=\"g%s\" role=\"img\" aria-label=\"%s\" title=\"%s\">%s</span>",
                    grade == 0 ? " good" : "", words[grade], words[grade], marks[grade]);
    } else {
        sheet_print(sheet, "<span class=\"g\"></span>");
    }
    sheet_print(sheet, "</td>");
}

static void print_table(lab_sheet *sheet, const filled *fills)
{
    const lab_results *r = sheet->results;
    sheet_print(sheet, "<p class=\"machine\">Means over seeds. &#9679; strong, &#9680; fair, "
                       "&#9675; weak, &times; not ranked: below 95&nbsp;%% exact match inside L. "
                       "Undefined: the scheme's table ends with the trained length.</p>\n");
    sheet_print(sheet, "<div class=\"scroll broad\" tabindex=\"0\" role=\"region\" "
                       "aria-label=\"The answer, scheme by scheme\">\n<table id=\"answer\">\n"
                       "<thead><tr><th scope=\"col\">scheme</th>");
    for (size_t c = 0; c < COLUMNS; c++)
        if (fills[c].task >= 0)
            sheet_print(sheet, "<th scope=\"col\">%s</th>", fills[c].column->title);
    sheet_print(sheet, "</tr></thead>\n<tbody>\n");
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++) {
        if (!is_row(r, s)) continue;
        sheet_print(sheet, "<tr><th scope=\"row\">%s</th>", r->schemes[s]);
        for (size_t c = 0; c < COLUMNS; c++)
            if (fills[c].task >= 0) print_cell(sheet, &fills[c], s);
        sheet_print(sheet, "</tr>\n");
    }
    sheet_print(sheet, "</tbody>\n</table>\n</div>\n");
}

static void print_rules(lab_sheet *sheet, const filled *fills)
{
    sheet_details(sheet, "How the grades are reckoned, and from which runs");
    sheet_print(sheet, "<ul>\n");
    for (size_t c = 0; c < COLUMNS; c++) {
        const column *k = fills[c].column;
        if (fills[c].task < 0) continue;
        sheet_print(sheet, "<li>%s: <code>%s</code> of task <a href=\"#%s\">%s</a>", k->title,
                    k->metric,
                    strcmp(k->task, "all") == 0 ? "ranks" : sheet->results->tasks[fills[c].task],
                    sheet->results->tasks[fills[c].task]);
        if (fills[c].length > 0) sheet_print(sheet, ", length %lld", (long long)fills[c].length);
        if (k->rule == BELOW_BEST)
            sheet_print(sheet, "; strong within %g of the best, fair within %g", k->good, k->fair);
        else if (k->rule == TIMES_BEST)
            sheet_print(sheet, "; strong up to %g times the best, fair up to %g", k->good, k->fair);
        else if (k->rule == AT_LEAST)
            sheet_print(sheet, "; strong from %g on, fair from %g", k->good, k->fair);
        else if (k->rule == AT_MOST)
            sheet_print(sheet, "; strong up to %g, fair up to %g", k->good, k->fair);
        sheet_print(sheet, "</li>\n");
    }
    sheet_print(sheet, "</ul>\n<p>Two schemes are not told apart where their means differ by less "
                       "than twice the pooled standard deviation over seeds; with one seed, where "
                       "both are graded strong.</p>\n");
    sheet_details_end(sheet);
}

static void print_header(lab_sheet *sheet)
{
    const lab_results *r = sheet->results;
    sheet_print(sheet,
                "<header>\n<h1>Which position embedding should I use?</h1>\n<p class=\"lead\">"
                "Small transformers, trained from scratch with each scheme on the same initial "
                "weights, the same batches and the same number of steps, then read beyond the "
                "length they were trained at. %zu of %zu runs have finished.</p>\n",
                r->finished, r->run_count);
    if (r->finished < r->run_count)
        sheet_print(sheet, "<p class=\"note\">The comparison is not complete: what follows rests "
                           "on the runs that have finished.</p>\n");
    sheet_print(sheet, "</header>\n<main id=\"main\">\n");
}

void sheet_answer(lab_sheet *sheet)
{
    filled fills[COLUMNS];
    int any = 0;
    print_header(sheet);
    for (size_t c = 0; c < COLUMNS; c++) {
        fills[c] = fill(sheet->results, &columns[c]);
        any |= fills[c].task >= 0;
    }
    sheet_section(sheet, "the-answer", "The answer");
    if (any) {
        sheet_print(sheet, "<dl class=\"answer\">\n");
        for (size_t c = 0; c < COLUMNS; c++)
            if (fills[c].task >= 0 && columns[c].need != NULL) print_sentence(sheet, &fills[c]);
        sheet_print(sheet, "</dl>\n");
    }
    print_table(sheet, fills);
    if (any) print_rules(sheet, fills);
    sheet_print(
        sheet, "<p class=\"note\">What this does not say: which scheme is best at a thousand times "
               "this size. These models have a few layers and saw little data; orders and ratios "
               "carry over better than values, and only where the scoreboard below agrees with "
               "what others published.</p>\n");
    sheet_section_end(sheet);
}
