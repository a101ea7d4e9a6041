/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "demo.h"
#include "machine.h"
#include "terms.h"

static const char *const sentence[] = {
    "the", "cat", "sat", "on", "the", "mat", "because", "it", "was", "tired",
};

enum { WORDS = sizeof sentence / sizeof *sentence };

/* The sentence, and something random that is long enough for a clock. There logits and sums
 * are longer: T5, which does not scale, has large logits, and a layer's gradient of b_k is a
 * sum of all rows that cancels to zero, where floats keep few digits. */
static const demo usual = {
    .sentence = sentence,
    .words = WORDS,
    .small = {.B = 1, .H = 4, .T = WORDS, .D = 16, .E = 64, .seed = 2017},
    .large = {.B = 1, .H = 4, .T = 384, .D = 64, .E = 256, .seed = 2017},
    .small_limit = {.outputs = 5e-6, .gradients = 2e-5},
    .large_limit = {.outputs = 2e-5, .gradients = 1e-4},
};

/* ---- a problem with its trial ---- */

typedef struct attempt {
    locus_problem *problem;
    trial trial;
    locus_allocator allocator;
    size_t plan_bytes;
} attempt;

static locus_status attempt_new(attempt *a, const locus_problem_request *usual_request,
                                const char *scheme, uint32_t level, locus_error *error)
{
    locus_problem_request request = *usual_request;
    request.size = sizeof request;
    request.scheme = scheme;
    request.level = level;
    a->plan_bytes = 0;
    a->allocator = counted_allocator(&a->plan_bytes);
    locus_status status = locus_problem_new(&a->problem, &request, error);
    if (status != LOCUS_OK) return status;
    a->problem->config->threads = 1; /* what the stopwatch can measure on a busy machine */
    a->problem->config->allocator = &a->allocator;
    status = trial_new(&a->trial, a->problem, error);
    if (status != LOCUS_OK) locus_problem_free(a->problem);
    return status;
}

static void attempt_free(attempt *a)
{
    trial_free(&a->trial);
    locus_problem_free(a->problem);
}

static size_t attempt_bytes(const attempt *a)
{
    return a->plan_bytes + a->trial.workspace_bytes + a->trial.saved_bytes;
}

/* ---- one scheme ---- */

static locus_status judge_sentence(const demo *d, demo_outcome *o, locus_error *error)
{
    static attempt a; /* 6 KB, which a stack of 64 KB does not have beside a layer's gradient */
    locus_problem_request request = d->small;
    request.tokens = d->sentence;
    locus_status status = attempt_new(&a, &request, o->scheme->name, o->level, error);
    if (status != LOCUS_OK) return status;
    status = trial_forward(&a.trial, error);
    if (status == LOCUS_OK) status = trial_backward(&a.trial, error);
    if (status == LOCUS_OK)
        status = trial_errors(&a.trial, &o->small.outputs, &o->small.gradients, error);
    attempt_free(&a);
    return status;
}

static locus_status measure(const demo *d, demo_outcome *o, locus_error *error)
{
    static attempt plain, own;
    locus_status status = attempt_new(&plain, &d->large, "none", o->level, error);
    if (status != LOCUS_OK) return status;
    status = attempt_new(&own, &d->large, o->scheme->name, o->level, error);
    if (status == LOCUS_OK) {
        o->parameters = own.problem->parameters;
        o->bytes = attempt_bytes(&own);
        o->plain_bytes = attempt_bytes(&plain);
        status = pace_measure(&o->pace, &own.trial, &plain.trial, d->seconds, error);
        if (status == LOCUS_OK)
            status = trial_errors(&own.trial, &o->large.outputs, &o->large.gradients, error);
        attempt_free(&own);
    }
    attempt_free(&plain);
    return status;
}

/* ---- all of them ---- */

static void show_progress(const char *name)
{
    if (isatty(STDERR_FILENO)) fprintf(stderr, "\r%-24s\r%s", "", name);
}

int demo_run_all(demo *d, int quick)
{
    *d = usual;
    d->seconds = quick ? 0.0 : 0.3;
    if (quick) d->large.T = 128;
    d->count = locus_scheme_count();
    d->outcomes = calloc(d->count, sizeof *d->outcomes);
    if (d->outcomes == NULL) return cli_complain("demo", CLI_RESOURCES, "out of memory");
    for (size_t i = 0; i < d->count; i++) {
        locus_error error = {""};
        demo_outcome *o = &d->outcomes[i];
        o->scheme = locus_scheme_at(i);
        o->level = scheme_level(o->scheme);
        show_progress(o->scheme->name);
        locus_status status = judge_sentence(d, o, &error);
        if (status == LOCUS_OK) status = measure(d, o, &error);
        if (status == LOCUS_OK) continue;
        show_progress("");
        return cli_report("demo", status, o->scheme->name, &error);
    }
    show_progress("");
    return CLI_DONE;
}

void demo_free(demo *d)
{
    free(d->outcomes);
    *d = (demo){.outcomes = NULL};
}

static int within(demo_errors found, demo_errors limit)
{
    return found.outputs <= limit.outputs && found.gradients <= limit.gradients;
}

int demo_exact(const demo *d, const demo_outcome *o)
{
    return within(o->small, d->small_limit) && within(o->large, d->large_limit);
}

/* NaN is worse than anything. */
static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

demo_errors demo_worst(const demo_outcome *o)
{
    return (demo_errors){.outputs = worse(o->small.outputs, o->large.outputs),
                         .gradients = worse(o->small.gradients, o->large.gradients)};
}

int demo_is_plain(const demo_outcome *o) { return strcmp(o->scheme->name, "none") == 0; }

const demo_outcome *demo_find(const demo *d, const char *scheme)
{
    for (size_t i = 0; i < d->count; i++)
        if (strcmp(d->outcomes[i].scheme->name, scheme) == 0) return &d->outcomes[i];
    return NULL;
}

size_t demo_score_bytes(const demo *d)
{
    const locus_problem_request *r = &d->large;
    return (size_t)(r->B * r->H * r->T * r->T) * sizeof(float);
}
