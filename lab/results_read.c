/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison from its folder: names are judged before they are used, numbers are strict. */
#include "lab/results.h"

#include <inttypes.h>
#include <locus/scheme.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/number.h"
#include "io/system.h"
#include "lab/derive.h"
#include "lab/run_log.h"

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the comparison");
}

/* ---- names ---- */

static int is_word(const char *text, const char *also)
{
    const size_t length = strlen(text);
    const size_t good =
        strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == length
            ? length
            : strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_+-.") * (also[0] != '\0');
    return length > 0 && length < LAB_NAME && good == length;
}

static int is_task(const char *name)
{
    for (size_t i = 0; lab_subject_at(i) != NULL; i++)
        if (strcmp(lab_subject_at(i)->name, name) == 0) return 1;
    return 0;
}

/* A scheme of the library, or one with '+' and what varies behind it. */
static int is_scheme(const char *name)
{
    char base[LAB_NAME];
    if (!is_word(name, "+-.")) return 0;
    snprintf(base, sizeof base, "%.*s", (int)strcspn(name, "+"), name);
    return locus_scheme_find(base) != NULL && name[strlen(name) - 1] != '+';
}

/* "seed3": 3; -1: not such a name. */
static int32_t seed_of(const char *name)
{
    uint64_t seed = 0;
    if (strncmp(name, "seed", 4) != 0 || !locus_parse_unsigned(name + 4, &seed)) return -1;
    return seed <= INT32_MAX ? (int32_t)seed : -1;
}

/* Order of the report: tasks as they are listed, schemes as the library lists them, a variant
 * behind its scheme and after those with less in common. */
static size_t task_rank(const char *name)
{
    size_t i = 0;
    while (lab_subject_at(i) != NULL && strcmp(lab_subject_at(i)->name, name) != 0) i++;
    return i;
}

static size_t scheme_rank(const char *name)
{
    const size_t length = strcspn(name, "+");
    size_t i = 0;
    for (; locus_scheme_at(i) != NULL; i++) {
        const char *known = locus_scheme_at(i)->name;
        if (strlen(known) == length && strncmp(known, name, length) == 0) break;
    }
    return i;
}

static int by_task(const void *a, const void *b)
{
    const size_t left = task_rank(a), right = task_rank(b);
    return left < right ? -1 : left > right;
}

/* Numbers inside names count as numbers: clip2 before clip16. */
static int by_scheme(const void *a, const void *b)
{
    const char *left = a, *right = b;
    const size_t rank_left = scheme_rank(left), rank_right = scheme_rank(right);
    if (rank_left != rank_right) return rank_left < rank_right ? -1 : 1;
    while (*left != '\0' && *left == *right && (*left < '0' || *left > '9')) left++, right++;
    const long n = strtol(left, NULL, 10), m = strtol(right, NULL, 10);
    return n != m ? (n < m ? -1 : 1) : strcmp(left, right);
}

/* ---- tables ---- */

static locus_status add_value(lab_results *r, const lab_value *value, locus_error *error)
{
    if (r->value_count == LAB_VALUES)
        return locus_fail(error, LOCUS_ERR_FORMAT, "found more than %d numbers", LAB_VALUES);
    if (r->value_count == r->value_room) {
        lab_value *moved = lab_grow(r->values, r->value_count, sizeof *moved, &r->value_room);
        if (moved == NULL) return no_memory(error);
        r->values = moved;
    }
    r->values[r->value_count++] = *value;
    return LOCUS_OK;
}

/* Fields of a line, cut at commas in place; 0: another number of them. */
static int cut_line(char *line, char **fields, int count)
{
    for (int i = 0; i < count; i++) {
        fields[i] = line;
        char *comma = strchr(line, ',');
        if ((comma == NULL) != (i == count - 1)) return 0;
        if (comma == NULL) return 1;
        *comma = '\0';
        line = comma + 1;
    }
    return 0;
}

static int read_length(const char *text, int64_t *length)
{
    *length = LAB_NO_LENGTH;
    return *text == '\0' || (locus_parse_integer(text, length) && *length >= 0);
}

static int read_number(const char *text, double *value)
{
    *value = NAN;
    return strcmp(text, "undefined") == 0 || locus_parse_real(text, value);
}

