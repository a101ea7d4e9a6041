/* SPDX-License-Identifier: Apache-2.0 */
/* Labels and ranks: /predict and /rerank as text-embeddings-inference's clients ask, /v1/rerank as Jina's and
 * Cohere's do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* ---- /predict ---- */

/* "a text", or ["a text"], or ["a text", "its pair"]. */
static int read_sequence(exchange *x, const json_value *value, job *j)
{
    if (value->kind == LOCUS_JSON_STRING)
        return serve_read_text(x, "inputs", value, &j->input.text, &j->input.bytes);
    if (value->kind != LOCUS_JSON_ARRAY || value->count < 1 || value->count > 2) {
        serve_refuse(&x->refused, 400, "validation",
                     "inputs: expected a text, [text, text], or a list of [text] and [text, text]");
        return 0;
    }
    const json_value *first = value->child;
    if (!serve_read_text(x, "inputs", first, &j->input.text, &j->input.bytes)) return 0;
    if (first->next == NULL) return 1;
    return serve_read_text(x, "inputs", first->next, &j->input.pair, &j->input.pair_bytes);
}

/* Hugging Face's clients send these, and expect a list of lists for a single text, too. */
static void read_parameters(exchange *x, const json_value *given)
{
    static const char *const keys[] = {"top_k", NULL};
    x->top = -1;
    if (given == NULL || given->kind == LOCUS_JSON_NULL) return;
    if (given->kind != LOCUS_JSON_OBJECT) {
        serve_refuse(&x->refused, 400, "validation", "parameters: expected an object");
        return;
    }
    serve_expect_keys(x, given, keys);
    x->top = serve_read_integer(x, given, "top_k", -1, 1, 1 << 20);
    x->nested = 1;
}

static void read_predict(exchange *x, const json_value *body)
{
    static const char *const keys[] = {
        "inputs", "model", "truncate", "raw_scores", "truncation_direction", "parameters", NULL};
    const json_value *inputs = locus_tree_get(body, "inputs");
    serve_expect_keys(x, body, keys);
    if (!serve_pick_model(x, body, serve_classifies, "classify")) return;
    x->raw_scores = serve_read_flag(x, body, "raw_scores", 0);
    read_parameters(x, locus_tree_get(body, "parameters"));
    x->one = inputs == NULL || inputs->kind != LOCUS_JSON_ARRAY || inputs->count == 0 ||
             inputs->child->kind != LOCUS_JSON_ARRAY;
    if (inputs == NULL) {
        serve_refuse(&x->refused, 400, "validation", "inputs: this key is missing");
        return;
    }
    if (!serve_new_jobs(x, x->one ? 1 : inputs->count, JOB_CLASSIFY)) return;
    const json_value *v = x->one ? inputs : inputs->child;
    for (size_t i = 0; i < x->job_count; i++, v = v->next)
        if (!read_sequence(x, v, x->jobs[i])) return;
    serve_set_truncation(x,
                         serve_read_flag(x, body, "truncate", (int)x->server->options->truncate));
}

/* The probability of a label: by itself where there is one or several may hold, else among all. */
static double score(const job *j, int64_t label, int raw)
{
    const locus_model_info *info = &j->by->info;
    double sum = 0.0;
    if (raw) return (double)j->numbers[label];
    if (info->multi_label || info->labels == 1) return sigmoid((double)j->numbers[label]);
    for (int64_t c = 0; c < j->count; c++)
        sum += exp((double)j->numbers[c] - (double)j->numbers[label]);
    return 1.0 / sum;
}

typedef struct ranked {
    double score;
    size_t index;
} ranked;

