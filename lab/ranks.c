/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/ranks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/random.h"

enum { SEEDS = 64, BOOTSTRAP_SEED = 2017 };

/* Reciprocal ranks: of scheme s in contest c; a contest is a task and a seed. */
typedef struct table {
    const lab_results *results;
    int32_t *schemes;
    size_t scheme_count;
    int32_t task[LAB_RUNS], seed[LAB_RUNS];
    size_t contests;
    double *rank; /* [contests][scheme_count] */
} table;

/* The score of one run, higher is better; NaN: not ranked. */
static double score(const lab_results *r, const lab_subject *subject, int32_t task, int32_t scheme,
                    int32_t seed)
{
    const int64_t inside = lab_length(r, task);
    const lab_value *at_l = lab_find(r, task, scheme, subject->metric, inside, seed);
    size_t count, used = 0;
    double sum = 0;
    if (subject->exact && (at_l == NULL || !(at_l->value >= LAB_INSIDE))) return NAN;
    const lab_value *v = lab_range(r, task, scheme, subject->metric, &count);
    for (size_t i = 0; i < count; i++) {
        if (v[i].seed != seed || v[i].length <= inside) continue;
        sum += v[i].value; /* NaN where one is undefined */
        used++;
    }
    if (used == 0) return NAN;
    return subject->lower ? -sum / (double)used : sum / (double)used;
}

/* 1 / rank; equal scores share the mean of their places. */
static void rank_contest(const table *t, const double *scores, double *out)
{
    for (size_t s = 0; s < t->scheme_count; s++) {
        size_t better = 0, equal = 0;
        out[s] = 0;
        if (isnan(scores[s])) continue;
        for (size_t o = 0; o < t->scheme_count; o++) {
            better += scores[o] > scores[s];
            equal += scores[o] == scores[s];
        }
        out[s] = 1.0 / ((double)better + ((double)equal + 1) / 2);
    }
}

/* Was the scheme run on this task, but not at this seed? Its rank there is not known. */
static int is_missing(const lab_results *r, const lab_subject *subject, int32_t task,
                      int32_t scheme, int32_t seed)
{
    size_t count;
    const lab_value *v = lab_range(r, task, scheme, subject->metric, &count);
    for (size_t i = 0; i < count; i++)
        if (v[i].seed == seed) return 0;
    return count > 0;
}

static void add_contests(table *t, const lab_subject *subject, double *scores)
{
    const lab_results *r = t->results;
    const int32_t task = lab_task_index(r, subject->name);
    int32_t seeds[SEEDS];
    size_t seed_count = 0;
    for (size_t i = 0; task >= 0 && i < r->run_count; i++) {
        size_t at = 0;
        if (r->runs[i].task != task || !r->runs[i].finished) continue;
        while (at < seed_count && seeds[at] != r->runs[i].seed) at++;
        if (at == seed_count && seed_count < SEEDS) seeds[seed_count++] = r->runs[i].seed;
    }
    for (size_t k = 0; k < seed_count && t->contests < LAB_RUNS; k++) {
        size_t ranked = 0, missing = 0;
        for (size_t s = 0; s < t->scheme_count; s++) {
            missing += is_missing(r, subject, task, t->schemes[s], seeds[k]) ? 1 : 0;
            scores[s] = score(r, subject, task, t->schemes[s], seeds[k]);
            ranked += isnan(scores[s]) ? 0 : 1;
        }
        if (ranked < 2 || missing > 0) continue;
        t->task[t->contests] = task;
        t->seed[t->contests] = seeds[k];
        rank_contest(t, scores, t->rank + t->contests++ * t->scheme_count);
    }
}

static double mean_over(const table *t, size_t scheme, const size_t *contests, size_t count)
{
    double sum = 0;
    for (size_t c = 0; c < count; c++)
        sum += t->rank[(contests != NULL ? contests[c] : c) * t->scheme_count + scheme];
    return count > 0 ? sum / (double)count : 0;
}

/* ---- bootstrap: tasks are drawn with replacement, then seeds inside each ---- */

static uint32_t draw(uint32_t *counter, size_t below)
{
    const uint32_t key[2] = {BOOTSTRAP_SEED, 0};
    const uint32_t at[4] = {(*counter)++, 0, 0, 0};
    uint32_t words[4];
    locus_philox(key, at, words);
    return (uint32_t)((uint64_t)words[0] * below >> 32);
}

