/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/derive.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "lab/ranks.h"

static int by_key(const void *left, const void *right)
{
    const lab_value *a = left, *b = right;
    if (a->task != b->task) return a->task < b->task ? -1 : 1;
    if (a->scheme != b->scheme) return a->scheme < b->scheme ? -1 : 1;
    if (a->metric != b->metric) return a->metric < b->metric ? -1 : 1;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return a->seed < b->seed ? -1 : a->seed > b->seed;
}

static locus_status sort(lab_results *r, locus_error *error)
{
    if (r->value_count == 0) return LOCUS_OK;
    qsort(r->values, r->value_count, sizeof *r->values, by_key);
    for (size_t i = 1; i < r->value_count; i++) {
        const lab_value *v = &r->values[i];
        if (by_key(v - 1, v) == 0)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "%s/runs/%s/%s/seed%" PRId32 ": found %s at length %" PRId64 " twice",
                              r->folder, r->tasks[v->task], r->schemes[v->scheme], v->seed,
                              r->metrics[v->metric], v->length);
    }
    return LOCUS_OK;
}

/* ---- what is added: collected first, because searching needs the old order ---- */

typedef struct pending {
    lab_value *values;
    size_t count, room;
    int failed;
} pending;

static void push(pending *p, lab_value value)
{
    if (p->count == p->room) {
        lab_value *moved = lab_grow(p->values, p->count, sizeof *moved, &p->room);
        if (moved == NULL) {
            p->failed = 1;
            return;
        }
        p->values = moved;
    }
    p->values[p->count++] = value;
}

static int32_t metric(lab_results *r, const char *text)
{
    return lab_name_add(r->metrics, &r->metric_count, LAB_METRICS, text);
}

static void add_ratios(lab_results *r, pending *p)
{
    const int32_t task = lab_task_index(r, "text");
    const int64_t n = task >= 0 ? lab_length(r, task) : 0;
    const int32_t ratio = metric(r, "bpc_ratio");
    for (int32_t s = 0; n > 0 && ratio >= 0 && s < (int32_t)r->scheme_count; s++) {
        size_t count;
        const lab_value *v = lab_range(r, task, s, "bpc", &count);
        for (size_t i = 0; i < count; i++) {
            const lab_value *once = lab_find(r, task, s, "bpc", n, v[i].seed);
            lab_value added = v[i];
            added.metric = ratio;
            added.value = once != NULL ? v[i].value / once->value : NAN;
            if (once != NULL && v[i].length > n) push(p, added);
        }
    }
}

/* The validation loss at the end, NaN: none. */
static double last_test(const lab_run *run)
{
    return run->test_count > 0 ? run->tests[2 * run->test_count - 1] : NAN;
}

static const lab_run *run_of(const lab_results *r, int32_t task, int32_t scheme, int32_t seed)
{
    for (size_t i = 0; i < r->run_count; i++) {
        const lab_run *run = &r->runs[i];
        if (run->task == task && run->scheme == scheme && run->seed == seed && run->finished)
            return run;
    }
    return NULL;
}

static void add_steps(lab_results *r, pending *p)
{
    const int32_t task = lab_task_index(r, "masked"), learned = lab_scheme_index(r, "learned");
    const int32_t steps = metric(r, "steps_to_learned");
    for (size_t i = 0; task >= 0 && learned >= 0 && steps >= 0 && i < r->run_count; i++) {
        const lab_run *run = &r->runs[i];
        const lab_run *target = run_of(r, task, learned, run->seed);
        if (run->task != task || !run->finished || target == NULL || run->test_count == 0) continue;
        const double goal = last_test(target);
        lab_value added = {.task = task,
                           .scheme = run->scheme,
                           .metric = steps,
                           .seed = run->seed,
                           .length = LAB_NO_LENGTH,
                           .value = NAN};
        for (size_t t = run->test_count; t-- > 0;)
            if (run->tests[2 * t + 1] <= goal) added.value = run->tests[2 * t];
        push(p, added);
    }
}

static void add_means(const lab_results *r, pending *p)
{
    for (size_t i = 0, next; i < r->value_count; i = next) {
        const lab_value *first = &r->values[i];
        double sum = 0;
        size_t count = 0;
        for (next = i; next < r->value_count; next++) {
            const lab_value *v = &r->values[next];
            if (v->task != first->task || v->scheme != first->scheme ||
                v->metric != first->metric || v->length != first->length)
                break;
            sum += v->value; /* NaN where a seed has no value: the others alone would flatter */
            count++;
        }
        lab_value mean = *first;
        mean.seed = LAB_MEAN;
        mean.value = sum / (double)count;
        push(p, mean);
    }
}

static void add_ranks(lab_results *r, pending *p)
{
    const int32_t task = lab_name_add(r->tasks, &r->task_count, LAB_RUNS, "all");
    const int32_t rank = metric(r, "mean_reciprocal_rank");
    lab_ranks *ranks = lab_ranks_new(r);
    p->failed |= ranks == NULL;
    for (size_t i = 0; task >= 0 && rank >= 0 && ranks != NULL && i < ranks->count; i++)
        push(p, (lab_value){.task = task,
                            .scheme = ranks->each[i].scheme,
                            .metric = rank,
                            .seed = LAB_MEAN,
                            .length = LAB_NO_LENGTH,
                            .value = ranks->each[i].mean});
    lab_ranks_free(ranks);
}

static locus_status merge(lab_results *r, pending *p,
                          locus_status (*add)(lab_results *, const lab_value *, locus_error *),
                          locus_error *error)
{
    locus_status status =
        p->failed ? locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the comparison") : LOCUS_OK;
    for (size_t i = 0; status == LOCUS_OK && i < p->count; i++)
        status = add(r, &p->values[i], error);
    locus_release(NULL, p->values);
    *p = (pending){.count = 0};
    return status == LOCUS_OK ? sort(r, error) : status;
}

locus_status lab_derive(lab_results *r,
                        locus_status (*add)(lab_results *, const lab_value *, locus_error *),
                        locus_error *error)
{
    pending p = {.count = 0};
    LOCUS_TRY(sort(r, error));
    add_ratios(r, &p);
    add_steps(r, &p);
    LOCUS_TRY(merge(r, &p, add, error));
    add_means(r, &p);
    LOCUS_TRY(merge(r, &p, add, error));
    add_ranks(r, &p);
    return merge(r, &p, add, error);
}
