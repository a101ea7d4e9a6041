/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --task fill: what may stand behind a mask. */
#include <inttypes.h>
#include <stdlib.h>

#include "pieces.h"
#include "run.h"
#include "text.h"

enum { BEST = 5 }; /* tokens of each mask */

static int given(const locus_model_info *info) { return info->head == LOCUS_MODEL_FILL; }

typedef struct fill {
    const run_session *s;
    int64_t mask;  /* id */
    int32_t *rows; /* [count] tokens of the batch that are masks, ascending */
    int64_t count;
    float *logits; /* [count, vocabulary] */
} fill;

static void find_masks(fill *f, int64_t tokens)
{
    const int32_t *ids = locus_texts_ids(f->s->texts);
    for (int64_t i = 0; i < tokens; i++)
        if (ids[i] == f->mask) f->rows[f->count++] = (int32_t)i;
}

/* ---- printing ---- */

static void json_mask(json *j, const fill *f, int64_t index, const float *logits)
{
    int64_t best[BEST];
    double p[BEST];
    const int64_t found = locus_model_top(logits, f->s->info.vocabulary, BEST, best, p);
    json_inline_object(j, NULL);
    json_integer(j, "index", index);
    json_inline_array(j, "top");
    for (int64_t n = 0; n < found; n++) {
        size_t bytes = 0;
        const char *token = locus_tokenizer_token(f->s->tokenizer, (uint32_t)best[n], &bytes);
        json_inline_object(j, NULL);
        json_integer(j, "id", best[n]);
        json_bytes(j, "token", token == NULL ? "" : token, bytes);
        json_real(j, "p", p[n]);
        json_end(j);
    }
    json_end(j);
    json_end(j);
}

/* "7  0.4183021 paris  0.0714204 lille ...": place, then the best ones. */
static void print_mask(const fill *f, int64_t index, const float *logits)
{
    int64_t best[BEST];
    double p[BEST];
    const int64_t found = locus_model_top(logits, f->s->info.vocabulary, BEST, best, p);
    printf("%" PRId64, index);
    for (int64_t n = 0; n < found; n++) {
        printf("\t%.7f ", p[n]);
        run_print_token(f->s, (int32_t)best[n]);
    }
    putchar('\n');
}

/* The masks of one text; `at` is the first of the batch that it may have. */
static int64_t print_text(const fill *f, const run_text *text, int64_t at)
{
    json j = {.out = stdout};
    if (f->s->values->json) {
        run_json_begin(&j, f->s, text);
        json_inline_array(&j, "masks");
    }
    for (; at < f->count && f->rows[at] < text->first + text->count; at++) {
        const float *logits = f->logits + at * f->s->info.vocabulary;
        if (f->s->values->json)
            json_mask(&j, f, f->rows[at] - text->first, logits);
        else
            print_mask(f, f->rows[at] - text->first, logits);
    }
    if (f->s->values->json) {
        json_end(&j);
        json_end(&j);
    } else if (f->s->several) {
        putchar('\n');
    }
    return at;
}

/* ---- the task ---- */

static int compute(run_session *s, fill *f)
{
    locus_error error = {""};
    f->logits = calloc((size_t)(f->count * s->info.vocabulary) + 1, sizeof *f->logits);
    if (f->logits == NULL) return run_no_memory();
    const locus_model_results results = {.size = sizeof results, .logits = f->logits};
    const locus_status status =
        locus_texts_forward_rows(s->texts, f->rows, f->count, &results, &error);
    if (status != LOCUS_OK) return cli_report("run", status, NULL, &error);
    int64_t at = 0;
    for (int64_t t = 0; t < locus_texts_count(s->texts); t++) {
        const run_text text = run_text_at(s, t);
        at = print_text(f, &text, at);
    }
    return CLI_DONE;
}

static int run(run_session *s)
{
    char quoted[512];
    fill f = {.s = s, .mask = locus_tokenizer_special(s->tokenizer, "mask")};
    const int64_t tokens = locus_texts_offsets(s->texts)[locus_texts_count(s->texts)];
    if (f.mask < 0)
        return cli_complain("run", CLI_REFUSED, "%s: its tokenizer has no mask",
                            text_quote(quoted, sizeof quoted, s->values->model));
    f.rows = calloc((size_t)tokens + 1, sizeof *f.rows);
    if (f.rows == NULL) return run_no_memory();
    find_masks(&f, tokens);
    const int exit_code = compute(s, &f);
    free(f.rows);
    free(f.logits);
    return exit_code;
}

const run_task run_fill = {.name = "fill", .given = given, .run = run};