/* One line of metrics.csv (three fields) or cost.csv (two). */
static locus_status read_row(lab_results *r, const lab_run *run, char *line, int fields,
                             size_t number, locus_error *error)
{
    char *field[3];
    lab_value value = {
        .task = run->task, .scheme = run->scheme, .seed = run->seed, .length = LAB_NO_LENGTH};
    const int cut = cut_line(line, field, fields);
    if (!cut || (fields == 3 && !read_length(field[0], &value.length)) ||
        !is_word(field[fields - 2], "") || !read_number(field[fields - 1], &value.value))
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "line %zu: expected %sa metric and a number or \"undefined\"", number,
                          fields == 3 ? "a length, " : "");
    value.metric = lab_name_add(r->metrics, &r->metric_count, LAB_METRICS, field[fields - 2]);
    if (value.metric < 0)
        return locus_fail(error, LOCUS_ERR_FORMAT, "found more than %d metrics", LAB_METRICS);
    return add_value(r, &value, error);
}

static locus_status read_table(lab_results *r, const lab_run *run, const char *path,
                               const char *header, int fields, locus_error *error)
{
    char *text = NULL;
    size_t bytes = 0, number = 0;
    LOCUS_TRY(lab_file_read(&text, &bytes, path, LAB_TABLE_BYTES, error));
    char *const past = text + bytes;
    locus_status status = LOCUS_OK;
    for (char *line = text, *end; status == LOCUS_OK && line < past; line = end) {
        char *newline = memchr(line, '\n', (size_t)(past - line));
        end = newline != NULL ? newline + 1 : past;
        if (newline != NULL) *newline = '\0';
        if (newline != NULL && newline > line && newline[-1] == '\r') newline[-1] = '\0';
        if (++number > 1)
            status = read_row(r, run, line, fields, number, error);
        else if (strcmp(line, header) != 0)
            status = locus_fail(error, LOCUS_ERR_FORMAT, "line 1: expected \"%s\"", header);
    }
    if (status == LOCUS_OK && number == 0)
        status = locus_fail(error, LOCUS_ERR_FORMAT, "is empty, expected \"%s\"", header);
    locus_release(NULL, text);
    return status == LOCUS_OK ? LOCUS_OK : locus_fail_in(error, status, path);
}

/* ---- runs ---- */

/* 0, as if it were not said, for what no run has. */
static int64_t read_count(const lab_record *record, const char *name)
{
    const uint64_t found = lab_record_number(record, name);
    return found <= 1000000000000 ? (int64_t)found : 0;
}

static locus_status read_settings(lab_results *r, lab_run *run, const char *path,
                                  locus_error *error)
{
    lab_record record;
    LOCUS_TRY(lab_record_read(&record, path, error));
    run->length = read_count(&record, "length");
    run->steps = read_count(&record, "steps");
    const char *sum = lab_record_text(&record, "text_sum");
    if (r->text_sum[0] == '\0' && strspn(sum, "0") < strlen(sum))
        snprintf(r->text_sum, sizeof r->text_sum, "%s", sum);
    if (r->run.count == 0)
        r->run = record;
    else
        lab_record_free(&record);
    return LOCUS_OK;
}

