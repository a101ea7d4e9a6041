/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task answer: the part of a text that answers a question, by a head of spans. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "run.h"
#include "text.h"

enum { MOST_TOKENS = 15 }; /* of an answer, as in the pipelines of transformers */

typedef struct span {
    int64_t first, last; /* tokens of the text; first -1: there is none */
    double probability;
} span;

static int given(const locus_model_info *info) { return info->head == LOCUS_MODEL_SPAN; }

/* 1: an answer may lie there: in the second segment of a pair, else in the text; never in a token that
 * was added. */
static int may_answer(const uint8_t *segments, int64_t token, int second)
{
    return segments[token] == second;
}

/* Softmax of where it begins times softmax of where it ends, both over the tokens of an answer. */
static span best_span(const float *logits, const uint8_t *segments, int64_t count)
{
    span best = {-1, -1, 0.0};
    double most[2] = {-INFINITY, -INFINITY}, sum[2] = {0.0, 0.0}, score = -INFINITY;
    int second = 0;
    for (int64_t i = 0; i < count; i++) second |= segments[i] == 1;
    for (int end = 0; end < 2; end++) {
        for (int64_t i = 0; i < count; i++)
            if (may_answer(segments, i, second))
                most[end] = fmax(most[end], (double)logits[2 * i + end]);
        for (int64_t i = 0; i < count; i++)
            if (may_answer(segments, i, second))
                sum[end] += exp((double)logits[2 * i + end] - most[end]);
    }
    for (int64_t i = 0; i < count; i++)
        for (int64_t k = i; k < count && k < i + MOST_TOKENS; k++) {
            const double here = (double)logits[2 * i] + (double)logits[2 * k + 1];
            if (!may_answer(segments, i, second) || !may_answer(segments, k, second)) continue;
            if (here <= score) continue;
            score = here;
            best.first = i;
            best.last = k;
        }
    if (best.first >= 0) best.probability = exp(score - most[0] - most[1]) / (sum[0] * sum[1]);
    return best;
}

/* The tokens of the answer as text; the ids where there is no tokenizer, nothing where there is none. */
static char *text_of(const run_session *s, const run_text *text, span found)
{
    locus_error error = {""};
    size_t bytes = 0;
    char *out = NULL;
    if (s->tokenizer == NULL || found.first < 0) return NULL;
    const uint32_t *ids = (const uint32_t *)text->ids + found.first;
    const size_t count = (size_t)(found.last - found.first + 1);
    locus_status status =
        locus_tokenizer_decode(s->tokenizer, ids, count, 1, NULL, 0, &bytes, &error);
    if (status == LOCUS_OK) out = calloc(bytes + 1, 1);
    if (out != NULL)
        status = locus_tokenizer_decode(s->tokenizer, ids, count, 1, out, bytes, &bytes, &error);
    if (status == LOCUS_OK) return out;
    free(out);
    return NULL;
}

static void print_json(const run_session *s, const run_text *text, const float *logits, span found)
{
    json j = {.out = stdout};
    char *answer = text_of(s, text, found);
    run_json_begin(&j, s, text);
    json_inline_array(&j, "logits");
    for (int64_t i = 0; i < text->count; i++) run_json_numbers(&j, NULL, logits + 2 * i, 2);
    json_end(&j);
    json_integer(&j, "first", found.first);
    json_integer(&j, "last", found.last);
    json_real(&j, "probability", found.probability);
    json_text(&j, "answer", answer);
    json_end(&j);
    free(answer);
}

static void print_plain(const run_session *s, const run_text *text, span found)
{
    char *answer = text_of(s, text, found);
    printf("%.7f ", found.probability);
    if (answer != NULL)
        text_print(stdout, answer);
    else
        printf("%" PRId64 " %" PRId64, found.first, found.last);
    putchar('\n');
    free(answer);
}

static int run(run_session *s)
{
    const int64_t count = locus_texts_count(s->texts);
    const int64_t tokens = locus_texts_offsets(s->texts)[count];
    float *logits = calloc((size_t)(2 * tokens) + 1, sizeof *logits);
    if (logits == NULL) return run_no_memory();
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    const int exit_code = run_forward(s, &results);
    for (int64_t t = 0; exit_code == CLI_DONE && t < count; t++) {
        const run_text text = run_text_at(s, t);
        const float *rows = logits + 2 * text.first;
        const span found = best_span(rows, locus_texts_segments(s->texts) + text.first, text.count);
        if (s->values->json)
            print_json(s, &text, rows, found);
        else
            print_plain(s, &text, found);
    }
    free(logits);
    return exit_code;
}

const run_task run_answer = {.name = "answer", .given = given, .run = run};
