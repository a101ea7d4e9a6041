/* SPDX-License-Identifier: Apache-2.0 */
/* locus run --labels: which of some labels a text is about, by a model that tells whether a text
 * entails another. Every label becomes a second segment, "This example is LABEL."
 *
 *     score(label) = softmax over the labels of the logit of entailment
 *     --multi-label: e^entailment / (e^entailment + e^contradiction), each by itself */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "run.h"
#include "text.h"

enum { MOST_LABELS = 1024 };
static const char preset[] = "This example is {}.";

typedef struct zero_shot {
    char *words;   /* the labels, cut at their commas */
    char **labels; /* [count], in `words`             */
    char **pairs;  /* [count], what is asked          */
    size_t count;
    int64_t entailment, contradiction; /* columns of the head */
} zero_shot;

typedef struct scored {
    const char *label;
    double score;
} scored;

/* ---- what is asked ---- */

static char *trim(char *word)
{
    while (isspace((unsigned char)*word)) word++;
    char *end = word + strlen(word);
    while (end > word && isspace((unsigned char)end[-1])) end--;
    *end = '\0';
    return word;
}

static int cut_labels(zero_shot *z)
{
    for (char *word = z->words; word != NULL;) {
        char *comma = strchr(word, ',');
        if (comma != NULL) *comma = '\0';
        char *label = trim(word);
        if (*label != '\0' && z->count == MOST_LABELS)
            return cli_complain("run", CLI_USAGE, "--labels: more than %d", MOST_LABELS);
        if (*label != '\0') z->labels[z->count++] = label;
        word = comma == NULL ? NULL : comma + 1;
    }
    if (z->count > 0) return CLI_DONE;
    return cli_complain("run", CLI_USAGE, "--labels: expected words with commas between, got none");
}

/* The label where {} stands in the template. */
static int make_pairs(const run_values *v, zero_shot *z)
{
    const char *pattern = v->hypothesis != NULL ? v->hypothesis : preset;
    const char *hole = strstr(pattern, "{}");
    if (hole == NULL)
        return cli_complain("run", CLI_USAGE, "--hypothesis: expected {} where the label goes");
    for (size_t i = 0; i < z->count; i++) {
        const size_t room = strlen(pattern) + strlen(z->labels[i]) + 1;
        z->pairs[i] = malloc(room);
        if (z->pairs[i] == NULL) return run_no_memory();
        snprintf(z->pairs[i], room, "%.*s%s%s", (int)(hole - pattern), pattern, z->labels[i],
                 hole + 2);
    }
    return CLI_DONE;
}

/* The label that begins with "entail", as transformers finds it; of the others the first. */
static int find_entailment(run_session *s, zero_shot *z)
{
    static const char word[] = "entail";
    char quoted[512];
    z->entailment = -1;
    for (int64_t c = 0; s->info.head == LOCUS_MODEL_CLASSIFY && c < s->info.labels; c++) {
        const char *label = locus_model_label(s->model, c);
        size_t i = 0;
        while (word[i] != '\0' && tolower((unsigned char)label[i]) == word[i]) i++;
        if (word[i] == '\0' && z->entailment < 0) z->entailment = c;
    }
    z->contradiction = z->entailment == 0 ? s->info.labels - 1 : 0;
    if (z->entailment >= 0 && s->info.labels > 1) return CLI_DONE;
    return cli_complain("run", CLI_REFUSED,
                        "%s: config.json: id2label: found no label that begins with entail, "
                        "expected one for --labels",
                        text_quote(quoted, sizeof quoted, s->values->model));
}

static int begin(run_session *s)
{
    zero_shot *z = calloc(1, sizeof *z);
    if (z == NULL) return run_no_memory();
    s->own = z;
    const size_t bytes = strlen(s->values->labels) + 1;
    z->words = malloc(bytes);
    z->labels = calloc(bytes, sizeof *z->labels);
    z->pairs = calloc(bytes, sizeof *z->pairs);
    if (z->words == NULL || z->labels == NULL || z->pairs == NULL) return run_no_memory();
    memcpy(z->words, s->values->labels, bytes);
    int exit_code = cut_labels(z);
    if (exit_code == CLI_DONE) exit_code = make_pairs(s->values, z);
    if (exit_code == CLI_DONE) exit_code = find_entailment(s, z);
    s->per_input = (int64_t)z->count;
    return exit_code;
}

