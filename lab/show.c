/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "lab/lab.h"
#include "lab/print.h"
#include "lab/results.h"

/* One screen about a comparison: a line per task, how far it is, and who leads. */

enum { NAMED = 3, SHOWN = 2048 };

typedef struct ranked {
    const char *scheme;
    double value;
} ranked;

/* The best plain schemes of a task at its trained length, best first; returns how many. */
static int rank_task(const lab_results *r, int32_t task, const lab_subject *subject,
                     ranked best[NAMED])
{
    const int64_t length = lab_length(r, task);
    int count = 0;
    for (size_t s = 0; s < r->scheme_count; s++) {
        const double value = lab_mean(r, task, (int32_t)s, subject->metric, length);
        if (!lab_is_plain(r->schemes[s]) || isnan(value)) continue;
        int at = count;
        while (at > 0 && (subject->lower ? value < best[at - 1].value : value > best[at - 1].value))
            at--;
        for (int i = count < NAMED ? count : NAMED - 1; i > at; i--) best[i] = best[i - 1];
        if (at < NAMED) best[at] = (ranked){r->schemes[s], value};
        if (count < NAMED) count++;
    }
    return count;
}

static void show_task(const lab_results *r, int32_t task, const lab_subject *subject,
                      plot_text *out)
{
    ranked best[NAMED];
    int64_t runs = 0, finished = 0, steps = 0, reached = 0;
    for (size_t i = 0; i < r->run_count; i++) {
        if (r->runs[i].task != task) continue;
        runs++;
        finished += r->runs[i].finished;
        steps += r->runs[i].steps;
        reached += r->runs[i].reached;
    }
    lab_print(out, "%-12s %4" PRId64 " of %4" PRId64 " runs, %3.0f %% of the steps  ",
              r->tasks[task], finished, runs,
              steps > 0 ? 100.0 * (double)reached / (double)steps : 100.0);
    const int count = rank_task(r, task, subject, best);
    if (count > 0) lab_print(out, "%s at %" PRId64 ": ", subject->metric, lab_length(r, task));
    for (int i = 0; i < count; i++)
        lab_print(out, "%s%s %.3g", i > 0 ? ", " : "", best[i].scheme, best[i].value);
    plot_char(out, '\n');
}

/* Text of a file, fit for a terminal. */
static void show_text(plot_text *out, const char *before, const lab_record *record,
                      const char *name)
{
    char escaped[SHOWN];
    const char *text = lab_record_text(record, name);
    plot_puts(out, before);
    plot_puts(out, locus_escape(escaped, sizeof escaped, text, strlen(text)));
}

static void show_all(const lab_results *r, plot_text *out)
{
    show_text(out, "", &r->settings, "profile");
    lab_print(out, "%s%zu runs, %zu finished",
              lab_record_text(&r->settings, "profile")[0] != '\0' ? ": " : "", r->run_count,
              r->finished);
    show_text(out, "; ", &r->run, "cpu");
    show_text(out, ", ", &r->run, "isa");
    show_text(out, ", locus ", &r->run, "version");
    plot_char(out, '\n');
    for (size_t i = 0; lab_subject_at(i) != NULL; i++) {
        const int32_t task = lab_task_index(r, lab_subject_at(i)->name);
        if (task >= 0) show_task(r, task, lab_subject_at(i), out);
    }
    if (r->finished < r->run_count && lab_record_text(&r->settings, "command")[0] != '\0') {
        show_text(out, "go on: ", &r->settings, "command");
        plot_char(out, '\n');
    }
}

locus_status lab_show(const char *folder, locus_text *text, locus_error *error)
{
    lab_results results;
    plot_text out = {.to = text};
    LOCUS_TRY(lab_results_read(&results, folder, error));
    show_all(&results, &out);
    lab_results_free(&results);
    return out.failed ? locus_fail(error, LOCUS_ERR_MEMORY, "no memory to show it") : LOCUS_OK;
}
