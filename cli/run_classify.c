/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task classify: the labels of a text. */
#include <stdlib.h>

#include "run.h"
#include "text.h"

enum { MOST_IN_LINE = 5 }; /* labels, where there is one line per text */

static int given(const locus_model_info *info) { return info->head == LOCUS_MODEL_CLASSIFY; }

/* "0.9731285 positive"; some labels hold blanks, so the number comes first. */
static void print_label(const run_session *s, const float *row, int64_t label)
{
    printf("%.7f ", run_probability(&s->info, row, label));
    text_print(stdout, locus_model_label(s->model, label));
}

/* The best ones in one line, so that line i of the output belongs to line i of the input. */
static void print_line(const run_session *s, float *row)
{
    const int64_t labels = s->info.labels;
    int64_t best[MOST_IN_LINE];
    const int64_t count = labels < MOST_IN_LINE ? labels : MOST_IN_LINE;
    for (int64_t n = 0; n < count; n++) {
        best[n] = -1;
        for (int64_t c = 0; c < labels; c++) {
            int taken = 0;
            for (int64_t i = 0; i < n; i++) taken |= best[i] == c;
            if (!taken && (best[n] < 0 || row[c] > row[best[n]])) best[n] = c;
        }
        if (n > 0) putchar('\t');
        print_label(s, row, best[n]);
    }
    putchar('\n');
}

static void print_list(const run_session *s, const float *row)
{
    for (int64_t c = 0; c < s->info.labels; c++) {
        print_label(s, row, c);
        putchar('\n');
    }
}

static void print_json(const run_session *s, const run_text *text, const float *row)
{
    json j = {.out = stdout};
    run_json_begin(&j, s, text);
    run_json_numbers(&j, "logits", row, s->info.labels);
    json_inline_object(&j, "labels");
    for (int64_t c = 0; c < s->info.labels; c++)
        json_real(&j, locus_model_label(s->model, c), run_probability(&s->info, row, c));
    json_end(&j);
    json_end(&j);
}

static int run(run_session *s)
{
    const int64_t count = locus_texts_count(s->texts), labels = s->info.labels;
    float *logits = calloc((size_t)(count * labels) + 1, sizeof *logits);
    if (logits == NULL) return run_no_memory();
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    const int exit_code = run_forward(s, &results);
    for (int64_t t = 0; exit_code == CLI_DONE && t < count; t++) {
        const run_text text = run_text_at(s, t);
        float *row = logits + t * labels;
        if (s->values->json)
            print_json(s, &text, row);
        else if (s->several)
            print_line(s, row);
        else
            print_list(s, row);
    }
    free(logits);
    return exit_code;
}

const run_task run_classify = {.name = "classify", .given = given, .run = run};
