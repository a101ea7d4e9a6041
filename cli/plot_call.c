/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "plot.h"
#include "settings.h"
#include "terms.h"
#include "text.h"

static const char sentence[] = "the cat sat on the mat because it was tired";

int plot_has_option(const locus_scheme_info *scheme, const char *name)
{
    for (const locus_option_info *o = scheme->options; o->name != NULL; o++)
        if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

int plot_has_tensor(const locus_scheme_info *scheme, const char *name)
{
    for (const locus_tensor_info *t = scheme->tensors; t->name != NULL; t++)
        if (strcmp(t->name, name) == 0) return 1;
    return 0;
}

int plot_fail(const plot_values *values, locus_status status, const locus_error *error)
{
    return cli_report("plot", status, values->path != NULL ? values->path : values->scheme, error);
}

/* ---- made up ---- */

/* q and k full of ones, so that a score shows what position alone does to it. */
static int give_ones(plot_call *call, const problem_request *r, locus_tensors *given)
{
    const size_t count = (size_t)(r->B * r->H * r->T * r->D);
    call->ones = malloc(count * sizeof *call->ones);
    if (call->ones == NULL) return cli_complain("plot", CLI_RESOURCES, "out of memory");
    for (size_t i = 0; i < count; i++) call->ones[i] = 1.0f;
    given->q = given->k = locus_view_bhtd(call->ones, r->B, r->H, r->T, r->D);
    return CLI_DONE;
}

static void set_window(plot_call *call, uint32_t window)
{
    if (window == PLOT_NONE) return;
    call->problem.config.window_left = window;
    call->problem.config.window_right = window;
}

/* Learned biases change little from one bucket to the next; those of problem_build are
 * independent. Steps of a random walk look more like what training leaves behind. */
static void walk_biases(plot_call *call)
{
    const locus_tensor *bias = &call->problem.in.bias;
    if (bias->rank != 2) return;
    const int64_t rows = bias->shape[0], heads = bias->shape[1];
    const int64_t side = call->problem.config.options.bidirectional ? rows / 2 : rows;
    float *data = bias->data;
    for (int64_t row = 1; row < rows; row++) {
        const int64_t before = row == side ? 0 : row - 1; /* the other side starts near 0 too */
        for (int64_t h = 0; h < heads; h++) data[row * heads + h] += data[before * heads + h];
    }
}

static int make_up(plot_call *call, const plot_wish *wish, int64_t length)
{
    const plot_values *v = call->values;
    locus_error error = {""};
    settings s;
    call->level = wish->level != 0 ? wish->level : scheme_level(locus_scheme_find(v->scheme));
    int exit_code = settings_read(&s, "plot", v->scheme, call->level, &v->options);
    if (exit_code != CLI_DONE) return exit_code;
    const int64_t dim = v->dim != PLOT_NONE ? v->dim : wish->dim > 0 ? wish->dim : 16;
    const int64_t heads = v->heads != PLOT_NONE ? v->heads : 4;
    problem_request request = {
        .scheme = v->scheme,
        .level = call->level,
        .B = 1,
        .H = heads,
        .T = wish->stretch > 0 ? wish->stretch * length + 1 : length,
        .D = dim,
        .E = heads * dim,
        .causal = (wish->masks ? wish->causal : v->causal) ? 1 : 0,
        .seed = v->seed,
        .words = wish->stretch > 0 ? NULL : call->tokens.words,
        .settings = s.list,
        .without = wish->without,
    };
    locus_tensors given = {0};
    if (wish->ones) {
        exit_code = give_ones(call, &request, &given);
        request.given = &given;
    }
    if (exit_code != CLI_DONE) return exit_code;
    const locus_status status = problem_build(&call->problem, &request, &error);
    if (status != LOCUS_OK) return plot_fail(v, status, &error);
    call->problem.request.settings = NULL; /* these end with this function */
    call->problem.request.given = NULL;
    walk_biases(call);
    set_window(call, wish->masks ? wish->window : v->window);
    call->config = &call->problem.config;
    call->in = &call->problem.in;
    return CLI_DONE;
}

/* Tokens as given; a length as given; what the picture wishes; the sentence. */
static int choose_length(plot_call *call, const plot_wish *wish, int64_t *length)
{
    const plot_values *v = call->values;
    const char *text = v->tokens;
    if (text == NULL && v->length == PLOT_NONE && wish->length == 0) text = sentence;
    *length = v->length != PLOT_NONE ? v->length : wish->length;
    if (text == NULL) return CLI_DONE;
    const int exit_code = tokens_cut(&call->tokens, "plot", text, PLOT_TOKENS);
    *length = (int64_t)call->tokens.count;
    return exit_code;
}

/* ---- given ---- */

static int load(plot_call *call)
{
    const plot_values *v = call->values;
    locus_error error = {""};
    const locus_status status = locus_case_load(&call->loaded, v->path, NULL, &error);
    if (status != LOCUS_OK) return plot_fail(v, status, &error);
    call->level = locus_case_level(call->loaded);
    call->config = locus_case_config(call->loaded);
    call->in = locus_case_inputs(call->loaded);
    return CLI_DONE;
}

/* A picture shows a pair at least, and not more than can be looked at. */
static int check_extents(const plot_call *call)
{
    const locus_explainer_info *info = &call->info;
    const plot_values *v = call->values;
    char quoted[256];
    if (v->head != PLOT_NONE && (int64_t)v->head >= info->heads)
        return cli_complain("plot", CLI_USAGE, "--head: found %u, expected 0 to %" PRId64,
                            (unsigned)v->head, info->heads - 1);
    if (v->path == NULL) return CLI_DONE;
    if (info->batch < 1 || info->heads < 1 || info->queries < 1 || info->keys < 1 ||
        info->queries > PLOT_LENGTH || info->keys > PLOT_LENGTH)
        return cli_complain("plot", CLI_REFUSED,
                            "%s: found %" PRId64 " queries and %" PRId64 " keys in %" PRId64
                            " heads of batch %" PRId64 ", expected 1 to %d of each",
                            text_quote(quoted, sizeof quoted, v->path), info->queries, info->keys,
                            info->heads, info->batch, PLOT_LENGTH);
    return CLI_DONE;
}

static int name_rows(plot_call *call)
{
    const plot_values *v = call->values;
    if (v->path == NULL || v->tokens == NULL) return CLI_DONE;
    const int exit_code = tokens_cut(&call->tokens, "plot", v->tokens, PLOT_TOKENS);
    if (exit_code != CLI_DONE) return exit_code;
    if ((int64_t)call->tokens.count == call->info.keys &&
        (int64_t)call->tokens.count == call->info.queries)
        return CLI_DONE;
    return cli_complain("plot", CLI_USAGE,
                        "--tokens: found %zu, expected one for each of %" PRId64
                        " queries and %" PRId64 " keys",
                        call->tokens.count, call->info.queries, call->info.keys);
}

/* ---- both ---- */

static int prepare(plot_call *call)
{
    locus_error error = {""};
    const locus_status status =
        locus_explainer_new(&call->explainer, call->level, call->config, call->in, &error);
    if (status != LOCUS_OK) return plot_fail(call->values, status, &error);
    call->info.size = sizeof call->info;
    locus_explainer_describe(call->explainer, &call->info);
    const int exit_code = check_extents(call);
    return exit_code == CLI_DONE ? name_rows(call) : exit_code;
}

int plot_open(plot_call *call, const plot_values *values, const plot_wish *wish)
{
    int64_t length = 0;
    memset(call, 0, sizeof *call);
    call->values = values;
    int exit_code = values->path != NULL ? load(call) : choose_length(call, wish, &length);
    if (exit_code == CLI_DONE && values->path == NULL) exit_code = make_up(call, wish, length);
    if (exit_code == CLI_DONE) exit_code = prepare(call);
    if (exit_code != CLI_DONE) plot_close(call);
    return exit_code;
}

void plot_close(plot_call *call)
{
    locus_explainer_free(call->explainer);
    locus_case_free(call->loaded);
    problem_free(&call->problem);
    tokens_free(&call->tokens);
    free(call->ones);
    memset(call, 0, sizeof *call);
}
