/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "model_call.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text.h"

int model_call_is_folder(const char *path)
{
    struct stat about;
    return path != NULL && stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static int no_memory(const model_call *call)
{
    return cli_complain(call->command, CLI_RESOURCES, "out of memory");
}

static int report(const model_call *call, locus_status status, const locus_error *error)
{
    return cli_report(call->command, status, call->folder, error);
}

/* ---- running ---- */

static int run(model_call *call)
{
    locus_error error = {""};
    const int64_t layers = call->info.layers, size = call->tokens * call->info.qkv_width;
    call->numbers = calloc((size_t)(layers * size) + 1, sizeof *call->numbers);
    call->qkv = calloc((size_t)layers + 1, sizeof *call->qkv);
    if (call->numbers == NULL || call->qkv == NULL) return no_memory(call);
    for (int64_t l = 0; l < layers; l++) call->qkv[l] = call->numbers + l * size;
    const locus_model_results results = {.size = sizeof results, .qkv = call->qkv};
    const locus_status status = locus_texts_forward(call->texts, &results, &error);
    return status == LOCUS_OK ? CLI_DONE : report(call, status, &error);
}

static int open_all(model_call *call, const char *text, size_t most)
{
    locus_error error = {""};
    const locus_text_input input = {.size = sizeof input, .text = text, .bytes = strlen(text)};
    locus_status status = locus_model_open(&call->model, call->folder, NULL, &error);
    if (status == LOCUS_OK) {
        locus_model_describe(call->model, &call->info);
        status = locus_tokenizer_open(&call->tokenizer, call->folder, NULL, &error);
    }
    if (status == LOCUS_OK)
        status = locus_texts_new(&call->texts, call->model, call->tokenizer, NULL, &error);
    if (status == LOCUS_OK) status = locus_texts_add(call->texts, &input, &error);
    if (status != LOCUS_OK) return report(call, status, &error);
    call->tokens = locus_texts_offsets(call->texts)[1];
    if (call->tokens == 0 || (size_t)call->tokens > most)
        return cli_complain(call->command, CLI_REFUSED,
                            "--text: found %zu tokens, expected 1 to %zu", (size_t)call->tokens,
                            most);
    return run(call);
}

int model_call_open(model_call *call, const char *command, const char *folder, const char *text,
                    size_t most)
{
    *call = (model_call){.command = command, .folder = folder, .info = {.size = sizeof call->info}};
    const int exit_code = open_all(call, text, most);
    if (exit_code != CLI_DONE) model_call_close(call);
    return exit_code;
}

void model_call_close(model_call *call)
{
    locus_texts_free(call->texts);
    locus_tokenizer_close(call->tokenizer);
    locus_model_free(call->model);
    free(call->numbers);
    free(call->qkv);
    *call = (model_call){.model = NULL};
}

/* ---- names ---- */

/* Without "▁" or "Ġ" at its start, where something else follows. */
static const char *without_mark(const char *token)
{
    static const char *const marks[] = {"\xE2\x96\x81", "\xC4\xA0"};
    for (size_t i = 0; i < 2; i++) {
        const size_t length = strlen(marks[i]);
        if (strncmp(token, marks[i], length) == 0 && token[length] != '\0') return token + length;
    }
    return token;
}

int model_call_names(const model_call *call, token_list *names, int short_names)
{
    const int32_t *ids = locus_texts_ids(call->texts);
    *names = (token_list){.count = (size_t)call->tokens};
    names->names = calloc(names->count + 1, sizeof *names->names);
    if (names->names == NULL) return no_memory(call);
    for (size_t i = 0; i < names->count; i++) {
        const char *token = locus_tokenizer_token(call->tokenizer, (uint32_t)ids[i], NULL);
        if (token == NULL) token = "";
        names->names[i] = short_names ? without_mark(token) : token;
    }
    return CLI_DONE;
}
