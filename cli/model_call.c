/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "model_call.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <locus/generate.h>

#include "pieces.h"
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

/* ---- which ---- */

static const char *const stacks[] = {[LOCUS_MODEL_FIRST] = "encoder",
                                     [LOCUS_MODEL_DECODER] = "decoder",
                                     [LOCUS_MODEL_CROSS] = "cross"};

const char *model_stack_at(size_t index)
{
    return index < sizeof stacks / sizeof *stacks ? stacks[index] : NULL;
}

int model_stack_read(const char *command, const char *name, uint32_t *stack)
{
    char quoted[160];
    *stack = LOCUS_MODEL_FIRST;
    while (name != NULL && *stack <= LOCUS_MODEL_CROSS && strcmp(stacks[*stack], name) != 0)
        (*stack)++;
    if (*stack <= LOCUS_MODEL_CROSS) return CLI_DONE;
    return cli_complain(command, CLI_USAGE,
                        "--stack: expected encoder, decoder or cross, got \"%s\"",
                        text_quote(quoted, sizeof quoted, name));
}

int model_call_has_stacks(const model_call *call)
{
    return call->stack != LOCUS_MODEL_FIRST || call->info.decoder_layers > 0;
}

const char *model_stack_note(const model_call *call)
{
    static const char *const notes[] = {[LOCUS_MODEL_FIRST] = "",
                                        [LOCUS_MODEL_DECODER] = " decoder",
                                        [LOCUS_MODEL_CROSS] = " decoder to encoder"};
    return notes[call->stack];
}

int model_stack_describe(const char *command, const char *folder, locus_model **model,
                         uint32_t stack, locus_model_info *info)
{
    locus_error error = {""};
    char quoted[512];
    const locus_status status = locus_model_open(model, folder, NULL, &error);
    if (status != LOCUS_OK) return cli_report(command, status, folder, &error);
    if (locus_model_describe_stack(*model, stack, info, &error) == LOCUS_OK) return CLI_DONE;
    return cli_complain(command, CLI_REFUSED, "%s: --stack %s: %s",
                        text_quote(quoted, sizeof quoted, folder), stacks[stack], error.text);
}

/* ---- what the decoder has said ---- */

static int read_decoder_ids(model_call *call, const char *text)
{
    char quoted[160];
    size_t count = 0;
    call->decoder_ids = calloc(strlen(text) / 2 + 2, sizeof *call->decoder_ids);
    if (call->decoder_ids == NULL) return no_memory(call);
    if (!pieces_read_ids(text, (uint32_t *)call->decoder_ids, &count) || count == 0)
        return cli_complain(call->command, CLI_USAGE,
                            "--decoder-ids: expected whole numbers below 2^31 with commas between, "
                            "got \"%s\"",
                            text_quote(quoted, sizeof quoted, text));
    call->decoder_count = (int64_t)count;
    return CLI_DONE;
}

/* What the model answers, but for the last token: nothing comes behind it, so it asks nothing. */
static int answer(model_call *call)
{
    locus_error error = {""};
    locus_generated *generated = NULL;
    locus_generation how = {.size = sizeof how};
    locus_generation_init(&how, call->model);
    const locus_status status =
        locus_generate(&generated, call->model, &how, locus_texts_ids(call->texts),
                       locus_texts_offsets(call->texts), 1, &error);
    if (status != LOCUS_OK) return report(call, status, &error);
    int64_t count = 0;
    const int32_t *ids = locus_generated_ids(generated, 0, &count);
    call->decoder_count = count > 1 ? count - 1 : count;
    call->decoder_ids = calloc((size_t)count + 1, sizeof *call->decoder_ids);
    if (call->decoder_ids != NULL)
        memcpy(call->decoder_ids, ids, (size_t)call->decoder_count * sizeof *ids);
    locus_generated_free(generated);
    return call->decoder_ids != NULL ? CLI_DONE : no_memory(call);
}

/* ---- running ---- */

/* Room for what attention is given in every layer: rows of q, and of k and v where they are others'. */
static int make_room(model_call *call)
{
    const int cross = call->stack == LOCUS_MODEL_CROSS;
    const int64_t layers = call->info.layers, q = call->tokens * call->info.qkv_width;
    const int64_t kv = cross ? call->keys * 2 * call->info.qkv_width : 0;
    call->numbers = calloc((size_t)(layers * (q + kv)) + 1, sizeof *call->numbers);
    call->q = calloc((size_t)layers + 1, sizeof *call->q);
    call->kv = cross ? calloc((size_t)layers + 1, sizeof *call->kv) : NULL;
    if (call->numbers == NULL || call->q == NULL || (cross && call->kv == NULL))
        return no_memory(call);
    for (int64_t l = 0; l < layers; l++) {
        call->q[l] = call->numbers + l * (q + kv);
        if (cross) call->kv[l] = call->q[l] + q;
    }
    return CLI_DONE;
}

