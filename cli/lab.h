/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LAB_H
#define CLI_LAB_H

/* locus lab: what its actions share. */

#include <signal.h>

#include "cli.h"
#include "lab/lab.h"

typedef struct lab_values {
    const char *action, *task, *scheme, *text, *output, *terms, *positions;
    const char *profile, *tasks, *schemes, *dtype;
    cli_words folders;
    uint32_t layers, width, heads, batch, steps, length, seed, seeds, clip, memory, threads;
    uint32_t save_every, stop, from, count, jobs;
    double rate;
    int resume, sweep_rate;
} lab_values;

/* The ranks that all actions work with from now on. */
void lab_work_with(const lab_crew *crew);
extern const lab_crew *lab_ranks; /* NULL: this process alone */

/* Values of options that were not given. */
#define LAB_NOT_GIVEN UINT32_MAX

/* Exit code of what Ctrl-C ended. */
enum { LAB_EXIT_INTERRUPTED = 130 };

extern volatile sig_atomic_t lab_interrupted; /* Ctrl-C, or a request to end */
void lab_watch_signals(void);
double lab_now(void); /* seconds */

lab_settings lab_settings_of(const lab_values *values);
int lab_failed(locus_status status, const locus_error *error);
int lab_missing(const char *what);
void lab_show_note(void *context, const char *line);

int lab_write_report(const char *folder);

int lab_run_action(const lab_values *values);
int lab_train_action(const lab_values *values);
int lab_report_action(const lab_values *values);
int lab_show_action(const lab_values *values);
int lab_batches_action(const lab_values *values);
int lab_export_action(const lab_values *values);

#endif
