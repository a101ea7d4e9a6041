/* SPDX-License-Identifier: Apache-2.0 */
#include "lab/profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "lab/settings.h"

/* The schemes that are compared where nobody names any. */
static const char fourteen[] =
    "none,sinusoidal,learned,shaw,relative_key,relative_key_query,transformer_xl,t5,tupe,deberta,"
    "alibi,kerple,rope,xpos";

/* Some runs of a profile: every scheme of the list with every seed. */
typedef struct row {
    const char *profile, *task;
    int layers, width, heads, batch, length, steps;
    int seeds;
    const char *schemes; /* NULL: all                                            */
    int first_seed;      /* 0: from 1 on                                         */
    int clip;            /* above 0: --clip of one less                          */
    const char *terms, *positions;
    int memory;
} row;

/* clang-format off */
/* Copy has 3 layers: with 2, seed 2 of nearly every scheme has not found out how to copy after 5000 steps; with 3 most
 * have after 4000 (rows right at L with seed 2: RoPE 0.00 and 0.998, Shaw 0.00 and 0.98). */
/* Windows of 32 bytes: at 128 bytes and width 128 absolute positions are still on the plateau of guessed bytes after
 * 1500 steps of the same cost (perplexity 16, as without positions); at 32 sinusoidal leaves it before step 1500. */
#define SENTINELS "sinusoidal,t5,alibi,kerple,rope"
static const row rows[] = {
    /* profile    task      layers width heads batch length steps seeds */
    {"quick",    "copy",        2,   64, 4, 64,  10, 1500, 1, .schemes = NULL},
    {"quick",    "text",        2,   64, 4, 16,  64,  400, 1, .schemes = NULL},
    {"quick",    "masked",      2,   64, 4, 16,  64,  400, 1, .schemes = NULL},

    {"standard", "copy",        3,   64, 4, 64,  16, 4000, 3, .schemes = NULL},
    {"standard", "copy",        3,   64, 4, 64,  16, 4000, 3, .schemes = "sinusoidal",
                                                              .positions = "subset:256"},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 3, .schemes = NULL},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "shaw", .clip = 1},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "shaw", .clip = 2},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "shaw", .clip = 3},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "shaw", .clip = 5},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "shaw", .clip = 65},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "deberta", .terms = "c2p"},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "deberta", .terms = "p2c"},
    {"standard", "masked",      3,   64, 4, 64,  32, 3000, 1, .schemes = "deberta", .terms = "none"},
    {"standard", "text",        4,  128, 4, 16, 128,  800, 1, .schemes = NULL},
    {"standard", "text",        4,  128, 4, 16, 128,  800, 3, .schemes = SENTINELS, .first_seed = 2},
    {"standard", "text",        4,  128, 4, 16, 128,  800, 1, .schemes = "transformer_xl", .memory = 128},
    {"standard", "parity",      2,   64, 4, 64,  20, 1000, 3, .schemes = NULL},
    {"standard", "mod5",        2,   64, 4, 64,  20, 1000, 3, .schemes = NULL},
    {"standard", "lookback",    1,   64, 4, 32,  64, 1000, 1, .schemes = NULL},
    {"standard", "recall",      2,   64, 4, 64,  16, 1500, 1, .schemes = NULL},
    {"standard", "addition",    3,   64, 4, 64,  10, 4000, 1, .schemes = NULL},

    {"full",     "copy",        4,  128, 4, 64,  20, 5000, 3, .schemes = NULL},
    {"full",     "copy",        4,  128, 4, 64,  20, 5000, 3, .schemes = "sinusoidal", .positions = "subset:512"},
    {"full",     "copy_unique", 4,  128, 4, 64,  20, 5000, 3, .schemes = NULL},
    {"full",     "reverse",     4,  128, 4, 64,  20, 5000, 3, .schemes = NULL},
    {"full",     "recall",      4,  128, 4, 64,  16, 3000, 3, .schemes = NULL},
    {"full",     "addition",    4,  128, 4, 64,  10, 5000, 3, .schemes = NULL},
    {"full",     "parity",      4,  128, 4, 64,  20, 3000, 3, .schemes = NULL},
    {"full",     "mod5",        4,  128, 4, 64,  20, 3000, 3, .schemes = NULL},
    {"full",     "lookback",    1,  128, 4, 32,  64, 3000, 3, .schemes = NULL},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = NULL},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "shaw", .clip = 1},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "shaw", .clip = 2},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "shaw", .clip = 3},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "shaw", .clip = 5},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "shaw", .clip = 65},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "deberta", .terms = "c2p"},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "deberta", .terms = "p2c"},
    {"full",     "masked",      4,  128, 4, 16, 128, 3000, 3, .schemes = "deberta", .terms = "none"},
    {"full",     "text",        4,  256, 4, 16, 256, 3000, 3, .schemes = NULL},
    {"full",     "text",        4,  256, 4, 16, 256, 3000, 3, .schemes = "transformer_xl", .memory = 256},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };

