/* SPDX-License-Identifier: Apache-2.0 */
/* locus inspect MODEL: what a folder holds, what it can do, what it would refuse. */
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "inspect.h"
#include "json.h"
#include "run.h"
#include "text.h"

enum { VALUE = 48, MOST_LABELS = 12, MOST_REFUSALS = 16, REFUSAL = 320 };

typedef struct inspection {
    const char *folder;
    locus_model *model;
    locus_model_info info;
    locus_tokenizer *tokenizer; /* NULL: none that can be read */
    locus_tokenizer_info words;
    locus_config config; /* of attention */
    char refusals[MOST_REFUSALS][REFUSAL];
    size_t refusal_count;
} inspection;

/* ---- what would be refused ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static void
refuse(inspection *x, const char *format, ...)
{
    va_list arguments;
    if (x->refusal_count == MOST_REFUSALS) return;
    va_start(arguments, format);
    vsnprintf(x->refusals[x->refusal_count++], REFUSAL, format, arguments);
    va_end(arguments);
}

static void find_refusals(inspection *x, const locus_error *tokenizer_error)
{
    if (x->info.features > 0)
        refuse(x, "TEXT and --ids: it takes rows of %" PRId64 " numbers, --features FILE",
               x->info.features);
    else if (x->tokenizer == NULL)
        refuse(x, "TEXT: %s; --ids work", tokenizer_error->text);
    if (x->info.most_tokens > 0 && x->info.cut_tokens == 0)
        refuse(x, "texts of more than %" PRId64 " tokens, unless --truncate cuts them",
               x->info.most_tokens);
    if (x->tokenizer != NULL && (int64_t)x->words.vocabulary > x->info.vocabulary)
        refuse(x, "ids %" PRId64 " to %zu of the tokenizer: the table has %" PRId64 " rows",
               x->info.vocabulary, x->words.vocabulary - 1, x->info.vocabulary);
    for (size_t i = 0; run_task_at(i) != NULL; i++)
        if (!run_task_at(i)->given(&x->info))
            refuse(x, "--task %s: the checkpoint has no head for it", run_task_at(i)->name);
}

/* ---- options of the scheme ---- */

/* 0: it has no value. */
static int read_value(char *text, const locus_option_info *option, const locus_options *options)
{
    const char *field = (const char *)options + option->offset;
    if (option->kind == LOCUS_OPTION_REAL) {
        const double real = *(const double *)(const void *)field;
        if (real == LOCUS_UNSET_REAL) return 0;
        text_real(text, VALUE, real);
        return 1;
    }
    const int64_t whole = *(const int64_t *)(const void *)field;
    if (whole == LOCUS_UNSET) return 0;
    snprintf(text, VALUE, "%" PRId64, whole);
    for (const locus_choice *c = option->choices; c != NULL && c->name != NULL; c++)
        if (c->value == whole) snprintf(text, VALUE, "%s", c->name);
    return 1;
}

/* The next option of attention that has a value, from *index on; NULL: none is left. */
static const locus_option_info *next_option(const inspection *x, size_t *index, char *value)
{
    const locus_scheme_info *scheme = locus_scheme_find(x->info.scheme);
    const locus_option_info *option;
    while (x->config.scheme != NULL && (option = locus_scheme_option(scheme, (*index)++)) != NULL)
        if ((option->levels & LOCUS_ATTEND) != 0 && read_value(value, option, &x->config.options))
            return option;
    return NULL;
}

/* ---- printing ---- */

static void row(const char *name) { printf("%s%-12s%s", text_bold(), name, text_plain()); }

static void row_number(const char *name, int64_t number, const char *unit)
{
    char digits[32];
    row(name);
    printf("%s%s\n", text_thousands(digits, sizeof digits, (uint64_t)number), unit);
}

static const char *pooling_name(const locus_model_info *info)
{
    static const char *const names[] = {"cls", "mean", "max", "last", "root", "rising"};
    return info->pooling < sizeof names / sizeof *names ? names[info->pooling] : "other";
}

