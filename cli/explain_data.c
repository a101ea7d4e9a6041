/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: views for programs. */
#include <inttypes.h>

#include "explain.h"
#include "json.h"
#include "terms.h"
#include "text.h"

/* ---- JSON ---- */

static void json_names(json *j, const char *key, const token_list *names)
{
    json_inline_array(j, key);
    for (size_t i = 0; i < names->count; i++) json_text(j, NULL, names->names[i]);
    json_end(j);
}

static void json_call(json *j, const explain_call *call)
{
    const explain_values *v = call->values;
    const locus_explain_block block = explain_block_of(call);
    if (call->model.model != NULL) {
        json_text(j, "model", v->path);
        json_text(j, "family", call->model.info.family);
        if (model_call_has_stacks(&call->model))
            json_text(j, "stack", model_stack_at(call->model.stack));
        json_size(j, "layer", v->layer);
        json_names(j, "tokens", &call->tokens);
        if (call->asking.names != NULL) json_names(j, "query_tokens", &call->asking);
    } else {
        json_text(j, "case", v->path);
    }
    json_text(j, "scheme", call->config->scheme);
    json_text(j, "level", level_text(call->level));
    if (v->path == NULL)
        json_size(j, "seed", v->seed);
    else
        json_null(j, "seed");
    json_integer(j, "batch", block.batch);
    json_integer(j, "head", block.head);
    json_integer(j, "queries", call->info.queries);
    json_integer(j, "keys", call->info.keys);
    json_integer(j, "query_offset", call->info.query_offset);
    json_real(j, "scale", call->info.scale);
}

static const char *token_at(const explain_call *call, int64_t n)
{
    return call->tokens.names != NULL ? call->tokens.names[n] : NULL;
}

static void json_pair(json *j, const explain_call *call, const explain_row *row, int64_t c)
{
    const int64_t n = row->first + c;
    json_inline_object(j, NULL);
    json_integer(j, "key", n);
    json_text(j, "token", token_at(call, n));
    if (explain_across(call))
        json_null(j, "distance");
    else
        json_integer(j, "distance", call->info.query_offset + row->query - n);
    json_boolean(j, "visible", row->visible[c]);
    json_inline_array(j, "terms");
    for (size_t t = 0; t < call->info.terms; t++)
        json_real(j, NULL, row->terms[(int64_t)t * row->keys + c]);
    json_end(j);
    json_real(j, "score", row->score[c]);
    json_real(j, "weight", row->weight[c]);
    json_end(j);
}

void explain_json_row(const explain_call *call, const explain_row *row)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_call(&j, call);
    json_array(&j, "terms");
    for (size_t t = 0; t < call->info.terms; t++) {
        json_inline_object(&j, NULL);
        json_text(&j, "name", call->terms[t]->name);
        json_text(&j, "formula", call->terms[t]->formula);
        json_end(&j);
    }
    json_end(&j);
    json_integer(&j, "query", row->query);
    json_text(&j, "token",
              explain_queries(call) != NULL ? explain_queries(call)[row->query] : NULL);
    json_real(&j, "lse", row->lse);
    json_array(&j, "pairs");
    for (int64_t c = 0; c < row->keys; c++) json_pair(&j, call, row, c);
    json_end(&j);
    json_end(&j);
}

static void json_distance(json *j, const explain_summary *s, int64_t d)
{
    const double *mean = s->by_distance + d;
    json_inline_object(j, NULL);
    json_integer(j, "distance", s->least + d);
    json_integer(j, "pairs", s->count[d]);
    json_inline_array(j, "terms");
    for (size_t t = 0; t + 2 < s->kinds; t++) json_real(j, NULL, mean[(int64_t)t * s->distances]);
    json_end(j);
    json_real(j, "score", mean[(int64_t)(s->kinds - 2) * s->distances]);
    json_real(j, "weight", mean[(int64_t)(s->kinds - 1) * s->distances]);
    json_end(j);
}

void explain_json_summary(const explain_call *call, const explain_summary *s)
{
    json j = {.out = stdout};
    json_object(&j, NULL);
    json_call(&j, call);
    json_integer(&j, "pairs", s->pairs);
    json_array(&j, "terms");
    for (size_t t = 0; t < call->info.terms; t++) {
        json_inline_object(&j, NULL);
        json_text(&j, "name", call->terms[t]->name);
        json_text(&j, "formula", call->terms[t]->formula);
        json_real(&j, "mean_abs", s->mean_abs[t]);
        json_real(&j, "mean", s->mean[t]);
        json_real(&j, "variation", s->share[t]);
        json_end(&j);
    }
    json_end(&j);
    json_array(&j, "distances");
    for (int64_t d = 0; d < s->distances && !explain_across(call); d++)
        if (s->count[d] > 0) json_distance(&j, s, d);
    json_end(&j);
    json_end(&j);
}

/* ---- CSV ---- */

static void csv_real(double value)
{
    char text[40];
    printf(",%s", text_real(text, sizeof text, value));
}

/* In quotes, with quotes doubled; text_print takes care of the rest. */
static void csv_text(const char *text)
{
    putchar('"');
    for (; text != NULL && *text != '\0'; text++) {
        const char one[2] = {*text, '\0'};
        if (*text == '"') putchar('"');
        if ((unsigned char)*text < 0x80)
            text_print(stdout, one);
        else
            putchar(*text);
    }
    putchar('"');
}

static void csv_head(const explain_call *call, const char *first)
{
    printf("%s", first);
    for (size_t t = 0; t < call->info.terms; t++) printf(",%s", call->terms[t]->name);
    puts(",score,weight");
}

void explain_csv_row(const explain_call *call, const explain_row *row)
{
    csv_head(call, "query,key,token,distance,visible");
    for (int64_t c = 0; c < row->keys; c++) {
        const int64_t n = row->first + c;
        printf("%" PRId64 ",%" PRId64 ",", row->query, n);
        if (call->tokens.names != NULL) csv_text(call->tokens.names[n]);
        putchar(',');
        if (!explain_across(call)) printf("%" PRId64, call->info.query_offset + row->query - n);
        printf(",%d", (int)row->visible[c]);
        for (size_t t = 0; t < call->info.terms; t++)
            csv_real(row->terms[(int64_t)t * row->keys + c]);
        csv_real(row->score[c]);
        csv_real(row->weight[c]);
        putchar('\n');
    }
}

void explain_csv_summary(const explain_call *call, const explain_summary *s)
{
    csv_head(call, "distance,pairs");
    for (int64_t d = 0; d < s->distances; d++) {
        if (s->count[d] == 0) continue;
        printf("%" PRId64 ",%" PRId64, s->least + d, s->count[d]);
        for (size_t kind = 0; kind < s->kinds; kind++)
            csv_real(s->by_distance[(int64_t)kind * s->distances + d]);
        putchar('\n');
    }
}
