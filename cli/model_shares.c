/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "explain.h"

static int no_memory(const model_call *model)
{
    return cli_complain(model->command, CLI_RESOURCES, "out of memory");
}

/* Room for all terms that a layer may have: a model may turn its layers at different speeds, or some not at all. */
static int make_room(model_shares *s, const explain_call *call)
{
    if (s->share != NULL) return 1;
    s->heads = call->info.heads;
    s->share = calloc((size_t)(EXPLAIN_TERMS * s->layers * s->heads) + 1, sizeof *s->share);
    return s->share != NULL;
}

/* Its place among the terms of the model, behind those that are known if it is new; EXPLAIN_TERMS: no room. */
static size_t place_of(model_shares *s, const locus_explainer_term *term)
{
    size_t t = 0;
    while (t < s->terms && strcmp(s->term[t].name, term->name) != 0) t++;
    if (t == s->terms && t < EXPLAIN_TERMS) s->term[s->terms++] = *term;
    return t;
}

static int add_head(model_shares *s, const model_call *model, const explain_call *call,
                    int64_t layer, int64_t head)
{
    explain_summary summary;
    locus_error error = {""};
    const locus_status status = explain_summary_new(&summary, call, &error);
    if (status != LOCUS_OK) return cli_report(model->command, status, NULL, &error);
    int exit_code = CLI_DONE;
    for (size_t t = 0; t < call->info.terms && exit_code == CLI_DONE; t++) {
        const size_t place = place_of(s, call->terms[t]);
        if (place < EXPLAIN_TERMS)
            s->share[((int64_t)place * s->layers + layer) * s->heads + head] = summary.share[t];
        else
            exit_code = cli_complain(model->command, CLI_REFUSED,
                                     "its layers have more than %d different terms", EXPLAIN_TERMS);
    }
    explain_summary_free(&summary);
    return exit_code;
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
    exit_code = explain_split(&call);
    if (exit_code == CLI_DONE && !make_room(s, &call)) exit_code = no_memory(model);
    for (int64_t head = 0; exit_code == CLI_DONE && head < s->heads; head++) {
        values.head = (uint32_t)head;
        exit_code = add_head(s, model, &call, layer, head);
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