static locus_status read_run(lab_results *r, lab_run *run, const char *folder, locus_error *error)
{
    char settings[LAB_PATH], log[LAB_PATH], metrics[LAB_PATH], cost[LAB_PATH];
    if (!lab_path(settings, folder, "run.json") || !lab_path(log, folder, "log.jsonl") ||
        !lab_path(metrics, folder, "metrics.csv") || !lab_path(cost, folder, "cost.csv"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    if (!locus_system_exists(settings)) return LOCUS_OK; /* begun, nothing written yet */
    LOCUS_TRY(read_settings(r, run, settings, error));
    if (locus_system_exists(log)) LOCUS_TRY(lab_log_read(run, log, error));
    run->finished = locus_system_exists(metrics);
    r->finished += (size_t)run->finished;
    if (run->finished) LOCUS_TRY(read_table(r, run, metrics, "length,metric,value", 3, error));
    if (run->finished && locus_system_exists(cost))
        LOCUS_TRY(read_table(r, run, cost, "metric,value", 2, error));
    return LOCUS_OK;
}

/* What a walk over the folders does with each run. */
typedef locus_status visit(lab_results *r, const char *task, const char *scheme, int32_t seed,
                           const char *folder, locus_error *error);

static locus_status walk_seeds(lab_results *r, const char *task, const char *scheme,
                               const char *folder, visit *each, locus_error *error)
{
    lab_list seeds;
    locus_status status = lab_list_read(&seeds, folder, error);
    for (size_t i = 0; status == LOCUS_OK && i < seeds.count; i++) {
        char path[LAB_PATH];
        const int32_t seed = seed_of(seeds.names[i]);
        if (seed < 0 || !lab_path(path, folder, seeds.names[i]))
            status =
                locus_fail(error, LOCUS_ERR_FORMAT, "%s: found an entry that is not seedN", folder);
        else
            status = each(r, task, scheme, seed, path, error);
    }
    lab_list_free(&seeds);
    return status;
}

static locus_status walk_schemes(lab_results *r, const char *task, const char *folder, visit *each,
                                 locus_error *error)
{
    lab_list schemes;
    locus_status status = lab_list_read(&schemes, folder, error);
    for (size_t i = 0; status == LOCUS_OK && i < schemes.count; i++) {
        char path[LAB_PATH];
        if (!is_scheme(schemes.names[i]) || !lab_path(path, folder, schemes.names[i]))
            status =
                locus_fail(error, LOCUS_ERR_FORMAT,
                           "%s: found an entry that is not a scheme or a variant of one", folder);
        else
            status = walk_seeds(r, task, schemes.names[i], path, each, error);
    }
    lab_list_free(&schemes);
    return status;
}

static locus_status walk(lab_results *r, visit *each, locus_error *error)
{
    char folder[LAB_PATH], path[LAB_PATH];
    lab_list tasks;
    if (!lab_path(folder, r->folder, "runs"))
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    locus_status status = lab_list_read(&tasks, folder, error);
    for (size_t i = 0; status == LOCUS_OK && i < tasks.count; i++) {
        if (!is_task(tasks.names[i]) || !lab_path(path, folder, tasks.names[i]))
            status = locus_fail(error, LOCUS_ERR_FORMAT, "%s: found an entry that is not a task",
                                folder);
        else
            status = walk_schemes(r, tasks.names[i], path, each, error);
    }
    lab_list_free(&tasks);
    return status;
}

/* First walk: names and how many runs. */
static locus_status count_run(lab_results *r, const char *task, const char *scheme, int32_t seed,
                              const char *folder, locus_error *error)
{
    (void)seed;
    if (++r->run_count > LAB_RUNS || lab_name_add(r->tasks, &r->task_count, LAB_RUNS, task) < 0 ||
        lab_name_add(r->schemes, &r->scheme_count, LAB_RUNS, scheme) < 0)
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s: found more than %d runs", folder, LAB_RUNS);
    return LOCUS_OK;
}

/* Second walk: the numbers. */
static locus_status take_run(lab_results *r, const char *task, const char *scheme, int32_t seed,
                             const char *folder, locus_error *error)
{
    lab_run *run = &r->runs[r->run_count++];
    *run = (lab_run){.task = lab_task_index(r, task),
                     .scheme = lab_scheme_index(r, scheme),
                     .seed = seed};
    return read_run(r, run, folder, error);
}

static locus_status read_all(lab_results *r, locus_error *error)
{
    char path[LAB_PATH];
    r->tasks = locus_allocate(NULL, LAB_RUNS, sizeof *r->tasks);
    r->schemes = locus_allocate(NULL, LAB_RUNS, sizeof *r->schemes);
    r->metrics = locus_allocate(NULL, LAB_METRICS, sizeof *r->metrics);
    r->runs = locus_allocate(NULL, LAB_RUNS, sizeof *r->runs);
    if (r->tasks == NULL || r->schemes == NULL || r->metrics == NULL || r->runs == NULL)
        return no_memory(error);
    LOCUS_TRY(walk(r, count_run, error));
    if (r->run_count == 0)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "%s: found no runs, expected runs/TASK/SCHEME/seedN as locus lab run "
                          "makes them",
                          r->folder);
    if (r->task_count > 0) qsort(r->tasks, r->task_count, sizeof *r->tasks, by_task);
    if (r->scheme_count > 0) qsort(r->schemes, r->scheme_count, sizeof *r->schemes, by_scheme);
    if (lab_path(path, r->folder, "lab.json") && locus_system_exists(path))
        LOCUS_TRY(lab_record_read(&r->settings, path, error));
    r->run_count = 0;
    LOCUS_TRY(walk(r, take_run, error));
    return lab_derive(r, add_value, error);
}

locus_status lab_results_read(lab_results *results, const char *folder, locus_error *error)
{
    *results = (lab_results){.run_count = 0};
    if (snprintf(results->folder, LAB_PATH, "%s", folder) >= LAB_PATH)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "the name of the folder is too long");
    const locus_status status = read_all(results, error);
    if (status != LOCUS_OK) lab_results_free(results);
    return status;
}

void lab_results_free(lab_results *r)
{
    for (size_t i = 0; r->runs != NULL && i < r->run_count && i < LAB_RUNS; i++) {
        locus_release(NULL, r->runs[i].points);
        locus_release(NULL, r->runs[i].tests);
    }
    locus_release(NULL, r->tasks);
    locus_release(NULL, r->schemes);
    locus_release(NULL, r->metrics);
    locus_release(NULL, r->runs);
    locus_release(NULL, r->values);
    lab_record_free(&r->settings);
    lab_record_free(&r->run);
    *r = (lab_results){.run_count = 0};
}
