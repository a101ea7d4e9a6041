/* SPDX-License-Identifier: Apache-2.0 */
/* Embeddings: /v1/embeddings as OpenAI's clients ask, /embed as text-embeddings-inference's do. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

/* ---- reading ---- */

/* There is no sign in a folder that a model was trained to be cut, so none is. */
static void check_dimensions(exchange *x, const json_value *body)
{
    const int64_t asked = serve_read_integer(x, body, "dimensions", 0, 1, 1 << 20);
    if (asked == 0 || x->refused.status != 0) return;
    loaded *l = serve_hold(x->model);
    if (asked != l->info.embedding_width)
        serve_refuse(&x->refused, 400, "validation",
                     "dimensions: found %lld, expected %lld: this model gives no others",
                     (long long)asked, (long long)l->info.embedding_width);
    serve_release(l);
}

static void read_openai(exchange *x, const json_value *body)
{
    static const char *const keys[] = {"input",      "model", "encoding_format",
                                       "dimensions", "user",  NULL};
    serve_expect_keys(x, body, keys);
    if (!serve_pick_model(x, body, serve_embeds, "embed")) return;
    const json_value *format = locus_tree_get(body, "encoding_format");
    x->base64 = locus_tree_is_text(format, "base64");
    if (format != NULL && format->kind != LOCUS_JSON_NULL && !x->base64 &&
        !locus_tree_is_text(format, "float"))
        serve_refuse(&x->refused, 400, "validation", "encoding_format: expected float or base64");
    check_dimensions(x, body);
    if (!serve_read_inputs(x, "input", locus_tree_get(body, "input"), JOB_EMBED)) return;
    serve_set_truncation(x, (int)x->server->options->truncate);
}

static void read_tei(exchange *x, const json_value *body)
{
    static const char *const keys[] = {"inputs",   "model",      "normalize",
                                       "truncate", "dimensions", "truncation_direction",
                                       NULL};
    serve_expect_keys(x, body, keys);
    if (!serve_pick_model(x, body, serve_embeds, "embed")) return;
    x->normalize = serve_read_flag(x, body, "normalize", 1);
    const json_value *side = locus_tree_get(body, "truncation_direction");
    if (side != NULL && !locus_tree_is_text(side, "Right") && !locus_tree_is_text(side, "right"))
        serve_refuse(&x->refused, 400, "validation", "truncation_direction: expected Right");
    check_dimensions(x, body);
    loaded *l = serve_hold(x->model);
    if (!x->normalize && l->info.unit_length)
        serve_refuse(&x->refused, 400, "validation",
                     "normalize: found false, expected true: modules.json of the model normalises");
    serve_release(l);
    if (!serve_read_inputs(x, "inputs", locus_tree_get(body, "inputs"), JOB_EMBED)) return;
    serve_set_truncation(x,
                         serve_read_flag(x, body, "truncate", (int)x->server->options->truncate));
}

/* ---- writing ---- */

/* Into 4 letters for every 3 bytes begun, and a NUL. */
static void encode_base64(char *to, const unsigned char *bytes, size_t count)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        const size_t left = count - i;
        const unsigned word = (unsigned)bytes[i] << 16 |
                              (left > 1 ? (unsigned)bytes[i + 1] << 8 : 0U) |
                              (left > 2 ? (unsigned)bytes[i + 2] : 0U);
        *to++ = letters[word >> 18];
        *to++ = letters[word >> 12 & 63];
        *to++ = left > 1 ? letters[word >> 6 & 63] : '=';
        *to++ = left > 2 ? letters[word & 63] : '=';
    }
    *to = '\0';
}

/* Little-endian floats in base64, as OpenAI's clients decode them. */
static void write_packed(json *j, const char *key, const float *numbers, int64_t count)
{
    const size_t bytes = (size_t)count * sizeof *numbers;
    char *text = malloc((bytes + 2) / 3 * 4 + 1);
    if (text != NULL) encode_base64(text, (const unsigned char *)numbers, bytes);
    json_text(j, key, text);
    free(text);
}

static void write_numbers(json *j, const char *key, const float *numbers, int64_t count)
{
    json_inline_array(j, key);
    for (int64_t c = 0; c < count; c++) json_float(j, NULL, numbers[c]);
    json_end(j);
}

static void write_openai(exchange *x, FILE *out)
{
    json j = {.out = out};
    int64_t tokens = 0;
    json_inline_object(&j, NULL);
    json_text(&j, "object", "list");
    json_inline_array(&j, "data");
    for (size_t i = 0; i < x->job_count; i++) {
        const job *one = x->jobs[i];
        tokens += one->tokens;
        json_inline_object(&j, NULL);
        json_text(&j, "object", "embedding");
        json_size(&j, "index", i);
        if (x->base64)
            write_packed(&j, "embedding", one->numbers, one->count);
        else
            write_numbers(&j, "embedding", one->numbers, one->count);
        json_end(&j);
    }
    json_end(&j);
    json_text(&j, "model", x->model->name);
    json_inline_object(&j, "usage");
    json_integer(&j, "prompt_tokens", tokens);
    json_integer(&j, "total_tokens", tokens);
    json_end(&j);
    json_end(&j);
}

/* To length 1, where the model itself does not do it. */
static void normalise(job *one)
{
    double sum = 0.0;
    if (one->by->info.unit_length) return;
    for (int64_t c = 0; c < one->count; c++)
        sum += (double)one->numbers[c] * (double)one->numbers[c];
    const double length = sqrt(sum);
    for (int64_t c = 0; c < one->count && length > 0.0; c++)
        one->numbers[c] = (float)((double)one->numbers[c] / length);
}

static void write_tei(exchange *x, FILE *out)
{
    json j = {.out = out};
    json_inline_array(&j, NULL);
    for (size_t i = 0; i < x->job_count; i++) {
        if (x->normalize) normalise(x->jobs[i]);
        write_numbers(&j, NULL, x->jobs[i]->numbers, x->jobs[i]->count);
    }
    json_end(&j);
}

const door serve_door_embeddings = {"POST", "/v1/embeddings", 1, read_openai, write_openai, NULL};
const door serve_door_embeddings_short = {"POST",      "/embeddings", 1,
                                          read_openai, write_openai,  NULL};
const door serve_door_embed = {"POST", "/embed", 0, read_tei, write_tei, NULL};
