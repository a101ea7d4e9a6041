/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/print.h"
#include "pictures/pictures.h"

static const char *const sentence[] = {"the", "cat",     "sat", "on",  "the",
                                       "mat", "because", "it",  "was", "tired"};

int picture_has_option(const locus_scheme_info *scheme, const char *name)
{
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++)
        if (strcmp(o->name, name) == 0) return 1;
    return 0;
}

int picture_has_tensor(const locus_scheme_info *scheme, const char *name)
{
    const locus_tensor_info *t;
    for (size_t i = 0; (t = locus_scheme_tensor(scheme, i)) != NULL; i++)
        if (strcmp(t->name, name) == 0) return 1;
    return 0;
}

locus_status picture_judge(locus_picture *p, locus_status status)
{
    char quoted[200];
    const char *path = p->values->path;
    if (status == LOCUS_OK || status == LOCUS_ERR_MEMORY) return status;
    if (path == NULL) return locus_fail_in(p->error, status, p->scheme->name);
    return locus_fail_in(p->error, status, locus_escape(quoted, sizeof quoted, path, strlen(path)));
}

/* ---- made up ---- */

/* q and k full of ones, so that a score shows what position alone does to it. */
static locus_status give_ones(picture_call *call, const locus_problem_request *r,
                              locus_tensors *given)
{
    const size_t count = (size_t)(r->B * r->H * r->T * r->D);
    call->ones = locus_allocate(r->allocator, count, sizeof *call->ones);
    if (call->ones == NULL) return LOCUS_ERR_MEMORY;
    for (size_t i = 0; i < count; i++) call->ones[i] = 1.0f;
    given->q = given->k = locus_view_bhtd(call->ones, r->B, r->H, r->T, r->D);
    return LOCUS_OK;
}

static void set_window(picture_call *call, int64_t window)
{
    if (window < 0) return;
    call->problem->config->window_left = window;
    call->problem->config->window_right = window;
}

/* Learned biases change little from one bucket to the next; those of locus_problem_new are
 * independent. Steps of a random walk look more like what training leaves behind. */
static void walk_biases(picture_call *call)
{
    const locus_tensor *bias = &call->problem->in->bias;
    if (bias->rank != 2) return;
    const int64_t rows = bias->shape[0], heads = bias->shape[1];
    const int64_t side = call->problem->config->options.bidirectional ? rows / 2 : rows;
    float *data = bias->data;
    for (int64_t row = 1; row < rows; row++) {
        const int64_t before = row == side ? 0 : row - 1; /* the other side starts near 0 too */
        for (int64_t h = 0; h < heads; h++) data[row * heads + h] += data[before * heads + h];
    }
}

/* locus_problem_new takes what a scheme declares and passes over the rest: refuse that here. */
static locus_status check_settings(const picture_call *call)
{
    const locus_picture *p = call->picture;
    const locus_problem_setting *s = p->values->settings;
    locus_options options;
    LOCUS_TRY(locus_options_init(&options, p->scheme->name));
    for (; s != NULL && s->name != NULL; s++) {
        const locus_status status =
            locus_options_set(&options, p->scheme->name, call->level, s->name, s->value, p->error);
        if (status != LOCUS_OK) return locus_fail_in(p->error, status, "option");
    }
    return LOCUS_OK;
}

static locus_status build(picture_call *call, const locus_problem_request *request)
{
    locus_picture *p = call->picture;
    LOCUS_TRY(picture_judge(p, locus_problem_new(&call->problem, request, p->error)));
    walk_biases(call);
    call->config = call->problem->config;
    call->in = call->problem->in;
    return LOCUS_OK;
}

/* Where the scheme acts at all. */
static uint32_t level_of(const locus_scheme_info *scheme)
{
    return (scheme->terms & LOCUS_TERM_INPUT) != 0 ? LOCUS_LAYER : LOCUS_ATTEND;
}

static locus_status make_up(picture_call *call, const picture_wish *wish, int64_t length)
{
    const locus_picture *p = call->picture;
    const locus_picture_request *v = p->values;
    call->level = wish->level != 0 ? wish->level : level_of(p->scheme);
    LOCUS_TRY(check_settings(call));
    const int64_t dim = v->dim > 0 ? v->dim : wish->dim > 0 ? wish->dim : 16;
    const int64_t heads = v->heads > 0 ? v->heads : 4;
    locus_problem_request request = {
        .size = sizeof request,
        .scheme = p->scheme->name,
        .level = call->level,
        .B = 1,
        .H = heads,
        .T = wish->stretch > 0 ? wish->stretch * length + 1 : length,
        .D = dim,
        .E = heads * dim,
        .causal = (wish->masks ? wish->causal : (int)v->causal) ? 1 : 0,
        .seed = v->seed,
        .tokens = wish->stretch > 0 ? NULL : call->names,
        .settings = wish->settings != NULL ? wish->settings : v->settings,
        .without = wish->without,
        .allocator = p->allocator,
    };
    locus_tensors given = {.size = sizeof given};
    if (wish->ones) {
        LOCUS_TRY(give_ones(call, &request, &given));
        request.given = &given;
    }
    LOCUS_TRY(build(call, &request));
    set_window(call, wish->masks ? wish->window : v->window);
    return LOCUS_OK;
}