/* The encoder on the text and the decoder on its ids, in one pass. */
static locus_status run_both(const model_call *call, locus_error *error)
{
    const int64_t decoder_offsets[2] = {0, call->decoder_count};
    const int cross = call->stack == LOCUS_MODEL_CROSS;
    const locus_model_batch batch = {.size = sizeof batch,
                                     .ids = locus_texts_ids(call->texts),
                                     .decoder_ids = call->decoder_ids};
    const locus_model_results results = {.size = sizeof results,
                                         .decoder_qkv = cross ? NULL : call->q,
                                         .cross_q = cross ? call->q : NULL,
                                         .cross_kv = call->kv};
    locus_model_pass *pass = NULL;
    locus_status status =
        locus_model_pass_both(&pass, call->model, locus_texts_offsets(call->texts), decoder_offsets,
                              1, error);
    if (status != LOCUS_OK) return status;
    const size_t bytes = locus_model_workspace(pass);
    void *workspace = malloc(bytes + 1);
    status = workspace != NULL
                 ? locus_model_forward(pass, &batch, &results, workspace, bytes, error)
                 : LOCUS_ERR_MEMORY;
    free(workspace);
    locus_model_pass_free(pass);
    return status;
}

static int run(model_call *call)
{
    locus_error error = {""};
    const locus_model_results results = {.size = sizeof results, .qkv = call->q};
    const locus_status status = call->stack == LOCUS_MODEL_FIRST
                                    ? locus_texts_forward(call->texts, &results, &error)
                                    : run_both(call, &error);
    return status == LOCUS_OK ? CLI_DONE : report(call, status, &error);
}

static int check_count(const model_call *call, const char *option, int64_t count, size_t most)
{
    if (count > 0 && (size_t)count <= most) return CLI_DONE;
    return cli_complain(call->command, CLI_REFUSED, "--%s: found %zu tokens, expected 1 to %zu",
                        option, (size_t)count, most);
}

/* How many tokens ask and how many are asked. */
static int count_tokens(model_call *call, const model_choice *choice)
{
    const int64_t text = locus_texts_offsets(call->texts)[1];
    int exit_code = check_count(call, "text", text, choice->most);
    call->tokens = call->keys = text;
    call->types = locus_texts_types(call->texts);
    if (exit_code != CLI_DONE || call->stack == LOCUS_MODEL_FIRST) return exit_code;
    exit_code =
        choice->decoder_ids != NULL ? read_decoder_ids(call, choice->decoder_ids) : answer(call);
    if (exit_code != CLI_DONE) return exit_code;
    call->tokens = call->decoder_count;
    call->keys = call->stack == LOCUS_MODEL_CROSS ? text : call->decoder_count;
    call->types = NULL;
    return check_count(call, "decoder-ids", call->tokens, choice->most);
}

static int open_all(model_call *call, const model_choice *choice)
{
    locus_error error = {""};
    const char *text = choice->text;
    const locus_text_input input = {.size = sizeof input, .text = text, .bytes = strlen(text)};
    int exit_code =
        model_stack_describe(call->command, call->folder, &call->model, call->stack, &call->info);
    if (exit_code != CLI_DONE) return exit_code;
    locus_status status =
        locus_tokenizer_open(&call->tokenizer,
                             choice->tokenizer != NULL ? choice->tokenizer : call->folder, NULL,
                             &error);
    if (status == LOCUS_OK)
        status = locus_texts_new(&call->texts, call->model, call->tokenizer, NULL, &error);
    if (status == LOCUS_OK) status = locus_texts_add(call->texts, &input, &error);
    if (status != LOCUS_OK) return report(call, status, &error);
    exit_code = count_tokens(call, choice);
    if (exit_code == CLI_DONE) exit_code = make_room(call);
    return exit_code == CLI_DONE ? run(call) : exit_code;
}

int model_call_open(model_call *call, const model_choice *choice)
{
    *call = (model_call){.command = choice->command,
                         .folder = choice->folder,
                         .info = {.size = sizeof call->info}};
    int exit_code = model_stack_read(choice->command, choice->stack, &call->stack);
    if (exit_code != CLI_DONE) return exit_code;
    if (choice->decoder_ids != NULL && call->stack == LOCUS_MODEL_FIRST)
        return cli_complain(choice->command, CLI_USAGE,
                            "--decoder-ids needs --stack decoder or --stack cross");
    exit_code = open_all(call, choice);
    if (exit_code != CLI_DONE) model_call_close(call);
    return exit_code;
}

void model_call_close(model_call *call)
{
    locus_texts_free(call->texts);
    locus_tokenizer_close(call->tokenizer);
    locus_model_free(call->model);
    free(call->numbers);
    free(call->q);
    free(call->kv);
    free(call->decoder_ids);
    *call = (model_call){.model = NULL};
}

locus_model_attended model_call_attended(const model_call *call, int64_t layer)
{
    return (locus_model_attended){.size = sizeof(locus_model_attended),
                                  .stack = call->stack,
                                  .layer = layer,
                                  .queries = call->tokens,
                                  .keys = call->keys,
                                  .q = call->q[layer],
                                  .kv = call->kv != NULL ? call->kv[layer] : NULL,
                                  .types = call->types};
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

int model_call_names(const model_call *call, model_side side, token_list *names, int short_names)
{
    const int of_text = call->stack == LOCUS_MODEL_FIRST ||
                        (call->stack == LOCUS_MODEL_CROSS && side == MODEL_KEYS);
    const int32_t *ids = of_text ? locus_texts_ids(call->texts) : call->decoder_ids;
    *names = (token_list){.count = (size_t)(side == MODEL_KEYS ? call->keys : call->tokens)};
    names->names = calloc(names->count + 1, sizeof *names->names);
    if (names->names == NULL) return no_memory(call);
    for (size_t i = 0; i < names->count; i++) {
        const char *token = locus_tokenizer_token(call->tokenizer, (uint32_t)ids[i], NULL);
        if (token == NULL) token = "";
        names->names[i] = short_names ? without_mark(token) : token;
    }
    return CLI_DONE;
}
