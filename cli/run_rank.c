/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --rank QUERY: texts by how well they answer a query, the best first, by a model with one
 * label that reads both. A score is the sigmoid of its logit. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "text.h"

typedef struct ranked {
    char *text;
    size_t bytes;
    int64_t index; /* of the input, from 0 */
    float logit;
} ranked;

typedef struct ranking {
    ranked *list;
    size_t count, scored, room; /* texts that were taken; that have a score */
} ranking;

static int begin(run_session *s)
{
    char quoted[512];
    if (s->info.head != LOCUS_MODEL_CLASSIFY || s->info.labels != 1)
        return cli_complain("run", CLI_REFUSED,
                            "%s: found %" PRId64 " labels, expected one for --rank",
                            text_quote(quoted, sizeof quoted, s->values->model), s->info.labels);
    s->own = calloc(1, sizeof(ranking));
    return s->own != NULL ? CLI_DONE : run_no_memory();
}

static int keep(ranking *r, const locus_text_input *input)
{
    if (r->count == r->room) {
        const size_t room = r->room == 0 ? 64 : 2 * r->room;
        ranked *larger = realloc(r->list, room * sizeof *larger);
        if (larger == NULL) return 0;
        r->list = larger;
        r->room = room;
    }
    char *text = malloc(input->bytes + 1);
    if (text == NULL) return 0;
    if (input->bytes > 0) memcpy(text, input->text, input->bytes);
    text[input->bytes] = '\0';
    r->list[r->count] = (ranked){text, input->bytes, (int64_t)r->count, 0.0F};
    r->count++;
    return 1;
}

static locus_status add(run_session *s, const locus_text_input *input, locus_error *error)
{
    locus_text_input both = *input;
    both.text = s->values->rank;
    both.bytes = strlen(s->values->rank);
    both.pair = input->text;
    both.pair_bytes = input->bytes;
    const locus_status status = locus_texts_add(s->texts, &both, error);
    if (status != LOCUS_OK || keep(s->own, input)) return status;
    snprintf(error->text, sizeof error->text, "out of memory");
    return LOCUS_ERR_MEMORY;
}

static int run(run_session *s)
{
    ranking *r = s->own;
    const int64_t count = locus_texts_count(s->texts);
    float *logits = calloc((size_t)count + 1, sizeof *logits);
    if (logits == NULL) return run_no_memory();
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    const int exit_code = run_forward(s, &results);
    for (int64_t t = 0; exit_code == CLI_DONE && t < count; t++)
        r->list[r->scored++].logit = logits[t];
    free(logits);
    return exit_code;
}

/* NaN last. */
static int by_logit(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (isnan(x->logit) != isnan(y->logit)) return isnan(x->logit) ? 1 : -1;
    if (x->logit != y->logit && !isnan(x->logit)) return x->logit < y->logit ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static int finish(run_session *s)
{
    ranking *r = s->own;
    qsort(r->list, r->scored, sizeof *r->list, by_logit);
    for (size_t i = 0; i < r->scored; i++) {
        const ranked *one = &r->list[i];
        const double score = 1.0 / (1.0 + exp(-(double)one->logit));
        if (s->values->json) {
            json j = {.out = stdout};
            json_inline_object(&j, NULL);
            json_size(&j, "index", (uint64_t)one->index);
            json_real(&j, "score", score);
            json_float(&j, "logit", one->logit);
            json_text(&j, "text", one->text);
            json_end(&j);
            continue;
        }
        printf("%.7f ", score);
        text_print(stdout, one->text);
        putchar('\n');
    }
    return CLI_DONE;
}

static void end(run_session *s)
{
    ranking *r = s->own;
    for (size_t i = 0; r != NULL && i < r->count; i++) free(r->list[i].text);
    if (r != NULL) free(r->list);
    free(r);
}

const run_task run_rank = {
    .name = "rank", .run = run, .begin = begin, .add = add, .finish = finish, .end = end};