static locus_status add(run_session *s, const locus_text_input *input, locus_error *error)
{
    const zero_shot *z = s->own;
    locus_status status = LOCUS_OK;
    for (size_t i = 0; status == LOCUS_OK && i < z->count; i++) {
        locus_text_input both = *input;
        both.pair = z->pairs[i];
        both.pair_bytes = strlen(z->pairs[i]);
        status = locus_texts_add(s->texts, &both, error);
    }
    return status;
}

static void end(run_session *s)
{
    zero_shot *z = s->own;
    if (z == NULL) return;
    for (size_t i = 0; z->pairs != NULL && i < z->count; i++) free(z->pairs[i]);
    free(z->pairs);
    free(z->labels);
    free(z->words);
    free(z);
}

/* ---- answers ---- */

static int by_score(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    if (isnan(x->score) != isnan(y->score)) return isnan(x->score) ? 1 : -1;
    if (x->score != y->score && !isnan(x->score)) return x->score < y->score ? 1 : -1;
    return x->label < y->label ? -1 : x->label > y->label; /* as they were given */
}

/* rows: [count labels, columns of the head]. */
static void score(const run_session *s, const float *rows, scored *out)
{
    const zero_shot *z = s->own;
    const int64_t columns = s->info.labels;
    const int apart = s->values->multi_label || z->count == 1;
    for (size_t i = 0; i < z->count; i++) {
        const double own = rows[(int64_t)i * columns + z->entailment];
        double sum = 0.0;
        for (size_t j = 0; j < z->count; j++)
            sum += exp((double)rows[(int64_t)j * columns + z->entailment] - own);
        if (apart) sum = 1.0 + exp((double)rows[(int64_t)i * columns + z->contradiction] - own);
        out[i] = (scored){z->labels[i], 1.0 / sum};
    }
    qsort(out, z->count, sizeof *out, by_score);
}

static void print_json(const zero_shot *z, const scored *list)
{
    json j = {.out = stdout};
    json_inline_object(&j, NULL);
    json_inline_array(&j, "labels");
    for (size_t i = 0; i < z->count; i++) json_text(&j, NULL, list[i].label);
    json_end(&j);
    json_inline_array(&j, "scores");
    for (size_t i = 0; i < z->count; i++) json_real(&j, NULL, list[i].score);
    json_end(&j);
    json_end(&j);
}

static void print_plain(const run_session *s, const zero_shot *z, const scored *list)
{
    for (size_t i = 0; i < z->count; i++) {
        if (s->several && i > 0) putchar('\t');
        printf("%.7f ", list[i].score);
        text_print(stdout, list[i].label);
        if (!s->several) putchar('\n');
    }
    if (s->several) putchar('\n');
}

static int run(run_session *s)
{
    const zero_shot *z = s->own;
    const int64_t count = locus_texts_count(s->texts), columns = s->info.labels;
    float *logits = calloc((size_t)(count * columns) + 1, sizeof *logits);
    scored *list = calloc(z->count, sizeof *list);
    int exit_code = logits == NULL || list == NULL ? run_no_memory() : CLI_DONE;
    const locus_model_results results = {.size = sizeof results, .logits = logits};
    if (exit_code == CLI_DONE) exit_code = run_forward(s, &results);
    for (int64_t t = 0; exit_code == CLI_DONE && t < count / s->per_input; t++) {
        score(s, logits + t * s->per_input * columns, list);
        if (s->values->json)
            print_json(z, list);
        else
            print_plain(s, z, list);
    }
    free(list);
    free(logits);
    return exit_code;
}

const run_task run_zero_shot = {
    .name = "zero-shot", .run = run, .begin = begin, .add = add, .end = end};
