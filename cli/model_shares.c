/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "explain.h"

static int no_memory(const model_call *model)
{
    return cli_complain(model->command, CLI_RESOURCES, "out of memory");
}

/* The terms are the same in every layer: the first one makes room for all. */
static int make_room(model_shares *s, const explain_call *call)
{
    if (s->share != NULL) return 1;
    s->terms = call->info.terms;
    s->heads = call->info.heads;
    for (size_t t = 0; t < s->terms; t++) s->term[t] = *call->terms[t];
    s->share = calloc(s->terms * (size_t)(s->layers * s->heads) + 1, sizeof *s->share);
    return s->share != NULL;
}

static int add_head(model_shares *s, const explain_call *call, int64_t layer, int64_t head)
{
    explain_summary summary;
    locus_error error = {""};
    const locus_status status = explain_summary_new(&summary, call, &error);
    if (status != LOCUS_OK) return cli_report(call->model.command, status, NULL, &error);
    for (size_t t = 0; t < s->terms; t++)
        s->share[((int64_t)t * s->layers + layer) * s->heads + head] = summary.share[t];
    explain_summary_free(&summary);
    return CLI_DONE;
}

static int add_layer(model_shares *s, const model_call *model, int64_t layer)
{
    explain_call call;
    explain_values values = {.layer = (uint32_t)layer,
                             .batch = EXPLAIN_NONE,
                             .query = EXPLAIN_NONE,
                             .key = EXPLAIN_NONE};
    int exit_code = explain_open_layer(&call, &values, model);
    if (exit_code != CLI_DONE) return exit_code;
    if (!make_room(s, &call)) exit_code = no_memory(model);
    for (int64_t head = 0; exit_code == CLI_DONE && head < s->heads; head++) {
        values.head = (uint32_t)head;
        exit_code = add_head(s, &call, layer, head);
    }
    explain_close(&call);
    return exit_code;
}

int model_shares_new(model_shares *s, const model_call *model)
{
    *s = (model_shares){.layers = model->info.layers};
    int exit_code = CLI_DONE;
    for (int64_t layer = 0; exit_code == CLI_DONE && layer < s->layers; layer++)
        exit_code = add_layer(s, model, layer);
    if (exit_code != CLI_DONE) model_shares_free(s);
    return exit_code;
}

void model_shares_free(model_shares *s)
{
    free(s->share);
    *s = (model_shares){.terms = 0};
}
