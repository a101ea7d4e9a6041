/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task hidden: what every layer made of a text, as tensors in a file. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"

static int given(const locus_model_info *info) { return info->layers > 0; }

/* Everything that is written; parts may be absent. */
typedef struct states {
    int64_t tokens, decoder_tokens;
    float *const *hidden;   /* [layers + 1]                     */
    float *means;           /* [tokens, labels / 2] of a prior; NULL */
    float **decoder_hidden; /* [decoder layers + 1], or NULL    */
    float *logits;          /* [tokens of the decoder, V]; NULL */
} states;

/* ---- memory ---- */

float **run_arrays_new(int64_t count, int64_t size)
{
    float **arrays = calloc((size_t)count, sizeof *arrays);
    float *numbers = calloc((size_t)(count * size) + 1, sizeof *numbers);
    if (arrays == NULL || numbers == NULL) {
        free(arrays);
        free(numbers);
        return NULL;
    }
    for (int64_t i = 0; i < count; i++) arrays[i] = numbers + i * size;
    return arrays;
}

void run_arrays_free(float **arrays)
{
    if (arrays != NULL) free(arrays[0]);
    free(arrays);
}

/* ---- the file ---- */

/* The last of them are `last` wide. */
static locus_status put(locus_file_writer *writer, const char *prefix, float *const *arrays,
                        int64_t count, const uint64_t *shape, uint64_t last, locus_error *error)
{
    locus_status status = LOCUS_OK;
    const uint64_t last_shape[3] = {shape[0], shape[1], last};
    for (int64_t i = 0; status == LOCUS_OK && arrays != NULL && i < count; i++) {
        char name[48];
        if (i == count - 1) shape = last_shape;
        snprintf(name, sizeof name, "%shidden.%" PRId64, prefix, i);
        status = locus_file_put(writer, name, "F32", 3, shape, arrays[i], error);
    }
    return status;
}

static int write_file(const run_session *s, const states *all)
{
    const uint64_t width = (uint64_t)s->info.width, rows = (uint64_t)all->decoder_tokens;
    const uint64_t shape[3] = {1, (uint64_t)all->tokens, width};
    const uint64_t decoder_shape[3] = {1, rows, width};
    const uint64_t last = (uint64_t)s->info.last_width;
    const uint64_t logits_shape[3] = {1, rows, (uint64_t)s->info.next_tokens};
    locus_file_writer *writer = NULL;
    locus_error error = {""};
    locus_status status = locus_file_create(&writer, s->values->output, NULL, &error);
    if (status == LOCUS_OK)
        status = put(writer, "", all->hidden, s->info.layers + 1, shape, last, &error);
    if (status == LOCUS_OK)
        status = put(writer, "decoder.", all->decoder_hidden, s->info.decoder_layers + 1,
                     decoder_shape, last, &error);
    if (status == LOCUS_OK && all->logits != NULL)
        status = locus_file_put(writer, "logits", "F32", 3, logits_shape, all->logits, &error);
    if (status == LOCUS_OK && all->means != NULL) {
        const uint64_t means_shape[3] = {1, shape[1], (uint64_t)s->info.labels / 2};
        status = locus_file_put(writer, "prior_means", "F32", 3, means_shape, all->means, &error);
    }
    if (status == LOCUS_OK)
        status = locus_file_commit(writer, &error);
    else
        locus_file_abandon(writer);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, s->values->output, &error);
}

int run_hidden_write(const run_session *s, float *const *hidden, int64_t tokens)
{
    const states all = {.tokens = tokens, .hidden = hidden};
    return write_file(s, &all);
}

/* ---- the model ---- */

/* The first half of every row of a prior, one behind the other. */
static void keep_means(const run_session *s, const states *all)
{
    const int64_t width = s->info.labels, half = width / 2;
    for (int64_t i = 0; all->means != NULL && i < all->tokens; i++)
        memmove(all->means + i * half, all->means + i * width, (size_t)half * sizeof(float));
}

/* The encoder, then the decoder on --decoder-ids. */
static int run_both(run_session *s, const run_text *text, const states *all)
{
    const int64_t offsets[2] = {0, text->count}, decoder[2] = {0, all->decoder_tokens};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = all->decoder_hidden,
                                         .logits = all->logits};
    locus_session *session = NULL;
    locus_error error = {""};
    locus_status status = locus_session_new(&session, s->model, 1, &error);
    if (status == LOCUS_OK)
        status = locus_session_read(session, text->ids, offsets, 1, all->hidden, &error);
    if (status == LOCUS_OK)
        status =
            locus_session_step(session, (const int32_t *)s->decoder_ids, decoder, &results, &error);
    locus_session_free(session);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, NULL, &error);
}

static int compute(run_session *s, const run_text *text, const states *all)
{
    json j = {.out = stdout};
    const locus_model_results results = {.size = sizeof results,
                                         .hidden = all->hidden,
                                         .logits = all->means != NULL ? all->means : all->logits};
    int exit_code = all->decoder_hidden != NULL ? run_both(s, text, all) : run_forward(s, &results);
    if (exit_code == CLI_DONE) keep_means(s, all);
    if (exit_code == CLI_DONE) exit_code = write_file(s, all);
    if (exit_code != CLI_DONE || !s->values->json) return exit_code;
    run_json_begin(&j, s, text);
    json_end(&j);
    return CLI_DONE;
}

static int run(run_session *s)
{
    if (s->answered > 0 || locus_texts_count(s->texts) != 1)
        return cli_complain("run", CLI_USAGE, "--task hidden writes the states of one text");
    if (s->decoder_id_count > 0 && s->info.decoder_layers == 0)
        return cli_complain("run", CLI_USAGE,
                            "--decoder-ids: the model has no decoder behind an encoder");
    const run_text text = run_text_at(s, 0);
    const int both = s->decoder_id_count > 0;
    const int only = s->info.decoder_layers == 0 && s->info.next_tokens > 0;
    states all = {.tokens = text.count,
                  .decoder_tokens = both ? (int64_t)s->decoder_id_count : text.count};
    float **hidden = run_arrays_new(s->info.layers + 1, text.count * s->info.width);
    const int prior = s->info.head == LOCUS_MODEL_PRIOR;
    all.hidden = hidden;
    if (prior) all.means = calloc((size_t)(text.count * s->info.labels) + 1, sizeof(float));
    if (both)
        all.decoder_hidden =
            run_arrays_new(s->info.decoder_layers + 1, all.decoder_tokens * s->info.width);
    if (both || only)
        all.logits = calloc((size_t)(all.decoder_tokens * s->info.next_tokens) + 1, sizeof(float));
    const int exit_code = all.hidden != NULL && (!both || all.decoder_hidden != NULL) &&
                                  (!(both || only) || all.logits != NULL) &&
                                  (!prior || all.means != NULL)
                              ? compute(s, &text, &all)
                              : run_no_memory();
    run_arrays_free(hidden);
    free(all.means);
    run_arrays_free(all.decoder_hidden);
    free(all.logits);
    return exit_code;
}

const run_task run_hidden = {.name = "hidden", .given = given, .run = run};