/* ---- lists of words with commas between ---- */

/* The word at *list into word[capacity]; moves on; 0 at the end. */
static int next_word(const char **list, char *word, size_t capacity)
{
    const size_t length = strcspn(*list, ",");
    if (**list == '\0') return 0;
    snprintf(word, capacity, "%.*s", (int)length, *list);
    *list += length + ((*list)[length] == ',');
    return 1;
}

static int lists_word(const char *list, const char *wanted)
{
    char word[LAB_VARIANT];
    while (next_word(&list, word, sizeof word))
        if (strcmp(word, wanted) == 0) return 1;
    return 0;
}

static int lists_task(const char *list, const lab_task *task)
{
    return list == NULL || lists_word(list, task->name) || lists_word(list, task->number);
}

static locus_status check_tasks(const char *list, const char *profile, locus_error *error)
{
    char word[LAB_VARIANT];
    while (list != NULL && next_word(&list, word, sizeof word)) {
        const lab_task *task = lab_task_find(word);
        int there = 0;
        for (size_t i = 0; task != NULL && i < ROWS; i++)
            there |= strcmp(rows[i].profile, profile) == 0 && strcmp(rows[i].task, task->name) == 0;
        if (task == NULL)
            return locus_fail(error, LOCUS_ERR_OPTION,
                              "tasks: found \"%s\", expected copy, text, ..", word);
        if (!there)
            return locus_fail(error, LOCUS_ERR_OPTION, "tasks: profile %s has no %s", profile,
                              task->name);
    }
    return LOCUS_OK;
}

static locus_status check_lists(const lab_comparison *c, locus_error *error)
{
    char word[LAB_VARIANT];
    const char *schemes = c->schemes;
    int known = 0;
    for (size_t i = 0; i < ROWS; i++) known |= strcmp(rows[i].profile, c->profile) == 0;
    if (!known)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "profile: found \"%s\", expected quick, standard or full", c->profile);
    while (schemes != NULL && next_word(&schemes, word, sizeof word))
        if (locus_scheme_find(word) == NULL)
            return locus_fail(error, LOCUS_ERR_SCHEME, "schemes: found \"%s\", which is no scheme",
                              word);
    return check_tasks(c->tasks, c->profile, error);
}

/* ---- one run ---- */

static void set(int64_t *to, int64_t given, int64_t preset) { *to = given > 0 ? given : preset; }

/* "+what", and a number or a word behind it. */
static void name_variant(lab_job *job, const char *what, const char *value)
{
    const size_t used = strlen(job->variant);
    snprintf(job->variant + used, sizeof job->variant - used, "+%s%s", what, value);
}

static void name_number(lab_job *job, const char *what, int64_t value)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, value);
    name_variant(job, what, text);
}

/* Settings of one scheme, where they are not the usual ones, show in the name of the run. */
static void set_variant(lab_job *job, const row *r, const lab_settings *given)
{
    lab_settings *s = &job->settings;
    const int64_t clip = r->clip > 0 ? r->clip - 1 : given->clip;
    const char *terms = r->terms != NULL ? r->terms : given->terms;
    const char *positions = r->positions != NULL ? r->positions : given->positions;
    const int64_t memory = r->memory > 0 ? r->memory : given->memory;
    s->clip = -1;
    s->terms = s->positions = NULL;
    s->memory = 0;
    if (strcmp(s->scheme, "shaw") == 0 && clip >= 0) {
        s->clip = clip;
        name_number(job, "clip", clip);
    }
    if (strcmp(s->scheme, "deberta") == 0 && terms != NULL && strcmp(terms, "c2p,p2c") != 0) {
        s->terms = terms;
        name_variant(job, "terms-", terms);
    }
    if (strcmp(s->scheme, "transformer_xl") == 0 && strcmp(s->task, "text") == 0 && memory > 0) {
        s->memory = memory;
        name_number(job, "memory", memory);
    }
    const int absolute = strcmp(s->scheme, "sinusoidal") == 0 || strcmp(s->scheme, "learned") == 0;
    if (absolute && positions != NULL && strcmp(positions, "plain") != 0) {
        char word[LAB_VARIANT];
        snprintf(word, sizeof word, "%.*s", (int)strcspn(positions, ":"), positions);
        s->positions = positions;
        name_variant(job, "positions-", word);
    }
}

