/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/system.h"
#include "lab/files.h"
#include "lab/lock.h"
#include "lab/pool.h"
#include "lab/print.h"
#include "lab/settings.h"

/* ---- lab.json ---- */

static void put_list(plot_text *out, const char *name, const char *list)
{
    plot_puts(out, "  \"");
    plot_puts(out, name);
    plot_puts(out, "\": ");
    lab_print_string(out, list);
    plot_puts(out, ",\n");
}

/* Tasks and schemes in the order of the runs, each once. */
static void put_words(plot_text *out, const char *name, const lab_job *jobs, size_t count,
                      int schemes)
{
    const char *before = "";
    lab_print(out, "  \"%s\": \"", name);
    for (size_t i = 0; i < count; i++) {
        const char *word = schemes ? jobs[i].settings.scheme : jobs[i].settings.task;
        size_t k = 0;
        while (k < i &&
               strcmp(word, schemes ? jobs[k].settings.scheme : jobs[k].settings.task) != 0)
            k++;
        if (k < i) continue;
        lab_print(out, "%s%s", before, word);
        before = ",";
    }
    plot_puts(out, "\",\n");
}

static void put_given(plot_text *out, const char *option, int64_t value, int64_t absent)
{
    if (value != absent) lab_print(out, " --%s %" PRId64, option, value);
}

/* Does a shell take the word as it is? */
static int is_plain(const char *word)
{
    for (const char *at = word; *at != '\0'; at++)
        if (!isalnum((unsigned char)*at) && strchr("_,.-+/=:", *at) == NULL) return 0;
    return *word != '\0';
}

static void put_word(plot_text *out, const char *option, const char *word)
{
    if (word == NULL) return;
    const char *quote = is_plain(word) ? "" : "'"; /* for the shell */
    lab_print(out, " --%s %s", option, quote);
    for (; *word != '\0'; word++) { /* inside a JSON string */
        if (*word == '\'') plot_puts(out, "'\\\\'");
        if (*word == '"' || *word == '\\') plot_char(out, '\\');
        plot_char(out, (unsigned char)*word < 0x20 ? '?' : *word);
    }
    plot_puts(out, quote);
}

/* The command that repeats the comparison; it also tells comparisons apart. */
static void put_command(plot_text *out, const lab_comparison *c)
{
    const lab_settings *s = &c->settings;
    lab_print(out, "  \"command\": \"locus lab run --profile %s", c->profile);
    put_word(out, "tasks", c->tasks);
    put_word(out, "schemes", c->schemes);
    put_given(out, "seeds", c->seeds, 0);
    if (c->sweep_rate) plot_puts(out, " --sweep-rate");
    put_given(out, "layers", s->layers, 0);
    put_given(out, "width", s->width, 0);
    put_given(out, "heads", s->heads, 0);
    put_given(out, "batch", s->batch, 0);
    put_given(out, "length", s->length, 0);
    put_given(out, "steps", s->steps, -1);
    if (s->rate > 0.0) lab_print(out, " --rate %.9g", s->rate);
    put_given(out, "clip", s->clip, -1);
    put_word(out, "terms", s->terms);
    put_given(out, "memory", s->memory, 0);
    put_word(out, "positions", s->positions);
    put_word(out, "text", s->text);
    plot_puts(out, " -o DIR\",\n");
}

static int64_t most_seeds(const lab_job *jobs, size_t count)
{
    uint64_t most = 0;
    for (size_t i = 0; i < count; i++)
        if (jobs[i].settings.seed > most) most = jobs[i].settings.seed;
    return (int64_t)most;
}

static locus_status claim_folder(const lab_comparison *c, const lab_job *jobs, size_t count,
                                 const char *folder, locus_error *error)
{
    locus_text text = {.data = NULL};
    plot_text out = {.to = &text};
    int found = 0;
    plot_puts(&out, "{\n");
    put_list(&out, "profile", c->profile);
    put_words(&out, "tasks", jobs, count, 0);
    put_words(&out, "schemes", jobs, count, 1);
    lab_print(&out, "  \"seeds\": %" PRId64 ",\n", most_seeds(jobs, count));
    put_command(&out, c);
    locus_status status = out.failed
                              ? locus_fail(error, LOCUS_ERR_MEMORY, "no memory for lab.json")
                              : lab_lines_compare(folder, "lab.json", text.data, &found, error);
    lab_print(&out, "  \"runs\": %zu,\n  \"version\": \"%s\"\n}\n", count, locus_version());
    if (status == LOCUS_OK && !found) return lab_print_save(&out, folder, "lab.json", error);
    locus_text_free(&text);
    return status;
}

