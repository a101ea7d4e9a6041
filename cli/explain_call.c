/* SPDX-License-Identifier: Apache-2.0 */
/* locus explain: the call that is explained. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "explain.h"
#include "settings.h"
#include "terms.h"
#include "text.h"

/* ---- where the call comes from ---- */

/* A call that was made up here and is refused was described by the command line. */
static int report(const explain_call *call, locus_status status, const locus_error *error)
{
    if (call->values->path == NULL && status != LOCUS_ERR_MEMORY)
        return cli_complain("explain", CLI_USAGE, "%s: %s", call->values->scheme, error->text);
    return cli_report("explain", status, call->values->path, error);
}

static int build(explain_call *call, int64_t length)
{
    const explain_values *v = call->values;
    settings s;
    locus_error error = {""};
    call->level = scheme_level(locus_scheme_find(v->scheme));
    const int exit_code = settings_read(&s, "explain", v->scheme, call->level, &v->options);
    if (exit_code != CLI_DONE) return exit_code;
    const locus_problem_request request = {
        .size = sizeof request,
        .scheme = v->scheme,
        .level = call->level,
        .B = 1,
        .H = 4,
        .T = length,
        .D = 16,
        .E = 64,
        .causal = v->causal ? 1 : 0,
        .seed = v->seed,
        .tokens = call->tokens.names,
        .settings = s.list,
    };
    const locus_status status = locus_problem_new(&call->problem, &request, &error);
    if (status != LOCUS_OK) return report(call, status, &error);
    call->config = call->problem->config;
    call->in = call->problem->in;
    return CLI_DONE;
}

static int make_up(explain_call *call)
{
    const explain_values *v = call->values;
    if (locus_scheme_find(v->scheme) == NULL) return cli_unknown_scheme("explain", v->scheme);
    if (v->length != EXPLAIN_NONE) return build(call, v->length);
    const int exit_code = v->tokens != NULL
                              ? tokens_cut(&call->tokens, "explain", v->tokens, EXPLAIN_TOKENS)
                              : tokens_read(&call->tokens, "explain", v->text, EXPLAIN_TOKENS);
    return exit_code == CLI_DONE ? build(call, (int64_t)call->tokens.count) : exit_code;
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

/* ---- a layer of a model ---- */

static const char *command_of(const explain_call *call)
{
    return call->values->command != NULL ? call->values->command : "explain";
}

static int check_index(const explain_call *call, const char *name, uint32_t index, int64_t count)
{
    if (index == EXPLAIN_NONE || (int64_t)index < count) return CLI_DONE;
    return cli_complain(command_of(call), CLI_USAGE, "--%s: found %u, expected 0 to %" PRId64, name,
                        (unsigned)index, count - 1);
}

static int take_layer(explain_call *call, const model_call *model)
{
    locus_error error = {""};
    const locus_model_attended attended = model_call_attended(model, call->values->layer);
    const int64_t floats = locus_model_attended_room(model->model, &attended);
    call->layer_room = floats > 0 ? calloc((size_t)floats, sizeof *call->layer_room) : NULL;
    if (floats > 0 && call->layer_room == NULL)
        return cli_complain(command_of(call), CLI_RESOURCES, "out of memory");
    const locus_status status =
        locus_model_attended_call(model->model, &attended, call->layer_room, &call->layer_config,
                                  &call->layer_in, &error);
    if (status == LOCUS_ERR_ARGUMENT) /* it says why it does not hand them out */
        return cli_complain(command_of(call), CLI_REFUSED, "%s", error.text);
    if (status != LOCUS_OK) return cli_report(command_of(call), status, model->folder, &error);
    call->level = LOCUS_ATTEND;
    call->config = &call->layer_config;
    call->in = &call->layer_in;
    return CLI_DONE;
}

static int name_tokens(explain_call *call)
{
    const model_call *model = &call->model;
    int exit_code = model_call_names(model, MODEL_KEYS, &call->tokens, 0);
    if (exit_code == CLI_DONE) exit_code = model_call_names(model, MODEL_KEYS, &call->shown, 1);
    if (exit_code != CLI_DONE || model->stack != LOCUS_MODEL_CROSS) return exit_code;
    exit_code = model_call_names(model, MODEL_QUERIES, &call->asking, 0);
    if (exit_code == CLI_DONE)
        exit_code = model_call_names(model, MODEL_QUERIES, &call->asking_shown, 1);
    return exit_code;
}

static int run_model(explain_call *call)
{
    const explain_values *v = call->values;
    const model_choice choice = {.command = command_of(call),
                                 .folder = v->path,
                                 .text = v->text,
                                 .tokenizer = v->tokenizer,
                                 .stack = v->stack,
                                 .decoder_ids = v->decoder_ids,
                                 .most = EXPLAIN_TOKENS};
    int exit_code = model_call_open(&call->model, &choice);
    if (exit_code == CLI_DONE) exit_code = name_tokens(call);
    if (exit_code == CLI_DONE)
        exit_code = check_index(call, "layer", v->layer, call->model.info.layers);
    return exit_code == CLI_DONE ? take_layer(call, &call->model) : exit_code;
}

/* ---- names ---- */

int explain_across(const explain_call *call) { return call->model.stack == LOCUS_MODEL_CROSS; }

const char *const *explain_queries(const explain_call *call)
{
    return call->asking.names != NULL ? call->asking.names : call->tokens.names;
}

const char *const *explain_keys_shown(const explain_call *call)
{
    return call->shown.names != NULL ? call->shown.names : call->tokens.names;
}

const char *const *explain_queries_shown(const explain_call *call)
{
    return call->asking_shown.names != NULL ? call->asking_shown.names : explain_keys_shown(call);
}

/* ---- opening ---- */

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
    int exit_code = check_index(call, "batch", v->batch, info->batch);
    if (exit_code == CLI_DONE) exit_code = check_index(call, "head", v->head, info->heads);
    if (exit_code == CLI_DONE) exit_code = check_index(call, "query", v->query, info->queries);
    if (exit_code == CLI_DONE) exit_code = check_index(call, "key", v->key, info->keys);
    return exit_code;
}

static int prepare(explain_call *call)
{
    locus_error error = {""};
    const locus_status status =
        locus_explainer_new(&call->explainer, call->level, call->config, call->in, &error);
    if (status != LOCUS_OK) return report(call, status, &error);
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
    int exit_code = values->path == NULL                 ? make_up(call)
                    : model_call_is_folder(values->path) ? run_model(call)
                                                         : load(call);
    if (exit_code == CLI_DONE) exit_code = prepare(call);
    if (exit_code != CLI_DONE) explain_close(call);
    return exit_code;
}

int explain_open_layer(explain_call *call, const explain_values *values, const model_call *model)
{
    memset(call, 0, sizeof *call);
    call->values = values;
    int exit_code = take_layer(call, model);
    if (exit_code == CLI_DONE) exit_code = prepare(call);
    if (exit_code != CLI_DONE) explain_close(call);
    return exit_code;
}

void explain_close(explain_call *call)
{
    explain_split_close(call);
    model_call_close(&call->model);
    locus_explainer_free(call->explainer);
    locus_case_free(call->loaded);
    locus_problem_free(call->problem);
    free(call->layer_room);
    tokens_free(&call->tokens);
    tokens_free(&call->shown);
    tokens_free(&call->asking);
    tokens_free(&call->asking_shown);
    memset(call, 0, sizeof *call);
}