/* Contests come task by task: the one of `task` with number `index`. */
static size_t resample(const table *t, uint32_t *counter, size_t *out)
{
    size_t first[LAB_NAME], count[LAB_NAME], tasks = 0, drawn = 0;
    for (size_t c = 0; c < t->contests; c++) {
        if (c == 0 || t->task[c] != t->task[c - 1]) first[tasks] = c, count[tasks++] = 0;
        count[tasks - 1]++;
    }
    for (size_t i = 0; i < tasks; i++) {
        const size_t task = draw(counter, tasks);
        for (size_t k = 0; k < count[task] && drawn < LAB_RUNS; k++)
            out[drawn++] = first[task] + draw(counter, count[task]);
    }
    return drawn;
}

static int by_value(const void *a, const void *b)
{
    const double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

static void bootstrap(const table *t, lab_rank *each, double *means, size_t *contests)
{
    uint32_t counter = 0;
    for (size_t b = 0; b < LAB_BOOTSTRAPS; b++) {
        const size_t drawn = resample(t, &counter, contests);
        for (size_t s = 0; s < t->scheme_count; s++)
            means[s * LAB_BOOTSTRAPS + b] = mean_over(t, s, contests, drawn);
    }
    for (size_t s = 0; s < t->scheme_count; s++) {
        qsort(means + s * LAB_BOOTSTRAPS, LAB_BOOTSTRAPS, sizeof *means, by_value);
        each[s].low = means[s * LAB_BOOTSTRAPS + LAB_BOOTSTRAPS / 20];
        each[s].high = means[s * LAB_BOOTSTRAPS + LAB_BOOTSTRAPS - 1 - LAB_BOOTSTRAPS / 20];
    }
}

static int by_rank(const void *a, const void *b)
{
    const lab_rank *left = a, *right = b;
    if (left->mean != right->mean) return left->mean > right->mean ? -1 : 1;
    return left->scheme < right->scheme ? -1 : 1;
}

static void fill(lab_ranks *ranks, table *t, double *scores, double *means, size_t *contests)
{
    for (size_t i = 0; lab_subject_at(i) != NULL; i++) {
        const lab_subject *subject = lab_subject_at(i);
        if (subject->exact || strcmp(subject->name, "text") == 0 ||
            strcmp(subject->name, "masked") == 0)
            add_contests(t, subject, scores);
    }
    ranks->contests = t->contests;
    if (t->contests == 0) return;
    for (size_t s = 0; s < t->scheme_count; s++) {
        ranks->each[s] =
            (lab_rank){.scheme = t->schemes[s], .mean = mean_over(t, s, NULL, t->contests)};
        for (size_t c = 0; c < t->contests; c++)
            ranks->each[s].contests += t->rank[c * t->scheme_count + s] > 0;
    }
    bootstrap(t, ranks->each, means, contests);
    ranks->count = t->scheme_count;
    if (ranks->count > 0) qsort(ranks->each, ranks->count, sizeof *ranks->each, by_rank);
}

lab_ranks *lab_ranks_new(const lab_results *r)
{
    table *t = locus_allocate(NULL, 1, sizeof *t);
    lab_ranks *ranks = locus_allocate(NULL, 1, sizeof *ranks);
    size_t *contests = locus_allocate(NULL, LAB_RUNS, sizeof *contests);
    int ready = t != NULL && ranks != NULL && contests != NULL;
    double *scores = locus_allocate(NULL, r->scheme_count + 1, sizeof *scores);
    double *means = locus_allocate(NULL, r->scheme_count + 1, LAB_BOOTSTRAPS * sizeof *means);
    if (ready) {
        t->results = r;
        t->schemes = locus_allocate(NULL, r->scheme_count + 1, sizeof *t->schemes);
        t->rank = locus_allocate(NULL, r->run_count + 1, (r->scheme_count + 1) * sizeof *t->rank);
        ranks->each = locus_allocate(NULL, r->scheme_count + 1, sizeof *ranks->each);
        ready = scores != NULL && means != NULL && t->schemes != NULL && t->rank != NULL &&
                ranks->each != NULL;
    }
    if (ready) {
        for (int32_t s = 0; s < (int32_t)r->scheme_count; s++)
            if (lab_is_plain(r->schemes[s])) t->schemes[t->scheme_count++] = s;
        fill(ranks, t, scores, means, contests);
    }
    if (t != NULL) {
        locus_release(NULL, t->schemes);
        locus_release(NULL, t->rank);
    }
    locus_release(NULL, t);
    locus_release(NULL, contests);
    locus_release(NULL, scores);
    locus_release(NULL, means);
    if (ready) return ranks;
    lab_ranks_free(ranks);
    return NULL;
}

void lab_ranks_free(lab_ranks *ranks)
{
    if (ranks == NULL) return;
    locus_release(NULL, ranks->each);
    locus_release(NULL, ranks);
}