/* ---- the comparison ---- */

static uint32_t cores(void)
{
    const long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (uint32_t)count : 1;
}

/* Bad settings are refused before a folder is made. */
static locus_status check_jobs(const lab_job *jobs, size_t count, locus_error *error)
{
    if (count == 0) return locus_fail(error, LOCUS_ERR_OPTION, "there is nothing to run");
    for (size_t i = 0; i < count; i++) {
        const int again = i > 0 && strcmp(jobs[i].settings.task, jobs[i - 1].settings.task) == 0 &&
                          strcmp(jobs[i].variant, jobs[i - 1].variant) == 0;
        lab_plan plan;
        if (again) continue;
        LOCUS_TRY(lab_plan_new(&plan, &jobs[i].settings, error));
        lab_plan_free(&plan);
    }
    return LOCUS_OK;
}

/* The folder, made, locked and claimed by rank 0. */
static locus_status open_folder(const lab_comparison *c, lab_pool *pool, locus_error *error)
{
    LOCUS_TRY(lab_folders_make(pool->folder, error));
    LOCUS_TRY(lab_lock_folder(&pool->lock, pool->folder, error));
    return claim_folder(c, pool->jobs, pool->count, pool->folder, error);
}

/* Other ranks write their runs into it: they have to see what rank 0 has made. */
static locus_status check_shared(const char *folder, locus_error *error)
{
    char path[LAB_PATH];
    if (lab_path(path, folder, "lab.json") && locus_system_exists(path)) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_IO,
                      "%s: found no lab.json of rank 0, expected a folder that all ranks share",
                      folder);
}

/* Rank 0 hands out, the others take. */
static locus_status share_runs(const lab_comparison *c, lab_pool *pool,
                               const lab_onlooker *onlooker, lab_outcome *outcome,
                               locus_error *error)
{
    const int leads = lab_crew_leads(pool->crew);
    locus_status status = leads ? open_folder(c, pool, error) : LOCUS_OK;
    status = lab_crew_follow(pool->crew, status, error);
    if (status == LOCUS_OK)
        status =
            lab_crew_agree(pool->crew, leads ? LOCUS_OK : check_shared(pool->folder, error), error);
    if (status == LOCUS_OK && leads) status = lab_pool_run(pool, onlooker, outcome, error);
    if (status == LOCUS_OK && !leads) lab_pool_serve(pool, onlooker->interrupted);
    if (pool->lock >= 0) close(pool->lock);
    return status;
}

static locus_status check_ranks(const lab_comparison *c, const lab_crew *crew, locus_error *error)
{
    if (crew == NULL || c->jobs == 0) return LOCUS_OK;
    return locus_fail(
        error, LOCUS_ERR_OPTION,
        "jobs: found %u with %d ranks, expected none: every rank makes one run at a time",
        (unsigned)c->jobs, crew->ranks);
}

locus_status lab_compare(const lab_comparison *comparison, const char *folder, const lab_crew *crew,
                         const lab_onlooker *onlooker, lab_outcome *outcome, locus_error *error)
{
    lab_job *jobs = NULL;
    size_t count = 0;
    locus_status status = check_ranks(comparison, crew, error);
    if (status == LOCUS_OK) status = lab_jobs_new(&jobs, &count, comparison, error);
    if (status == LOCUS_OK) status = check_jobs(jobs, count, error);
    status = lab_crew_agree(crew, status, error);
    const uint32_t alone = comparison->jobs > 0 ? comparison->jobs : cores();
    lab_pool pool = {.jobs = jobs,
                     .count = count,
                     .side_by_side = crew != NULL ? 1 : alone,
                     .folder = folder,
                     .lock = -1,
                     .crew = crew};
    if (status == LOCUS_OK) status = share_runs(comparison, &pool, onlooker, outcome, error);
    locus_release(NULL, jobs);
    return status;
}
