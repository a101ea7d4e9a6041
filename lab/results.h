/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_RESULTS_H
#define LOCUS_LAB_RESULTS_H

/* The numbers of a comparison: DIR/lab.json and DIR/runs/TASK/SCHEME/seedN, of which each holds
 * run.json, log.jsonl and, once it has finished, metrics.csv and cost.csv. */

#include "lab/files.h"

enum {
    LAB_NAME = 64,             /* bytes of a task, a scheme with its variant, a metric          */
    LAB_RUNS = 4096,           /* at most                                                       */
    LAB_VALUES = 1 << 20,      /* numbers in all, at most                                       */
    LAB_METRICS = 8192,        /* names of metrics, at most                                     */
    LAB_POINTS = 48,           /* of a learning curve: losses are averaged into so many         */
    LAB_TABLE_BYTES = 1 << 24, /* of a metrics.csv                                           */
    LAB_LOG_BYTES = 1 << 28,   /* of a log.jsonl                                             */
};
#define LAB_NO_LENGTH (-1) /* of a number that belongs to the whole run */
#define LAB_MEAN (-1)      /* instead of a seed                         */
#define LAB_INSIDE 0.95    /* exact match at L from which on a run is ranked */

/* What a task measures, and how a report speaks of it. */
typedef struct lab_subject {
    const char *name;   /* "copy"                                             */
    const char *title;  /* "Copy"                                             */
    const char *metric; /* the one that is ranked: "em"                       */
    const char *words;  /* that metric in words                               */
    int lower;          /* 1: less is better                                  */
    int exact;          /* 1: exact match; below 0.95 at L nothing is ranked  */
    const char *about;  /* a sentence or two                                  */
} lab_subject;
const lab_subject *lab_subject_at(size_t index); /* NULL beyond the end */

typedef struct lab_value {
    int32_t task, scheme, metric; /* indices of names below */
    int32_t seed;                 /* or LAB_MEAN            */
    int64_t length;               /* or LAB_NO_LENGTH       */
    double value;                 /* NaN: undefined         */
} lab_value;

typedef struct lab_point {
    double step, seconds, loss;
} lab_point;

/* One run, finished or not. */
typedef struct lab_run {
    int32_t task, scheme, seed;
    int finished;          /* metrics.csv is there                               */
    int64_t length, steps; /* L or n, and the budget; 0: not said                */
    int64_t reached;       /* the last step of the log                           */
    lab_point *points;     /* the learning curve: training losses, averaged      */
    size_t point_count;
    double *tests; /* [2 * test_count]: step, validation                 */
    size_t test_count;
} lab_run;

typedef struct lab_results {
    char folder[LAB_PATH];
    lab_record settings; /* lab.json, empty where there is none                    */
    lab_record run;      /* run.json of the first run: machine, commit             */
    char text_sum[16];   /* CRC-32 of the text that runs read, "" where none does  */
    char (*tasks)[LAB_NAME], (*schemes)[LAB_NAME], (*metrics)[LAB_NAME];
    size_t task_count, scheme_count, metric_count;
    lab_run *runs;
    size_t run_count, finished;
    lab_value *values; /* sorted by task, scheme, metric, length, seed; means are seed -1 */
    size_t value_count, value_room;
} lab_results;

/* Everything, with means and derived numbers. What is not a comparison, or breaks a rule of its
 * files, is refused with a line that names the file. */
locus_status lab_results_read(lab_results *results, const char *folder, locus_error *error);
void lab_results_free(lab_results *results);

/* Indices in the order of the report; -1: no run has it. */
int32_t lab_task_index(const lab_results *results, const char *name);
int32_t lab_scheme_index(const lab_results *results, const char *name);
int32_t lab_metric_index(const lab_results *results, const char *name);

/* The index of a name, added where it is new; -1: there are `most`. */
int32_t lab_name_add(char (*names)[LAB_NAME], size_t *count, size_t most, const char *name);

/* NULL: there is no such number. */
const lab_value *lab_find(const lab_results *results, int32_t task, int32_t scheme,
                          const char *metric, int64_t length, int32_t seed);
/* The mean over seeds, NaN: none, or undefined. */
double lab_mean(const lab_results *results, int32_t task, int32_t scheme, const char *metric,
                int64_t length);
/* The mean of a number that belongs to the whole run, at whatever length it stands; NaN: none. */
double lab_whole(const lab_results *results, int32_t task, int32_t scheme, const char *metric);
/* All numbers of a task, a scheme and a metric: *count of them, by length, then seed. */
const lab_value *lab_range(const lab_results *results, int32_t task, int32_t scheme,
                           const char *metric, size_t *count);

/* The training length of a task: L, or n of text; 0: not known. */
int64_t lab_length(const lab_results *results, int32_t task);
/* Lengths at which some scheme has `metric`, ascending, at most `most`; returns how many. */
size_t lab_lengths(const lab_results *results, int32_t task, const char *metric, int64_t *out,
                   size_t most);
/* The test length next to factor * L, within 8 %, or LAB_NO_LENGTH. */
int64_t lab_length_near(const lab_results *results, const char *task, const char *metric,
                        double factor);
/* Is this a scheme itself, not a variant of one (no '+')? */
int lab_is_plain(const char *scheme);
/* Is the exact match at L at least 0.95 in every seed, or is exact match not what the task measures? */
int lab_is_ranked(const lab_results *results, int32_t task, int32_t scheme);

/* results.csv */
void lab_results_csv(const lab_results *results, locus_text *out);

#endif