/* What happens to texts before they are computed. */
static void print_texts(const inspection *x)
{
    if (x->info.prompt == NULL && x->info.cut_tokens == 0) return;
    row("texts");
    if (x->info.prompt != NULL) {
        fputs("behind the prompt \"", stdout);
        text_print(stdout, x->info.prompt);
        printf("\"%s", x->info.cut_tokens > 0 ? ", " : "");
    }
    if (x->info.cut_tokens > 0) printf("cut to %" PRId64 " tokens", x->info.cut_tokens);
    putchar('\n');
}

static void print_scheme(const inspection *x)
{
    char value[VALUE];
    const locus_option_info *option;
    row("positions");
    printf("%s\n", x->info.positions);
    row("scheme");
    printf("%s", x->info.scheme);
    for (size_t i = 0; (option = next_option(x, &i, value)) != NULL;)
        printf("  %s=%s", option->name, value);
    putchar('\n');
}

static void print_tasks(const inspection *x)
{
    const run_task *preset = run_task_default(&x->info);
    row("tasks");
    printf("%s (default)", preset->name);
    for (size_t i = 0; run_task_at(i) != NULL; i++)
        if (run_task_at(i) != preset && run_task_at(i)->given(&x->info))
            printf(", %s", run_task_at(i)->name);
    putchar('\n');
    row("embedding");
    printf("%s\n", x->info.embedding);
    print_texts(x);
    if (x->info.labels == 0) return;
    row("labels");
    for (int64_t i = 0; i < x->info.labels && i < MOST_LABELS; i++) {
        if (i > 0) printf(", ");
        text_print(stdout, locus_model_label(x->model, i));
    }
    if (x->info.labels > MOST_LABELS) printf(", ... %" PRId64 " in all", x->info.labels);
    putchar('\n');
}

static void print_plain(const inspection *x)
{
    char memory[32];
    const locus_model_info *info = &x->info;
    row("family");
    printf("%s\n", info->family);
    row("sizes");
    printf("%" PRId64 " layers, width %" PRId64 ", %" PRId64 " heads of %" PRId64
           ", feed-forward %" PRId64 "\n",
           info->layers, info->width, info->heads, info->head_dim, info->feed_forward);
    row_number("vocabulary", info->vocabulary, " rows");
    row_number("parameters", info->parameters, "");
    row("memory");
    printf("%s bytes, packed for %s\n", text_thousands(memory, sizeof memory, info->bytes),
           info->isa);
    if (info->precision != LOCUS_EXACT) {
        row("precision");
        printf("%s: %s\n", locus_precision_name(info->precision),
               locus_precision_keeps(info->precision));
    }
    print_scheme(x);
    row("tokenizer");
    if (x->tokenizer != NULL)
        printf("%s, %zu tokens, of %s\n", x->words.kind, x->words.vocabulary, x->words.source);
    else
        puts("none");
    print_tasks(x);
    for (size_t i = 0; i < x->refusal_count; i++) {
        row(i == 0 ? "refuses" : "");
        text_print(stdout, x->refusals[i]);
        putchar('\n');
    }
}

static void json_scheme(json *j, const inspection *x)
{
    char value[VALUE];
    const locus_option_info *option;
    json_text(j, "positions", x->info.positions);
    json_text(j, "scheme", x->info.scheme);
    json_inline_object(j, "options");
    for (size_t i = 0; (option = next_option(x, &i, value)) != NULL;)
        json_text(j, option->name, value);
    json_end(j);
}

