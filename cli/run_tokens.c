/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task tokens: a label for every token. */
#include <stdlib.h>

#include "run.h"
#include "text.h"

static int given(const locus_model_info *info) { return info->head == LOCUS_MODEL_TAG; }

static void print_plain(const run_session *s, const run_text *text, const float *logits)
{
    const int64_t labels = s->info.labels;
    for (int64_t i = 0; i < text->count; i++) {
        const float *row = logits + i * labels;
        const int64_t best = run_best(row, labels);
        run_print_token(s, text->ids[i]);
        putchar(' ');
        text_print(stdout, locus_model_label(s->model, best));
        printf(" %.7f\n", run_probability(&s->info, row, best));
    }
    if (s->several) putchar('\n');
}

static void print_json(const run_session *s, const run_text *text, const float *logits)
{
    json j = {.out = stdout};
    const int64_t labels = s->info.labels;
    run_json_begin(&j, s, text);
    json_inline_array(&j, "logits");
    for (int64_t i = 0; i < text->count; i++)
        run_json_numbers(&j, NULL, logits + i * labels, labels);
    json_end(&j);
    json_inline_array(&j, "tags");
    for (int64_t i = 0; i < text->count; i++)
        json_text(&j, NULL, locus_model_label(s->model, run_best(logits + i * labels, labels)));
    json_end(&j);
    json_end(&j);
}

static int run(run_session *s)
{
    const int64_t count = locus_texts_count(s->texts), labels = s->info.labels;
    const int64_t tokens = locus_texts_offsets(s->texts)[count];
    float *logits = calloc((size_t)(tokens * labels) + 1, sizeof *logits);
    if (logits == NULL) return run_no_memory();
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    const int exit_code = run_forward(s, &results);
    for (int64_t t = 0; exit_code == CLI_DONE && t < count; t++) {
        const run_text text = run_text_at(s, t);
        const float *rows = logits + text.first * labels;
        if (s->values->json)
            print_json(s, &text, rows);
        else
            print_plain(s, &text, rows);
    }
    free(logits);
    return exit_code;
}

const run_task run_tokens = {.name = "tokens", .given = given, .run = run};
