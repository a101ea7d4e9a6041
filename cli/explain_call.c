/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: the call that is explained. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "terms.h"
#include "text.h"

/* ---- tokens ---- */

/* FNV-1a: a word has the same number, and so the same row, in every sentence. */
static uint32_t number_of(const char *word)
{
    uint32_t hash = 2166136261u;
    for (; *word != '\0'; word++) hash = (hash ^ (unsigned char)*word) * 16777619u;
    return hash;
}

static size_t count_tokens(const char *text)
{
    size_t count = 0;
    for (text += strspn(text, " \t\n"); *text != '\0'; text += strspn(text, " \t\n"), count++)
        text += strcspn(text, " \t\n");
    return count;
}

/* Cut call->text into tokens; 0: no memory. */
static int cut_tokens(explain_call *call, const char *text, size_t count)
{
    const size_t bytes = strlen(text) + 1;
    call->text = malloc(bytes);
    call->tokens = malloc((count + 1) * sizeof *call->tokens);
    call->words = malloc((count + 1) * sizeof *call->words);
    if (call->text == NULL || call->tokens == NULL || call->words == NULL) return 0;
    memcpy(call->text, text, bytes);
    char *at = call->text;
    for (size_t i = 0; i < count; i++) {
        at += strspn(at, " \t\n");
        call->tokens[i] = at;
        at += strcspn(at, " \t\n");
        if (*at != '\0') *at++ = '\0';
        call->words[i] = number_of(call->tokens[i]);
    }
    return 1;
}

/* ---- where the call comes from ---- */

enum { MOST_SETTINGS = sizeof((cli_pairs *)NULL)->text / sizeof(char *) + 1, NAME = 64 };

/* "name=value" apart; a name that does not fit is no option of any scheme. */
static void split_options(const cli_pairs *pairs, char names[][NAME], problem_setting *settings)
{
    for (size_t i = 0; i < pairs->count; i++) {
        const size_t length = strcspn(pairs->text[i], "=");
        snprintf(names[i], NAME, "%.*s", (int)(length < NAME ? length : NAME), pairs->text[i]);
        settings[i] = (problem_setting){names[i], pairs->text[i] + length + 1};
    }
    settings[pairs->count] = (problem_setting){NULL, NULL};
}

/* problem_build takes what a scheme declares and passes over the rest: refuse that here. */
static int check_settings(const explain_values *values, uint32_t level,
                          const problem_setting *settings)
{
    locus_options options;
    locus_error error = {""};
    if (locus_options_init(&options, values->scheme) != LOCUS_OK) return CLI_INTERNAL;
    for (const problem_setting *s = settings; s->name != NULL; s++)
        if (locus_options_set(&options, values->scheme, level, s->name, s->value, &error) !=
            LOCUS_OK)
            return cli_complain("explain", CLI_USAGE, "--option: %s", error.text);
    return CLI_DONE;
}

static int build(explain_call *call, int64_t length)
{
    const explain_values *v = call->values;
    char names[MOST_SETTINGS][NAME];
    problem_setting settings[MOST_SETTINGS];
    locus_error error = {""};
    call->level = scheme_level(locus_scheme_find(v->scheme));
    split_options(&v->options, names, settings);
    const int exit_code = check_settings(v, call->level, settings);
    if (exit_code != CLI_DONE) return exit_code;
    const problem_request request = {
        .scheme = v->scheme,
        .level = call->level,
        .B = 1,
        .H = 4,
        .T = length,
        .D = 16,
        .E = 64,
        .causal = v->causal ? 1 : 0,
        .seed = v->seed,
        .words = call->words,
        .settings = settings,
    };
    const locus_status status = problem_build(&call->problem, &request, &error);
    if (status != LOCUS_OK) return cli_report("explain", status, v->scheme, &error);
    call->problem.request.settings = NULL; /* they end with this function */
    call->config = &call->problem.config;
    call->in = &call->problem.in;
    return CLI_DONE;
}

static int make_up(explain_call *call)
{
    const explain_values *v = call->values;
    if (locus_scheme_find(v->scheme) == NULL) return cli_unknown_scheme("explain", v->scheme);
    if (v->tokens == NULL) return build(call, v->length);
    const size_t count = count_tokens(v->tokens);
    char found[32];
    if (count == 0 || count > EXPLAIN_TOKENS)
        return cli_complain("explain", CLI_USAGE, "--tokens: found %s tokens, expected 1 to %d",
                            text_thousands(found, sizeof found, count), EXPLAIN_TOKENS);
    if (!cut_tokens(call, v->tokens, count))
        return cli_complain("explain", CLI_RESOURCES, "out of memory");
    return build(call, (int64_t)count);
}

static int load(explain_call *call)
{
    locus_error error = {""};
    const locus_status status = locus_case_load(&call->loaded, call->values->path, NULL, &error);
    if (status != LOCUS_OK) return cli_report("explain", status, call->values->path, &error);
    call->level = locus_case_level(call->loaded);
    call->config = locus_case_config(call->loaded);
    call->in = locus_case_inputs(call->loaded);
    return CLI_DONE;
}

/* ---- opening ---- */

static int check_index(const char *name, uint32_t index, int64_t count)
{
    if (index == EXPLAIN_NONE || (int64_t)index < count) return CLI_DONE;
    return cli_complain("explain", CLI_USAGE, "--%s: found %u, expected 0 to %" PRId64, name,
                        (unsigned)index, count - 1);
}

static int check_indices(const explain_call *call)
{
    const explain_values *v = call->values;
    const locus_explainer_info *info = &call->info;
    char quoted[512];
    if (info->batch * info->heads * info->queries * info->keys == 0)
        return cli_complain("explain", CLI_REFUSED,
                            "%s: found %" PRId64 " queries and %" PRId64 " keys in %" PRId64
                            " heads of batch %" PRId64 ", expected a pair at least",
                            text_quote(quoted, sizeof quoted, v->path), info->queries, info->keys,
                            info->heads, info->batch);
    int exit_code = check_index("batch", v->batch, info->batch);
    if (exit_code == CLI_DONE) exit_code = check_index("head", v->head, info->heads);
    if (exit_code == CLI_DONE) exit_code = check_index("query", v->query, info->queries);
    if (exit_code == CLI_DONE) exit_code = check_index("key", v->key, info->keys);
    return exit_code;
}

static int prepare(explain_call *call)
{
    locus_error error = {""};
    const locus_status status =
        locus_explainer_new(&call->explainer, call->level, call->config, call->in, &error);
    if (status != LOCUS_OK) return cli_report("explain", status, call->values->path, &error);
    call->info.size = sizeof call->info;
    locus_explainer_describe(call->explainer, &call->info);
    for (size_t t = 0; t < call->info.terms && t < EXPLAIN_TERMS; t++)
        call->terms[t] = locus_explainer_term_at(call->explainer, t);
    return check_indices(call);
}

int explain_open(explain_call *call, const explain_values *values)
{
    memset(call, 0, sizeof *call);
    call->values = values;
    int exit_code = values->path != NULL ? load(call) : make_up(call);
    if (exit_code == CLI_DONE) exit_code = prepare(call);
    if (exit_code != CLI_DONE) explain_close(call);
    return exit_code;
}

void explain_close(explain_call *call)
{
    locus_explainer_free(call->explainer);
    locus_case_free(call->loaded);
    problem_free(&call->problem);
    free(call->text);
    free(call->tokens);
    free(call->words);
    memset(call, 0, sizeof *call);
}