static void json_tasks(json *j, const inspection *x)
{
    json_text(j, "task", run_task_default(&x->info)->name);
    json_inline_array(j, "tasks");
    for (size_t i = 0; run_task_at(i) != NULL; i++)
        if (run_task_at(i)->given(&x->info)) json_text(j, NULL, run_task_at(i)->name);
    json_end(j);
    json_text(j, "pooling", pooling_name(&x->info));
    json_boolean(j, "unit_length", (int)x->info.unit_length);
    json_text(j, "embedding", x->info.embedding);
    json_integer(j, "embedding_width", x->info.embedding_width);
    json_integer(j, "cut_tokens", x->info.cut_tokens);
    json_text(j, "prompt", x->info.prompt);
    json_inline_array(j, "labels");
    for (int64_t i = 0; i < x->info.labels; i++) json_text(j, NULL, locus_model_label(x->model, i));
    json_end(j);
}

static void print_json(const inspection *x)
{
    json j = {.out = stdout};
    const locus_model_info *info = &x->info;
    json_object(&j, NULL);
    json_text(&j, "model", x->folder);
    if (x->model != NULL) {
        json_text(&j, "family", info->family);
        json_integer(&j, "layers", info->layers);
        json_integer(&j, "width", info->width);
        json_integer(&j, "heads", info->heads);
        json_integer(&j, "head_dim", info->head_dim);
        json_integer(&j, "feed_forward", info->feed_forward);
        json_integer(&j, "vocabulary", info->vocabulary);
        json_integer(&j, "types", info->types);
        json_integer(&j, "most_tokens", info->most_tokens);
        json_integer(&j, "parameters", info->parameters);
        json_size(&j, "bytes", info->bytes);
        json_text(&j, "precision", locus_precision_name(info->precision));
        json_text(&j, "keeps", locus_precision_keeps(info->precision));
        json_scheme(&j, x);
        json_text(&j, "tokenizer", x->tokenizer != NULL ? x->words.kind : NULL);
        json_text(&j, "tokenizer_file", x->tokenizer != NULL ? x->words.source : NULL);
        json_tasks(&j, x);
    }
    json_array(&j, "refuses");
    for (size_t i = 0; i < x->refusal_count; i++) json_text(&j, NULL, x->refusals[i]);
    json_end(&j);
    json_end(&j);
}

/* ---- looking ---- */

/* A tokenizer that is not there or is refused is a finding; one that cannot be read for want of memory
 * or of a file is not. */
static locus_status look(inspection *x, locus_error *error)
{
    locus_tensors in;
    locus_model_describe(x->model, &x->info);
    if (locus_model_attention(x->model, 0, NULL, 0, &x->config, &in, NULL) != LOCUS_OK)
        x->config.scheme = NULL;
    const locus_status status = locus_tokenizer_open(&x->tokenizer, x->folder, NULL, error);
    if (status == LOCUS_ERR_MEMORY) return status;
    if (status == LOCUS_OK && locus_tokenizer_describe(x->tokenizer, &x->words, error) != LOCUS_OK)
        x->words.vocabulary = 0;
    find_refusals(x, error);
    return LOCUS_OK;
}

/* A folder of something else is refused like a file of something else. */
static int holds_a_model(const char *folder)
{
    char path[4096];
    const int length = snprintf(path, sizeof path, "%s/config.json", folder);
    return length > 0 && (size_t)length < sizeof path && access(path, F_OK) == 0;
}

int inspect_model(const char *folder, uint32_t precision, int as_json)
{
    if (!holds_a_model(folder))
        return cli_complain(
            "inspect", CLI_REFUSED,
            "%s: found a folder without config.json, expected the folder of a model", folder);
    const locus_model_config config = {.size = sizeof config, .precision = precision};
    inspection x = {.folder = folder,
                    .info = {.size = sizeof x.info},
                    .words = {.size = sizeof x.words}};
    locus_error error = {""};
    locus_status status = locus_model_open(&x.model, folder, &config, &error);
    if (status == LOCUS_OK) status = look(&x, &error);
    if (status != LOCUS_OK) refuse(&x, "%s", error.text);
    if (as_json)
        print_json(&x);
    else if (status == LOCUS_OK)
        print_plain(&x);
    locus_tokenizer_close(x.tokenizer);
    locus_model_free(x.model);
    return status == LOCUS_OK ? CLI_DONE : cli_report("inspect", status, folder, &error);
}
