/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task hidden: what every layer made of a text, as tensors in a file. */
#include <inttypes.h>
#include <stdlib.h>

#include "run.h"

static int given(const locus_model_info *info) { return info->layers > 0; }

static int write_file(const run_session *s, const run_text *text, float *const *hidden)
{
    const uint64_t shape[3] = {1, (uint64_t)text->count, (uint64_t)s->info.width};
    locus_file_writer *writer = NULL;
    locus_error error = {""};
    locus_status status = locus_file_create(&writer, s->values->output, NULL, &error);
    for (int64_t i = 0; status == LOCUS_OK && i <= s->info.layers; i++) {
        char name[32];
        snprintf(name, sizeof name, "hidden.%" PRId64, i);
        status = locus_file_put(writer, name, "F32", 3, shape, hidden[i], &error);
    }
    if (status == LOCUS_OK)
        status = locus_file_commit(writer, &error);
    else
        locus_file_abandon(writer);
    return status == LOCUS_OK ? CLI_DONE : cli_report("run", status, s->values->output, &error);
}

static int compute(run_session *s, const run_text *text, float **hidden, float *numbers)
{
    json j = {.out = stdout};
    for (int64_t i = 0; i <= s->info.layers; i++)
        hidden[i] = numbers + i * text->count * s->info.width;
    const locus_model_results results = {.size = sizeof results, .hidden = hidden};
    int exit_code = run_forward(s, &results);
    if (exit_code == CLI_DONE) exit_code = write_file(s, text, hidden);
    if (exit_code != CLI_DONE || !s->values->json) return exit_code;
    run_json_begin(&j, s, text);
    json_end(&j);
    return CLI_DONE;
}

static int run(run_session *s)
{
    if (s->answered > 0 || locus_texts_count(s->texts) != 1)
        return cli_complain("run", CLI_USAGE, "--task hidden writes the states of one text");
    const run_text text = run_text_at(s, 0);
    const size_t arrays = (size_t)s->info.layers + 1;
    const size_t size = (size_t)(text.count * s->info.width);
    float **hidden = calloc(arrays, sizeof *hidden);
    float *numbers = calloc(arrays * size + 1, sizeof *numbers);
    const int exit_code =
        hidden != NULL && numbers != NULL ? compute(s, &text, hidden, numbers) : run_no_memory();
    free(hidden);
    free(numbers);
    return exit_code;
}

const run_task run_hidden = {.name = "hidden", .given = given, .run = run};