static lab_job make_job(const row *r, const lab_comparison *c, const char *scheme, int64_t seed,
                        double rate_factor)
{
    lab_job job = {.settings = c->settings};
    lab_settings *s = &job.settings;
    s->task = r->task;
    s->scheme = locus_scheme_find(scheme)->name; /* lasts */
    s->seed = (uint64_t)seed;
    set(&s->layers, c->settings.layers, r->layers);
    set(&s->width, c->settings.width, r->width);
    set(&s->heads, c->settings.heads, r->heads);
    set(&s->batch, c->settings.batch, r->batch);
    set(&s->length, c->settings.length, r->length);
    if (s->steps < 0) s->steps = r->steps;
    if (!lab_task_find(r->task)->reads_text) s->text = NULL;
    snprintf(job.variant, sizeof job.variant, "%s", s->scheme);
    set_variant(&job, r, &c->settings);
    if (rate_factor != 1.0) {
        if (s->rate == 0.0) s->rate = lab_usual_rate(s->width);
        s->rate *= rate_factor;
        name_variant(&job, "rate-", rate_factor < 1.0 ? "half" : "double");
    }
    const double tokens = (double)s->batch * (double)lab_task_find(r->task)->tokens(s->length);
    const double parameters = 12.0 * (double)s->layers * (double)s->width * (double)s->width;
    job.work = (double)s->steps * tokens * (parameters + 300.0 * (double)s->width);
    if (!lab_task_find(r->task)->one_length) job.work *= 0.55; /* n is drawn from 1 to L */
    return job;
}

/* ---- all of them ---- */

typedef struct collector {
    const lab_comparison *comparison;
    lab_job *jobs;
    size_t count;
} collector;

static int is_listed(const collector *c, const lab_job *job)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->jobs[i].settings.task, job->settings.task) == 0 &&
            strcmp(c->jobs[i].variant, job->variant) == 0 &&
            c->jobs[i].settings.seed == job->settings.seed)
            return 1;
    return 0;
}

/* A scheme that has no place in a task (one that looks back only, in an encoder) is left out. */
static int has_place(const lab_job *job)
{
    const locus_scheme_info *scheme = locus_scheme_find(job->settings.scheme);
    return (scheme->traits & LOCUS_TRAIT_CAUSAL) == 0 ||
           !lab_task_find(job->settings.task)->encoder;
}

static locus_status collect(collector *c, const row *r, const char *scheme, int64_t seed,
                            locus_error *error)
{
    static const double factors[] = {1.0, 0.5, 2.0};
    for (int i = 0; i < (c->comparison->sweep_rate ? 3 : 1); i++) {
        const lab_job job = make_job(r, c->comparison, scheme, seed, factors[i]);
        if (!has_place(&job) || is_listed(c, &job)) continue;
        if (c->count == LAB_MOST_JOBS)
            return locus_fail(error, LOCUS_ERR_OPTION, "found more than %d runs", LAB_MOST_JOBS);
        c->jobs[c->count++] = job;
    }
    return LOCUS_OK;
}

static locus_status collect_row(collector *c, const row *r, locus_error *error)
{
    const lab_comparison *all = c->comparison;
    const char *asked = all->schemes != NULL ? all->schemes : fourteen;
    const char *list = r->schemes != NULL ? r->schemes : asked;
    const int64_t first = r->first_seed > 0 ? r->first_seed : 1;
    const int64_t last = all->seeds > 0 ? all->seeds : r->seeds;
    char scheme[LAB_VARIANT];
    if (strcmp(r->profile, all->profile) != 0 || !lists_task(all->tasks, lab_task_find(r->task)))
        return LOCUS_OK;
    while (next_word(&list, scheme, sizeof scheme))
        for (int64_t seed = first; seed <= last && lists_word(asked, scheme); seed++)
            LOCUS_TRY(collect(c, r, scheme, seed, error));
    return LOCUS_OK;
}

locus_status lab_jobs_new(lab_job **jobs, size_t *count, const lab_comparison *comparison,
                          locus_error *error)
{
    collector c = {.comparison = comparison};
    *jobs = NULL;
    *count = 0;
    LOCUS_TRY(check_lists(comparison, error));
    c.jobs = locus_allocate(NULL, LAB_MOST_JOBS, sizeof *c.jobs);
    if (c.jobs == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a list of runs");
    locus_status status = LOCUS_OK;
    for (size_t i = 0; status == LOCUS_OK && i < ROWS; i++)
        status = collect_row(&c, &rows[i], error);
    if (status != LOCUS_OK) {
        locus_release(NULL, c.jobs);
        return status;
    }
    *jobs = c.jobs;
    *count = c.count;
    return LOCUS_OK;
}

void lab_job_name(const lab_job *job, char *name, size_t capacity)
{
    snprintf(name, capacity, "%s/%s/seed%" PRIu64, job->settings.task, job->variant,
             job->settings.seed);
}
