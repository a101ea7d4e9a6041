/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "inputs.h"
#include "pieces.h"
#include "precision.h"
#include "run.h"
#include "text.h"

/* ---- batches ---- */

static int shows_progress(const run_session *s)
{
    return s->values->file != NULL && isatty(STDERR_FILENO);
}

static void clear_progress(const run_session *s)
{
    if (shows_progress(s)) fprintf(stderr, "\r\033[K");
}

static void show_progress(const run_session *s)
{
    char count[32];
    if (!shows_progress(s)) return;
    fprintf(stderr, "%s texts", text_thousands(count, sizeof count, s->answered));
    if (s->progress >= 0.0) fprintf(stderr, ", %.0f %%", 100.0 * s->progress);
    fflush(stderr);
}

/* Answer what is in the batch. */
static int answer(void *to)
{
    run_session *s = to;
    const int64_t count = locus_texts_count(s->texts) / s->per_input;
    if (count == 0) return CLI_DONE;
    clear_progress(s);
    const int exit_code = s->task->run(s);
    fflush(stdout);
    locus_texts_clear(s->texts);
    s->answered += (uint64_t)count;
    if (exit_code == CLI_DONE) show_progress(s);
    return exit_code;
}

/* The input that was just refused, after those before it have been answered. */
static int refuse(run_session *s, locus_status status, const locus_error *error)
{
    const int64_t index = (int64_t)s->answered + locus_texts_count(s->texts) / s->per_input + 1;
    const int exit_code = answer(s);
    const char *what = s->values->file != NULL ? "line" : "text";
    const int too_long = strstr(error->text, "takes at most") != NULL;
    clear_progress(s);
    if (exit_code != CLI_DONE) return exit_code;
    return cli_complain("run", status == LOCUS_ERR_MEMORY ? CLI_RESOURCES : CLI_REFUSED,
                        "%s %" PRId64 ": %s%s", what, index, error->text,
                        too_long ? "; --truncate N cuts it" : "");
}

static int take(void *to, const locus_text_input *input, double progress)
{
    run_session *s = to;
    locus_error error = {""};
    const locus_status status = s->task->add != NULL ? s->task->add(s, input, &error)
                                                     : locus_texts_add(s->texts, input, &error);
    if (status != LOCUS_OK) return refuse(s, status, &error);
    s->progress = progress;
    const int64_t tokens = locus_texts_offsets(s->texts)[locus_texts_count(s->texts)];
    return tokens >= (int64_t)s->values->tokens_per_batch ? answer(s) : CLI_DONE;
}

static int take_ids(run_session *s)
{
    locus_error error = {""};
    const locus_status status =
        locus_texts_add_ids(s->texts, (const int32_t *)s->ids, (int64_t)s->id_count, &error);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, NULL, &error);
}

static int walk(run_session *s)
{
    const run_values *v = s->values;
    const text_source source = {.command = "run",
                                .texts = &v->texts,
                                .pair = v->pair,
                                .file = v->file,
                                .truncate = v->truncate,
                                .take = take,
                                .idle = answer,
                                .to = s};
    int exit_code = v->ids != NULL ? take_ids(s) : inputs_walk(&source);
    if (exit_code == CLI_DONE) exit_code = answer(s);
    clear_progress(s);
    return exit_code == CLI_DONE && s->task->finish != NULL ? s->task->finish(s) : exit_code;
}

/* ---- opening ---- */

/* Ids need no tokenizer; their tokens are printed where there is one. */
static int open_tokenizer(run_session *s)
{
    locus_error error = {""};
    const char *given = s->values->tokenizer;
    const char *path = given != NULL ? given : s->values->model;
    const locus_status status = locus_tokenizer_open(&s->tokenizer, path, NULL, &error);
    if (status == LOCUS_OK || (s->values->ids != NULL && given == NULL)) return CLI_DONE;
    return cli_report("run", status, path, &error);
}

static int open_model(run_session *s)
{
    const run_values *v = s->values;
    const locus_model_config config = {
        .size = sizeof config, .threads = v->threads, .isa = v->isa, .precision = v->rounding};
    locus_error error = {""};
    const locus_status status = locus_model_open(&s->model, v->model, &config, &error);
    if (status != LOCUS_OK)
        return cli_report("run", status, status == LOCUS_ERR_ISA ? NULL : v->model, &error);
    locus_model_describe(s->model, &s->info);
    const int exit_code = precision_check("run", v->model, v->precision, s->info.precision);
    return exit_code == CLI_DONE ? run_task_choose(s) : exit_code;
}

static int open_texts(run_session *s)
{
    locus_error error = {""};
    const locus_status status = locus_texts_new(&s->texts, s->model, s->tokenizer, NULL, &error);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, NULL, &error);
}

/* A list of ids, before anything is opened. */
static int read_ids(const char *option, const char *text, uint32_t **ids, size_t *count)
{
    char quoted[160];
    if (text == NULL) return CLI_DONE;
    *ids = calloc(strlen(text) / 2 + 2, sizeof **ids);
    if (*ids == NULL) return run_no_memory();
    if (pieces_read_ids(text, *ids, count)) return CLI_DONE;
    return cli_complain("run", CLI_USAGE,
                        "--%s: expected whole numbers below 2^31 with commas between, got \"%s\"",
                        option, text_quote(quoted, sizeof quoted, text));
}

int run_all(const run_values *values)
{
    run_session s = {
        .values = values, .info = {.size = sizeof s.info}, .per_input = 1, .progress = -1.0};
    s.several = values->file != NULL || values->texts.count > 1;
    int exit_code = read_ids("ids", values->ids, &s.ids, &s.id_count);
    if (exit_code == CLI_DONE)
        exit_code =
            read_ids("decoder-ids", values->decoder_ids, &s.decoder_ids, &s.decoder_id_count);
    if (exit_code == CLI_DONE) exit_code = open_model(&s);
    if (values->features != NULL) {
        if (exit_code == CLI_DONE) exit_code = run_features(&s);
    } else {
        if (exit_code == CLI_DONE && s.info.features > 0)
            exit_code =
                cli_complain("run", CLI_USAGE, "%s takes rows of numbers: give --features FILE",
                             values->model);
        if (exit_code == CLI_DONE) exit_code = open_tokenizer(&s);
        if (exit_code == CLI_DONE) exit_code = open_texts(&s);
        if (exit_code == CLI_DONE) exit_code = walk(&s);
    }
    if (s.task != NULL && s.task->end != NULL) s.task->end(&s);
    free(s.ids);
    free(s.decoder_ids);
    locus_texts_free(s.texts);
    locus_tokenizer_close(s.tokenizer);
    locus_model_free(s.model);
    return exit_code;
}
