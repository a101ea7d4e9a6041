/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain MODEL: which terms the heads live on. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "explain.h"
#include "json.h"
#include "text.h"

enum { PERCENT = 9 }; /* columns of one at least */

static int width_of(const model_shares *s, size_t term)
{
    const size_t length = strlen(s->term[term].name);
    return (int)(length > PERCENT ? length : PERCENT);
}

static const double *shares_of(const model_shares *s, size_t term, int64_t layer)
{
    return s->share + ((int64_t)term * s->layers + layer) * s->heads;
}

/* Over the heads of a layer whose scores vary at all. */
static double mean_of(const model_shares *s, size_t term, int64_t layer)
{
    const double *share = shares_of(s, term, layer);
    double sum = 0.0;
    int64_t count = 0;
    for (int64_t h = 0; h < s->heads; h++) {
        if (!isfinite(share[h])) continue;
        sum += share[h];
        count++;
    }
    return count > 0 ? sum / (double)count : NAN;
}

static void print_percent(double share, int width)
{
    if (isfinite(share))
        printf("  %*.1f %%", width - 2, 100.0 * share);
    else
        printf("  %*s", width, "-");
}

/* The head of a layer in which a term weighs most. */
static int64_t strongest(const model_shares *s, size_t term, int64_t layer)
{
    const double *share = shares_of(s, term, layer);
    int64_t best = 0;
    for (int64_t h = 1; h < s->heads; h++)
        if (share[h] > share[best] || !isfinite(share[best])) best = h;
    return best;
}

static void print_table(const model_call *model, const model_shares *s)
{
    text_print(stdout, model->folder);
    printf(": %s%s, %" PRId64 " layers, %" PRId64 " heads, %s, %" PRId64 " tokens\n\n",
           model->info.family, model_stack_note(model), s->layers, s->heads, model->info.scheme,
           model->tokens);
    printf("%slayer", text_bold());
    for (size_t t = 0; t < s->terms; t++) printf("  %*s", width_of(s, t), s->term[t].name);
    printf("   most in head%s\n", text_plain());
    for (int64_t layer = 0; layer < s->layers; layer++) {
        printf("%5" PRId64, layer);
        for (size_t t = 0; t < s->terms; t++) print_percent(mean_of(s, t, layer), width_of(s, t));
        printf("   ");
        for (size_t t = 0; t < s->terms; t++) {
            const int64_t head = strongest(s, t, layer);
            printf("%s%" PRId64 " (%.0f %%)", t > 0 ? ", " : "", head,
                   100.0 * shares_of(s, t, layer)[head]);
        }
        putchar('\n');
    }
    puts(
        "\nshare of each term in what the scores vary by along the keys of a query, mean of the heads:\n"
        "sum cov(term, score) / sum var(score); below 0: the term works against the others");
}

static void print_json(const model_call *model, const token_list *names, const model_shares *s)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_text(&j, "model", model->folder);
    json_text(&j, "family", model->info.family);
    json_text(&j, "scheme", model->info.scheme);
    if (model_call_has_stacks(model)) json_text(&j, "stack", model_stack_at(model->stack));
    json_inline_array(&j, "tokens");
    for (size_t i = 0; i < names->count; i++) json_text(&j, NULL, names->names[i]);
    json_end(&j);
    json_array(&j, "terms");
    for (size_t t = 0; t < s->terms; t++) {
        json_object(&j, NULL);
        json_text(&j, "name", s->term[t].name);
        json_text(&j, "formula", s->term[t].formula);
        json_array(&j, "share");
        for (int64_t layer = 0; layer < s->layers; layer++) {
            json_inline_array(&j, NULL);
            for (int64_t h = 0; h < s->heads; h++) json_real(&j, NULL, shares_of(s, t, layer)[h]);
            json_end(&j);
        }
        json_end(&j);
        json_end(&j);
    }
    json_end(&j);
    json_end(&j);
}

int explain_shares(const explain_values *values)
{
    model_call model;
    model_shares shares;
    token_list names = {.count = 0};
    const model_choice choice = {.command = "explain",
                                 .folder = values->path,
                                 .text = values->text,
                                 .tokenizer = values->tokenizer,
                                 .stack = values->stack,
                                 .decoder_ids = values->decoder_ids,
                                 .most = EXPLAIN_TOKENS};
    int exit_code = model_call_open(&model, &choice);
    if (exit_code != CLI_DONE) return exit_code;
    exit_code = model_call_names(&model, MODEL_KEYS, &names, 0);
    if (exit_code == CLI_DONE) exit_code = model_shares_new(&shares, &model);
    if (exit_code == CLI_DONE) {
        if (values->json)
            print_json(&model, &names, &shares);
        else
            print_table(&model, &shares);
        model_shares_free(&shares);
    }
    tokens_free(&names);
    model_call_close(&model);
    return exit_code;
}
