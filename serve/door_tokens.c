/* SPDX-License-Identifier: Apache-2.0 */
/* /tokenize and /decode, as text-embeddings-inference's clients ask. */
#include <stdlib.h>

#include "serve/server.h"

static void read_tokenize(exchange *x, const json_value *body)
{
    static const char *const keys[] = {"inputs", "model", "add_special_tokens", NULL};
    serve_expect_keys(x, body, keys);
    if (!serve_pick_model(x, body, NULL, "tokenize")) return;
    const int special = serve_read_flag(x, body, "add_special_tokens", 1);
    if (!serve_read_inputs(x, "inputs", locus_tree_get(body, "inputs"), JOB_TOKENIZE)) return;
    for (size_t i = 0; i < x->job_count; i++) {
        x->jobs[i]->input.plain = !special;
        if (x->jobs[i]->ids != NULL)
            serve_refuse(&x->refused, 400, "validation",
                         "inputs: found token ids, expected a text");
    }
}

/* Letters in the first `bytes` bytes of a text. */
static size_t letters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += ((unsigned char)text[i] & 0xC0) != 0x80;
    return count;
}

static void write_token(json *j, const job *one, size_t index)
{
    const uint32_t id = locus_encoding_ids(one->encoding)[index];
    const int added = locus_encoding_segments(one->encoding)[index] == 2;
    const locus_offset *at = &locus_encoding_offsets(one->encoding)[index];
    size_t bytes = 0;
    const char *token = locus_tokenizer_token(one->by->tokenizer, id, &bytes);
    json_inline_object(j, NULL);
    json_size(j, "id", id);
    if (added)
        json_bytes(j, "text", token != NULL ? token : "", bytes);
    else
        json_bytes(j, "text", one->input.text + at->begin, (size_t)(at->end - at->begin));
    json_boolean(j, "special", added);
    if (added) {
        json_null(j, "start");
        json_null(j, "stop");
    } else {
        const size_t start = letters(one->input.text, (size_t)at->begin);
        json_size(j, "start", start);
        json_size(j, "stop",
                  start + letters(one->input.text + at->begin, (size_t)(at->end - at->begin)));
    }
    json_end(j);
}

static void write_tokenize(exchange *x, FILE *out)
{
    json j = {.out = out};
    json_inline_array(&j, NULL);
    for (size_t i = 0; i < x->job_count; i++) {
        const size_t count = locus_encoding_count(x->jobs[i]->encoding);
        json_inline_array(&j, NULL);
        for (size_t k = 0; k < count; k++) write_token(&j, x->jobs[i], k);
        json_end(&j);
    }
    json_end(&j);
}

static void read_decode(exchange *x, const json_value *body)
{
    static const char *const keys[] = {"ids", "model", "skip_special_tokens", NULL};
    serve_expect_keys(x, body, keys);
    if (!serve_pick_model(x, body, NULL, "decode")) return;
    const int skip = serve_read_flag(x, body, "skip_special_tokens", 1);
    if (!serve_read_inputs(x, "ids", locus_tree_get(body, "ids"), JOB_DECODE)) return;
    for (size_t i = 0; i < x->job_count; i++) {
        x->jobs[i]->skip_special = skip;
        if (x->jobs[i]->ids == NULL)
            serve_refuse(&x->refused, 400, "validation", "ids: found a text, expected token ids");
    }
}

static void write_decode(exchange *x, FILE *out)
{
    json j = {.out = out};
    json_inline_array(&j, NULL);
    for (size_t i = 0; i < x->job_count; i++)
        json_bytes(&j, NULL, x->jobs[i]->text, x->jobs[i]->bytes);
    json_end(&j);
}

const door serve_door_tokenize = {"POST", "/tokenize", 0, read_tokenize, write_tokenize, NULL};
const door serve_door_decode = {"POST", "/decode", 0, read_decode, write_decode, NULL};
