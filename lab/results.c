/* SPDX-License-Identifier: Apache-2.0 */
/* A comparison as it is asked about: by task, scheme, metric, length, seed. */
#include "lab/results.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "plot/text.h"

enum { TESTED = 64 }; /* lengths of one task */

static int32_t index_of(char (*names)[LAB_NAME], size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return (int32_t)i;
    return -1;
}

int32_t lab_name_add(char (*names)[LAB_NAME], size_t *count, size_t most, const char *name)
{
    const int32_t known = index_of(names, *count, name);
    if (known >= 0 || *count == most) return known;
    snprintf(names[*count], LAB_NAME, "%s", name);
    return (int32_t)(*count)++;
}

int32_t lab_task_index(const lab_results *r, const char *name)
{
    return index_of(r->tasks, r->task_count, name);
}

int32_t lab_scheme_index(const lab_results *r, const char *name)
{
    return index_of(r->schemes, r->scheme_count, name);
}

int32_t lab_metric_index(const lab_results *r, const char *name)
{
    return index_of(r->metrics, r->metric_count, name);
}

/* The first value that does not come before (task, scheme, metric, length, seed). */
static size_t lower_bound(const lab_results *r, const lab_value *key)
{
    size_t low = 0, high = r->value_count;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        const lab_value *v = &r->values[middle];
        const int before = v->task != key->task       ? v->task < key->task
                           : v->scheme != key->scheme ? v->scheme < key->scheme
                           : v->metric != key->metric ? v->metric < key->metric
                           : v->length != key->length ? v->length < key->length
                                                      : v->seed < key->seed;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const lab_value *lab_find(const lab_results *r, int32_t task, int32_t scheme, const char *metric,
                          int64_t length, int32_t seed)
{
    const lab_value key = {.task = task,
                           .scheme = scheme,
                           .metric = lab_metric_index(r, metric),
                           .seed = seed,
                           .length = length};
    const size_t at = lower_bound(r, &key);
    if (task < 0 || scheme < 0 || key.metric < 0 || at == r->value_count) return NULL;
    const lab_value *v = &r->values[at];
    const int same = v->task == task && v->scheme == scheme && v->metric == key.metric &&
                     v->length == length && v->seed == seed;
    return same ? v : NULL;
}

double lab_mean(const lab_results *r, int32_t task, int32_t scheme, const char *metric,
                int64_t length)
{
    const lab_value *v = lab_find(r, task, scheme, metric, length, LAB_MEAN);
    return v != NULL ? v->value : NAN;
}

double lab_whole(const lab_results *r, int32_t task, int32_t scheme, const char *metric)
{
    size_t count;
    const lab_value *v = lab_range(r, task, scheme, metric, &count);
    for (size_t i = 0; i < count; i++)
        if (v[i].seed == LAB_MEAN) return v[i].value;
    return NAN;
}

const lab_value *lab_range(const lab_results *r, int32_t task, int32_t scheme, const char *metric,
                           size_t *count)
{
    const lab_value from = {.task = task,
                            .scheme = scheme,
                            .metric = lab_metric_index(r, metric),
                            .seed = INT32_MIN,
                            .length = INT64_MIN};
    lab_value to = from;
    to.metric++;
    *count = 0;
    if (task < 0 || scheme < 0 || from.metric < 0) return NULL;
    const size_t first = lower_bound(r, &from);
    *count = lower_bound(r, &to) - first;
    return &r->values[first];
}

int64_t lab_length(const lab_results *r, int32_t task)
{
    for (size_t i = 0; i < r->run_count; i++)
        if (r->runs[i].task == task && r->runs[i].length > 0) return r->runs[i].length;
    return 0;
}

size_t lab_lengths(const lab_results *r, int32_t task, const char *metric, int64_t *out,
                   size_t most)
{
    size_t found = 0;
    for (int32_t s = 0; s < (int32_t)r->scheme_count; s++) {
        size_t count;
        const lab_value *v = lab_range(r, task, s, metric, &count);
        for (size_t i = 0; i < count; i++) { /* sorted insertion of what is new */
            size_t at = 0;
            while (at < found && out[at] < v[i].length) at++;
            if ((at < found && out[at] == v[i].length) || found == most) continue;
            memmove(out + at + 1, out + at, (found - at) * sizeof *out);
            out[at] = v[i].length;
            found++;
        }
    }
    return found;
}

int64_t lab_length_near(const lab_results *r, const char *task, const char *metric, double factor)
{
    int64_t lengths[TESTED], best = LAB_NO_LENGTH;
    const int32_t t = lab_task_index(r, task);
    const size_t count = t >= 0 ? lab_lengths(r, t, metric, lengths, TESTED) : 0;
    const double wanted = t >= 0 ? factor * (double)lab_length(r, t) : 0;
    for (size_t i = 0; i < count; i++) {
        const double off = fabs((double)lengths[i] - wanted);
        if (off <= 0.08 * wanted && (best < 0 || off < fabs((double)best - wanted)))
            best = lengths[i];
    }
    return best;
}

int lab_is_plain(const char *scheme) { return strchr(scheme, '+') == NULL; }

int lab_is_ranked(const lab_results *r, int32_t task, int32_t scheme)
{
    for (size_t i = 0; task >= 0 && lab_subject_at(i) != NULL; i++)
        if (strcmp(lab_subject_at(i)->name, r->tasks[task]) == 0 && !lab_subject_at(i)->exact)
            return 1;
    size_t count, seeds = 0;
    const int64_t inside = task >= 0 ? lab_length(r, task) : 0;
    const lab_value *v = lab_range(r, task, scheme, "em", &count);
    for (size_t i = 0; i < count; i++) {
        if (v[i].length != inside || v[i].seed == LAB_MEAN) continue;
        if (!(v[i].value >= LAB_INSIDE)) return 0;
        seeds++;
    }
    return seeds > 0;
}

/* ---- results.csv ---- */

/* As it is printed: task, scheme, seed (the mean last), length, metric. */
static int by_row(const void *left, const void *right)
{
    const lab_value *a = left, *b = right;
    const uint32_t seed_a = (uint32_t)a->seed, seed_b = (uint32_t)b->seed;
    if (a->task != b->task) return a->task < b->task ? -1 : 1;
    if (a->scheme != b->scheme) return a->scheme < b->scheme ? -1 : 1;
    if (seed_a != seed_b) return seed_a < seed_b ? -1 : 1;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->metric < b->metric ? -1 : a->metric > b->metric;
}

static void print_row(plot_text *text, const lab_results *r, const lab_value *v)
{
    plot_puts(text, r->tasks[v->task]);
    plot_char(text, ',');
    plot_puts(text, r->schemes[v->scheme]);
    plot_char(text, ',');
    if (v->seed == LAB_MEAN)
        plot_puts(text, "mean");
    else
        plot_integer(text, v->seed);
    plot_char(text, ',');
    if (v->length != LAB_NO_LENGTH) plot_integer(text, v->length);
    plot_char(text, ',');
    plot_puts(text, r->metrics[v->metric]);
    plot_char(text, ',');
    if (isnan(v->value))
        plot_puts(text, "undefined");
    else
        plot_exact(text, v->value);
    plot_char(text, '\n');
}

void lab_results_csv(const lab_results *r, locus_text *out)
{
    plot_text text = {.to = out};
    lab_value *rows = locus_allocate(NULL, r->value_count + 1, sizeof *rows);
    plot_puts(&text, "task,scheme,seed,length,metric,value\n");
    if (rows == NULL) return;
    if (r->value_count > 0) memcpy(rows, r->values, r->value_count * sizeof *rows);
    if (r->value_count > 0) qsort(rows, r->value_count, sizeof *rows, by_row);
    for (size_t i = 0; i < r->value_count; i++) print_row(&text, r, &rows[i]);
    locus_release(NULL, rows);
}
