/* SPDX-License-Identifier: Apache-2.0 */
/* locus lab train and batches: one run, and the batches that it reads. */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "lab.h"
#include "lab/lab.h"
#include "text.h"

volatile sig_atomic_t lab_interrupted;

static void on_interrupt(int number)
{
    (void)number;
    lab_interrupted = 1;
}

void lab_watch_signals(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

lab_settings lab_settings_of(const lab_values *values)
{
    lab_settings settings;
    lab_settings_init(&settings);
    settings.task = values->task;
    settings.scheme = values->scheme;
    settings.text = values->text;
    settings.terms = values->terms;
    settings.positions = values->positions;
    settings.layers = values->layers;
    settings.width = values->width;
    settings.heads = values->heads;
    settings.batch = values->batch;
    settings.length = values->length;
    if (values->steps != LAB_NOT_GIVEN) settings.steps = values->steps;
    if (values->clip != LAB_NOT_GIVEN) settings.clip = values->clip;
    settings.memory = values->memory;
    settings.rate = values->rate;
    settings.seed = values->seed;
    settings.threads = values->threads;
    settings.save_every = values->save_every;
    settings.stop = values->stop;
    return settings;
}

/* Settings that make no sense are the command line's fault, whoever notices. */
int lab_failed(locus_status status, const locus_error *error)
{
    if (status == LOCUS_ERR_OPTION || status == LOCUS_ERR_SCHEME)
        return cli_complain("lab", CLI_USAGE, "%s", error->text);
    return cli_report("lab", status, NULL, error);
}

int lab_missing(const char *what)
{
    return cli_complain("lab", CLI_USAGE, "%s is missing; see \"locus lab --help\"", what);
}

/* ---- train ---- */

typedef struct viewer {
    int terminal;
    double last; /* seconds, of the last line */
} viewer;

double lab_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/* On a terminal, several times a second, in one line. */
static void show_progress(void *context, const lab_progress *p)
{
    viewer *v = context;
    const int last = p->step == p->steps;
    const double time = lab_now();
    if (!v->terminal || (!last && time - v->last < 0.2)) return;
    v->last = time;
    fprintf(stderr,
            "\r\033[K%s: step %" PRId64 " of %" PRId64 ", loss %.4f, %.1f steps/s, %.0f s left%s",
            p->name, p->step, p->steps, p->loss, p->steps_per_second, p->seconds_left,
            last ? "\n" : "");
}

void lab_show_note(void *context, const char *line)
{
    (void)context;
    char quoted[640];
    fprintf(stderr, "locus lab: %s\n", text_quote(quoted, sizeof quoted, line));
}

int lab_train_action(const lab_values *values)
{
    viewer v = {.terminal = isatty(STDERR_FILENO)};
    const lab_watch watch = {.interrupted = &lab_interrupted,
                             .progress = show_progress,
                             .note = lab_show_note,
                             .context = &v};
    locus_error error = {""};
    lab_outcome outcome = LAB_FINISHED;
    if (values->task == NULL) return lab_missing("--task");
    if (values->scheme == NULL) return lab_missing("--scheme");
    if (values->output == NULL) return lab_missing("-o DIR");
    const lab_settings settings = lab_settings_of(values);
    lab_watch_signals();
    const locus_status status =
        lab_train(&settings, values->output, values->resume, lab_ranks, &watch, &outcome, &error);
    if (status != LOCUS_OK) return lab_failed(status, &error);
    if (outcome != LAB_INTERRUPTED) return CLI_DONE;
    fprintf(stderr, "%slocus lab: saved; the same command with --resume goes on\n",
            v.terminal ? "\n" : "");
    return LAB_EXIT_INTERRUPTED;
}

/* ---- batches ---- */

int lab_batches_action(const lab_values *values)
{
    locus_error error = {""};
    if (values->task == NULL) return lab_missing("--task");
    if (values->output == NULL) return lab_missing("-o FILE");
    lab_settings settings = lab_settings_of(values);
    if (settings.scheme == NULL) settings.scheme = settings.memory > 0 ? "transformer_xl" : "none";
    const locus_status status =
        lab_batches(&settings, values->from, values->count, values->output, &error);
    return status == LOCUS_OK ? CLI_DONE : lab_failed(status, &error);
}