/* Tokens as given; a length as given; what the picture wishes; the sentence. */
static int64_t choose_length(picture_call *call, const picture_wish *wish)
{
    const locus_picture_request *v = call->picture->values;
    const int64_t length = v->length > 0 ? v->length : wish->length;
    if (v->tokens == NULL && length != 0) return length;
    call->names = v->tokens != NULL ? v->tokens : sentence;
    call->name_count = v->tokens != NULL ? v->token_count : sizeof sentence / sizeof *sentence;
    return (int64_t)call->name_count;
}

/* ---- given ---- */

static void take_case(picture_call *call)
{
    const locus_picture *p = call->picture;
    call->level = locus_case_level(p->loaded);
    call->config = locus_case_config(p->loaded);
    call->in = locus_case_inputs(p->loaded);
    call->names = p->values->tokens;
    call->name_count = p->values->token_count;
}

/* A picture shows a pair at least, and not more than can be looked at. */
static locus_status check_case(const picture_call *call)
{
    const locus_explainer_info *info = &call->info;
    locus_picture *p = call->picture;
    if (info->batch < 1 || info->heads < 1 || info->queries < 1 || info->keys < 1 ||
        info->queries > LOCUS_PICTURE_LENGTH || info->keys > LOCUS_PICTURE_LENGTH)
        return picture_judge(p,
                             locus_fail(p->error, LOCUS_ERR_TENSOR,
                                        "found %" PRId64 " queries and %" PRId64 " keys in %" PRId64
                                        " heads of batch %" PRId64 ", expected 1 to %d of each",
                                        info->queries, info->keys, info->heads, info->batch,
                                        LOCUS_PICTURE_LENGTH));
    if (call->names == NULL ||
        ((int64_t)call->name_count == info->keys && (int64_t)call->name_count == info->queries))
        return LOCUS_OK;
    return locus_fail(p->error, LOCUS_ERR_ARGUMENT,
                      "found %zu tokens, expected one for each of %" PRId64 " queries and %" PRId64
                      " keys",
                      call->name_count, info->queries, info->keys);
}

/* ---- both ---- */

static void append(char *text, size_t capacity, const char *more)
{
    const size_t used = strlen(text);
    snprintf(text + used, capacity - used, "%s", more);
}

static int is_given(const picture_call *call, const char *tensor)
{
    const int index = locus_tensor_index(tensor);
    return index >= 0 && locus_tensor_at_const(call->in, (size_t)index)->rank != 0;
}

static int applies(const picture_call *call, const locus_option_info *o)
{
    return (o->levels & call->level) != 0 && (o->with == NULL || is_given(call, o->with)) &&
           (o->without == NULL || !is_given(call, o->without));
}

/* "buckets=8", or nothing for an option that has its usual value. */
static void option_text(char *text, size_t capacity, const picture_call *call,
                        const locus_option_info *o)
{
    const char *field = (const char *)&call->config->options + o->offset;
    double real = 0.0;
    int64_t whole = 0;
    const locus_choice *choice = o->kind == LOCUS_OPTION_CHOICE ? o->choices : NULL;
    if (o->kind == LOCUS_OPTION_REAL)
        memcpy(&real, field, sizeof real);
    else
        memcpy(&whole, field, sizeof whole);
    while (choice != NULL && choice->name != NULL && choice->value != whole) choice++;
    const double value = o->kind == LOCUS_OPTION_REAL ? real : (double)whole;
    text[0] = '\0';
    if (!applies(call, o) || (!o->required && value == o->preset)) return;
    if (choice != NULL && choice->name != NULL)
        snprintf(text, capacity, "%s=%s", o->name, choice->name);
    else
        locus_print(text, capacity, "%s=%.6g", o->name, value);
}

/* For the caption: what the call's table follows from. */
static void note_options(const picture_call *call)
{
    locus_picture *p = call->picture;
    char all[PICTURE_TEXT] = "", one[64];
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(p->scheme, i)) != NULL; i++) {
        option_text(one, sizeof one, call, o);
        if (one[0] != '\0' && all[0] != '\0') append(all, sizeof all, ", ");
        append(all, sizeof all, one);
    }
    p->options_differ |= p->options[0] != '\0' && strcmp(p->options, all) != 0;
    memcpy(p->options, all, sizeof all);
}

static locus_status prepare(picture_call *call)
{
    locus_picture *p = call->picture;
    locus_config config = *call->config;
    if (p->values->threads != 0) config.threads = p->values->threads;
    LOCUS_TRY(picture_judge(p, locus_explainer_new(&call->explainer, call->level, &config, call->in,
                                                   p->error)));
    call->info.size = sizeof call->info;
    locus_explainer_describe(call->explainer, &call->info);
    if (p->values->head >= call->info.heads)
        return locus_fail(p->error, LOCUS_ERR_ARGUMENT,
                          "head: found %" PRId64 ", expected 0 to %" PRId64, p->values->head,
                          call->info.heads - 1);
    note_options(call);
    return p->loaded != NULL ? check_case(call) : LOCUS_OK;
}

locus_status picture_open(picture_call *call, locus_picture *p, const picture_wish *wish)
{
    locus_status status = LOCUS_OK;
    memset(call, 0, sizeof *call);
    call->picture = p;
    if (p->loaded != NULL)
        take_case(call);
    else
        status = make_up(call, wish, choose_length(call, wish));
    if (status == LOCUS_OK) status = prepare(call);
    if (status != LOCUS_OK) picture_close(call);
    return status;
}

void picture_close(picture_call *call)
{
    locus_explainer_free(call->explainer);
    locus_problem_free(call->problem);
    locus_release(call->picture->allocator, call->ones);
    memset(call, 0, sizeof *call);
}
