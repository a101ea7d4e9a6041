/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_LAB_H
#define LOCUS_LAB_LAB_H

/* The lab as the command line sees it: one training run, its batches, a comparison of runs. */

#include <locus/plot.h>

#include <signal.h>

#include "lab/crew.h"

/* Settings of one run; texts are borrowed. 0 or NULL: the default, but for those that say
 * otherwise. lab_settings_init, fields, then the call. */
typedef struct lab_settings {
    const char *task;      /* "copy" or "T1"; required                                    */
    const char *scheme;    /* required                                                    */
    const char *text;      /* file for text and masked; NULL: the novels inside           */
    const char *terms;     /* deberta: "c2p,p2c", "c2p", "p2c", "none"                    */
    const char *positions; /* sinusoidal, learned: "plain", "offset", "subset:M"        */
    int64_t layers, width, heads, batch, length;
    int64_t steps;  /* -1: the default                                                 */
    int64_t clip;   /* shaw; -1: the default                                           */
    int64_t memory; /* transformer_xl on text: rows; 0: none                           */
    double rate;    /* at its peak                                                     */
    uint64_t seed;
    uint32_t threads;   /* does not show in any bit                                    */
    int64_t save_every; /* steps between checkpoints                                   */
    int64_t stop;       /* save after this step and end; 0: at the last                */
} lab_settings;

void lab_settings_init(lab_settings *settings);

/* How far a run is. */
typedef struct lab_progress {
    const char *name; /* of the run */
    int64_t step, steps;
    double loss, validation; /* validation: the last one, below 0: none yet */
    double steps_per_second, seconds_left;
} lab_progress;

/* Who looks on. */
typedef struct lab_watch {
    const volatile sig_atomic_t *interrupted; /* not 0: save and end; NULL: nobody asks    */
    void (*progress)(void *context, const lab_progress *progress); /* NULL: nobody looks    */
    void (*note)(void *context, const char *line);                 /* warnings; may be NULL */
    void *context;
} lab_watch;

typedef enum lab_outcome { LAB_FINISHED, LAB_STOPPED, LAB_INTERRUPTED } lab_outcome;

/* Train into `folder`, which is made where it is not there. A folder that holds a run is refused
 * without `resume`, and with other settings than its own. The ranks of `crew` share each batch; rank
 * 0 alone has the folder, and the bits are those of one process. Collective. */
locus_status lab_train(const lab_settings *settings, const char *folder, int resume,
                       const lab_crew *crew, const lab_watch *watch, lab_outcome *outcome,
                       locus_error *error);

/* The batches of steps from .. from + count - 1 as tokens.S, targets.S, weight.S. */
locus_status lab_batches(const lab_settings *settings, int64_t from, int64_t count,
                         const char *path, locus_error *error);

/* The model of the run in `from` as a folder `to` that locus_model_open takes; of a comparison one
 * folder per scheme, TO/SCHEME, for `task` (NULL: text, or its first), from the first seed. half 1:
 * weights are rounded to 16 bits. *count: folders that were written. */
locus_status lab_export(const char *from, const char *task, const char *to, int half, int *count,
                        locus_error *error);

/* ---- comparisons ---- */

/* What is compared; texts are borrowed. */
typedef struct lab_comparison {
    const char *profile;   /* "quick", "standard", "full"                              */
    const char *tasks;     /* names or T numbers with commas between; NULL: the profile's */
    const char *schemes;   /* likewise; NULL: the fourteen                              */
    int64_t seeds;         /* seeds 1 .. seeds; 0: the profile's                        */
    int sweep_rate;        /* 1: every run also with half and with twice the rate       */
    uint32_t jobs;         /* runs side by side; 0: one per core                        */
    lab_settings settings; /* what is given here holds for all runs                   */
} lab_comparison;

/* How far a comparison is. */
typedef struct lab_standing {
    int64_t runs, finished, failed;
    double part;         /* of the work, 0 to 1                    */
    double seconds_left; /* below 0: not known yet                 */
    const char *name;    /* of the run that moved: "copy/t5/seed1" */
    int ended;           /* 1: it has just ended                   */
    const lab_progress *progress;
} lab_standing;

typedef struct lab_onlooker {
    const volatile sig_atomic_t *interrupted;
    void (*standing)(void *context, const lab_standing *standing);
    void (*note)(void *context, const char *line);
    void *context;
} lab_onlooker;

/* Train everything that is not finished in `folder`, in processes side by side: those that this
 * one starts, or the ranks of `crew`, which all have to see the folder. Collective. */
locus_status lab_compare(const lab_comparison *comparison, const char *folder, const lab_crew *crew,
                         const lab_onlooker *onlooker, lab_outcome *outcome, locus_error *error);

/* What is in `folder`, how far it is, what it said: one screen of text, freed by the caller. */
locus_status lab_show(const char *folder, locus_text *text, locus_error *error);

#endif
