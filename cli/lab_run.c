/* SPDX-License-Identifier: Apache-2.0 */
/* locus lab run: a comparison, with an end in sight. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "lab.h"

typedef struct viewer {
    int terminal;
    double last; /* seconds, of the last line */
} viewer;

static void print_left(double seconds)
{
    if (seconds < 0.0)
        fprintf(stderr, "time left not known yet");
    else if (seconds < 100.0)
        fprintf(stderr, "%.0f s left", seconds);
    else
        fprintf(stderr, "%.0f min left", seconds / 60.0);
}

/* On a terminal, one line that changes, and a line for each run that ended. */
static void show(void *context, const lab_standing *s)
{
    viewer *v = context;
    const double time = lab_now();
    if (!v->terminal || (!s->ended && time - v->last < 0.2)) return;
    v->last = time;
    fprintf(stderr, "\r\033[K");
    if (s->ended) {
        fprintf(stderr, "%s: done; %" PRId64 " of %" PRId64 " runs, ", s->name, s->finished,
                s->runs);
        print_left(s->finished < s->runs ? s->seconds_left : 0.0);
        fprintf(stderr, "\n");
        return;
    }
    fprintf(stderr, "%3.0f %%, %" PRId64 " of %" PRId64 " runs, ", 100.0 * s->part, s->finished,
            s->runs);
    print_left(s->seconds_left);
    fprintf(stderr, "; %s: step %" PRId64 " of %" PRId64 ", loss %.3f, %.0f steps/s", s->name,
            s->progress->step, s->progress->steps, s->progress->loss,
            s->progress->steps_per_second);
}

int lab_run_action(const lab_values *values)
{
    viewer v = {.terminal = isatty(STDERR_FILENO)};
    const lab_onlooker onlooker = {
        .interrupted = &lab_interrupted, .standing = show, .note = lab_show_note, .context = &v};
    const lab_comparison comparison = {.profile = values->profile,
                                       .tasks = values->tasks,
                                       .schemes = values->schemes,
                                       .seeds = values->seeds,
                                       .sweep_rate = values->sweep_rate,
                                       .jobs = values->jobs,
                                       .settings = lab_settings_of(values)};
    locus_error error = {""};
    lab_outcome outcome = LAB_FINISHED;
    if (values->profile == NULL) return lab_missing("--profile");
    if (values->output == NULL) return lab_missing("-o DIR");
    lab_watch_signals();
    const locus_status status =
        lab_compare(&comparison, values->output, lab_ranks, &onlooker, &outcome, &error);
    if (v.terminal) fprintf(stderr, "\n");
    if (status != LOCUS_OK) return lab_failed(status, &error);
    if (!lab_crew_leads(lab_ranks)) return CLI_DONE;
    if (outcome == LAB_FINISHED) return lab_write_report(values->output);
    if (outcome == LAB_STOPPED) return CLI_DONE;
    fprintf(stderr, "locus lab: saved; the same command goes on\n");
    return LAB_EXIT_INTERRUPTED;
}
