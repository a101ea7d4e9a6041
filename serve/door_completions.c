/* SPDX-License-Identifier: Apache-2.0 */
/* /v1/completions, as OpenAI's clients ask: texts continued, at once or as a stream. */
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

enum { PRESET_TOKENS = 16, MOST_STOPS = 4 };

/* Settings that change the answer and that no model here has: only their presets are taken. */
static void refuse_others(exchange *x, const json_value *body)
{
    static const char *const ones[] = {"n", "best_of"};
    static const char *const zeros[] = {"frequency_penalty", "presence_penalty"};
    for (size_t i = 0; i < 2; i++)
        if (serve_read_integer(x, body, ones[i], 1, 0, 128) != 1)
            serve_refuse(&x->refused, 400, "validation", "%s: expected 1", ones[i]);
    for (size_t i = 0; i < 2; i++)
        if (serve_read_real(x, body, zeros[i], 0.0, -2.0, 2.0) != 0.0)
            serve_refuse(&x->refused, 400, "validation", "%s: expected 0", zeros[i]);
}

/* A text that ends the answer, or a list of them; NULL: none. */
static const json_value *read_stop(exchange *x, const json_value *body)
{
    const json_value *stop = locus_tree_get(body, "stop");
    if (stop == NULL || stop->kind == LOCUS_JSON_NULL) return NULL;
    if (stop->kind == LOCUS_JSON_STRING) return stop;
    int good = stop->kind == LOCUS_JSON_ARRAY && stop->count <= MOST_STOPS;
    for (const json_value *s = good ? stop->child : NULL; s != NULL; s = s->next)
        good = good && s->kind == LOCUS_JSON_STRING;
    if (!good)
        serve_refuse(&x->refused, 400, "validation", "stop: expected a text, or at most %d of them",
                     MOST_STOPS);
    return stop->count > 0 ? stop : NULL;
}

/* What is not given is the model's. */
static void read_settings(exchange *x, const json_value *body, writing *w)
{
    w->temperature = serve_read_real(x, body, "temperature", -1.0, 0.0, 100.0);
    w->top_p = serve_read_real(x, body, "top_p", -1.0, 1e-6, 1.0);
    w->top_k = serve_read_integer(x, body, "top_k", -1, 0, INT32_MAX);
    w->seed = (uint64_t)serve_read_integer(x, body, "seed", 0, 0, INT64_MAX);
    w->most = serve_read_integer(x, body, "max_tokens", PRESET_TOKENS, 1,
                                 x->server->options->max_new_tokens);
    w->stop = read_stop(x, body);
    w->echo = serve_read_flag(x, body, "echo", 0);
}

static void set_id(exchange *x)
{
    const unsigned long long number = atomic_fetch_add(&x->server->numbers, 1);
    snprintf(x->id, sizeof x->id, "cmpl-%llx-%llx", (unsigned long long)x->created, number);
}

static void read_prompts(exchange *x, const json_value *body)
{
    static const char *const keys[] = {"prompt",
                                       "model",
                                       "max_tokens",
                                       "temperature",
                                       "top_p",
                                       "top_k",
                                       "seed",
                                       "stop",
                                       "echo",
                                       "stream",
                                       "n",
                                       "best_of",
                                       "frequency_penalty",
                                       "presence_penalty",
                                       "user",
                                       NULL};
    serve_expect_keys(x, body, keys);
    refuse_others(x, body);
    if (!serve_pick_model(x, body, serve_writes, "generate")) return;
    set_id(x);
    const int streams = serve_read_flag(x, body, "stream", 0);
    if (!serve_read_inputs(x, "prompt", locus_tree_get(body, "prompt"), JOB_WRITE)) return;
    x->streams = streams;
    for (size_t i = 0; i < x->job_count; i++) {
        x->jobs[i]->writing = calloc(1, sizeof *x->jobs[i]->writing);
        if (x->jobs[i]->writing == NULL)
            serve_refuse(&x->refused, 503, "backend", "out of memory");
        else
            read_settings(x, body, x->jobs[i]->writing);
    }
}

static void write_choice(json *j, const job *one, size_t index)
{
    const writing *w = one->writing;
    json_inline_object(j, NULL);
    json_bytes(j, "text", w->text != NULL ? w->text : "", w->bytes);
    json_size(j, "index", index);
    json_null(j, "logprobs");
    json_text(j, "finish_reason", w->finish);
    json_end(j);
}

static void write_texts(exchange *x, FILE *out)
{
    json j = {.out = out};
    int64_t prompt = 0, written = 0;
    json_inline_object(&j, NULL);
    json_text(&j, "id", x->id);
    json_text(&j, "object", "text_completion");
    json_integer(&j, "created", x->created);
    json_text(&j, "model", x->model->name);
    json_inline_array(&j, "choices");
    for (size_t i = 0; i < x->job_count; i++) {
        write_choice(&j, x->jobs[i], i);
        prompt += x->jobs[i]->tokens;
        written += x->jobs[i]->new_tokens;
    }
    json_end(&j);
    json_inline_object(&j, "usage");
    json_integer(&j, "prompt_tokens", prompt);
    json_integer(&j, "completion_tokens", written);
    json_integer(&j, "total_tokens", prompt + written);
    json_end(&j);
    json_end(&j);
}

const door serve_door_completions = {"POST", "/v1/completions", 1, read_prompts, write_texts, NULL};