static int better(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? 1 : -1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static void write_labels(json *j, const exchange *x, const job *one)
{
    ranked *all = calloc((size_t)one->count + 1, sizeof *all);
    json_inline_array(j, NULL);
    for (int64_t c = 0; all != NULL && c < one->count; c++)
        all[c] = (ranked){score(one, c, x->raw_scores), (size_t)c};
    if (all != NULL) qsort(all, (size_t)one->count, sizeof *all, better);
    const int64_t shown = x->top >= 0 && x->top < one->count ? x->top : one->count;
    for (int64_t c = 0; all != NULL && c < shown; c++) {
        json_inline_object(j, NULL);
        json_float(j, "score", (float)all[c].score);
        json_text(j, "label", locus_model_label(one->by->model, (int64_t)all[c].index));
        json_end(j);
    }
    json_end(j);
    free(all);
}

static void write_predict(exchange *x, FILE *out)
{
    json j = {.out = out};
    if (x->one && !x->nested) {
        write_labels(&j, x, x->jobs[0]);
        return;
    }
    json_inline_array(&j, NULL);
    for (size_t i = 0; i < x->job_count; i++) write_labels(&j, x, x->jobs[i]);
    json_end(&j);
}

/* ---- ranks ---- */

static int ranks(const loaded *l) { return serve_classifies(l) && l->info.labels == 1; }

/* A text, or an object that holds it. */
static const json_value *document(const json_value *value)
{
    return value->kind == LOCUS_JSON_OBJECT ? locus_tree_get(value, "text") : value;
}

static void read_ranks(exchange *x, const json_value *body, const char *texts)
{
    const char *query = NULL;
    size_t bytes = 0;
    if (!serve_pick_model(x, body, ranks, "rerank")) return;
    x->texts = locus_tree_get(body, texts);
    if (x->texts == NULL || x->texts->kind != LOCUS_JSON_ARRAY || x->texts->count == 0) {
        serve_refuse(&x->refused, 400, "validation", "%s: expected a list of texts, not empty",
                     texts);
        return;
    }
    if (!serve_read_text(x, "query", locus_tree_get(body, "query"), &query, &bytes)) return;
    if (!serve_new_jobs(x, x->texts->count, JOB_CLASSIFY)) return;
    const json_value *v = x->texts->child;
    for (size_t i = 0; i < x->job_count; i++, v = v->next) {
        locus_text_input *input = &x->jobs[i]->input;
        input->text = query;
        input->bytes = bytes;
        if (!serve_read_text(x, texts, document(v), &input->pair, &input->pair_bytes)) return;
    }
}

/* One path, two forms: `texts` is text-embeddings-inference's, `documents` Jina's and Cohere's. */
static int is_tei(const json_value *body) { return locus_tree_get(body, "texts") != NULL; }

static void read_tei(exchange *x, const json_value *body)
{
    static const char *const keys[] = {
        "query", "texts", "model", "truncate", "raw_scores", "return_text", "truncation_direction",
        NULL};
    serve_expect_keys(x, body, keys);
    x->raw_scores = serve_read_flag(x, body, "raw_scores", 0);
    x->with_texts = serve_read_flag(x, body, "return_text", 0);
    read_ranks(x, body, "texts");
    serve_set_truncation(x,
                         serve_read_flag(x, body, "truncate", (int)x->server->options->truncate));
}

static void read_documents(exchange *x, const json_value *body)
{
    static const char *const keys[] = {
        "query",    "documents", "model", "top_n", "return_documents", "max_tokens_per_doc",
        "truncate", NULL};
    serve_expect_keys(x, body, keys);
    x->with_texts = serve_read_flag(x, body, "return_documents", 0);
    x->top = serve_read_integer(x, body, "top_n", -1, 1, 1 << 30);
    read_ranks(x, body, "documents");
    serve_set_truncation(x, serve_read_flag(x, body, "truncate", 1));
}

static void read_either(exchange *x, const json_value *body)
{
    x->base64 = !is_tei(body); /* the form of the answer */
    if (is_tei(body))
        read_tei(x, body);
    else
        read_documents(x, body);
}

static ranked *rank_all(const exchange *x)
{
    ranked *all = calloc(x->job_count + 1, sizeof *all);
    for (size_t i = 0; all != NULL && i < x->job_count; i++)
        all[i] = (ranked){score(x->jobs[i], 0, x->raw_scores), i};
    if (all != NULL) qsort(all, x->job_count, sizeof *all, better);
    return all;
}

static void write_tei(exchange *x, FILE *out)
{
    json j = {.out = out};
    ranked *all = rank_all(x);
    json_inline_array(&j, NULL);
    for (size_t i = 0; all != NULL && i < x->job_count; i++) {
        const locus_text_input *input = &x->jobs[all[i].index]->input;
        json_inline_object(&j, NULL);
        json_size(&j, "index", all[i].index);
        if (x->with_texts) json_bytes(&j, "text", input->pair, input->pair_bytes);
        json_float(&j, "score", (float)all[i].score);
        json_end(&j);
    }
    json_end(&j);
    free(all);
}

static void write_ranks(json *j, const exchange *x, const ranked *all)
{
    const size_t most =
        x->top >= 0 && (size_t)x->top < x->job_count ? (size_t)x->top : x->job_count;
    json_inline_array(j, "results");
    for (size_t i = 0; all != NULL && i < most; i++) {
        const locus_text_input *input = &x->jobs[all[i].index]->input;
        json_inline_object(j, NULL);
        json_size(j, "index", all[i].index);
        json_float(j, "relevance_score", (float)all[i].score);
        if (x->with_texts) {
            json_inline_object(j, "document");
            json_bytes(j, "text", input->pair, input->pair_bytes);
            json_end(j);
        }
        json_end(j);
    }
    json_end(j);
}

/* Jina's answer with what Cohere's clients look for beside it. */
static void write_documents(exchange *x, FILE *out)
{
    json j = {.out = out};
    int64_t tokens = 0;
    ranked *all = rank_all(x);
    for (size_t i = 0; i < x->job_count; i++) tokens += x->jobs[i]->tokens;
    json_inline_object(&j, NULL);
    json_text(&j, "id", x->id);
    json_text(&j, "model", x->model->name);
    write_ranks(&j, x, all);
    json_inline_object(&j, "usage");
    json_integer(&j, "prompt_tokens", tokens);
    json_integer(&j, "total_tokens", tokens);
    json_end(&j);
    json_inline_object(&j, "meta");
    json_inline_object(&j, "billed_units");
    json_integer(&j, "search_units", 1);
    json_end(&j);
    json_end(&j);
    json_end(&j);
    free(all);
}

static void write_either(exchange *x, FILE *out)
{
    if (x->base64)
        write_documents(x, out);
    else
        write_tei(x, out);
}

const door serve_door_predict = {"POST", "/predict", 0, read_predict, write_predict, NULL};
const door serve_door_rerank = {"POST", "/rerank", 0, read_either, write_either, NULL};
const door serve_door_rank_jina = {"POST", "/v1/rerank", 1, read_documents, write_documents, NULL};
const door serve_door_rank_cohere = {"POST",         "/v2/rerank",    1,
                                     read_documents, write_documents, NULL};
