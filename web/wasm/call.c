/* SPDX-License-Identifier: Apache-2.0 */
/* The call that the page asks for. A request is lines of "KEY VALUE":
 *
 *     scheme t5
 *     causal 1
 *     window_left 8            -1: no limit
 *     window_right -1
 *     scale 0.25               absent: the scheme's own
 *     seed 1
 *     weights SCHEME           of the layer that was trained with it; absent: made up, from the seed
 *     option buckets 32        as often as needed
 *     token cat                one per position, in order */

#include "call.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <locus/picture.h>

#include "exports.h"
#include "system.h"
#include "text.h"
#include "trained.h"

static char *buffer;
static size_t buffer_room;
static page_call_state calls[PAGE_SLOTS];

char *page_buffer(size_t bytes)
{
    if (bytes + 1 > buffer_room) {
        free(buffer);
        buffer = malloc(bytes + 1);
        buffer_room = buffer != NULL ? bytes + 1 : 0;
    }
    if (buffer != NULL) buffer[bytes] = '\0';
    return buffer;
}

int page_trained(size_t bytes)
{
    unsigned char *copy = buffer != NULL ? malloc(bytes) : NULL;
    if (copy != NULL) memcpy(copy, buffer, bytes);
    if (copy != NULL && page_file_add("trained", copy, bytes)) return 0;
    free(copy);
    text_begin();
    text_print("trained: no memory for %zu bytes", bytes);
    return 1;
}

int call_fail(const locus_error *error)
{
    text_begin();
    text_add(error->text, strlen(error->text));
    return 1;
}

static int refuse(const char *what, const char *found, const char *expected)
{
    text_begin();
    text_print("%s: found %.80s, expected %s", what, found, expected);
    return 1;
}

page_call_state *call_at(uint32_t slot)
{
    return slot < PAGE_SLOTS && calls[slot].explainer != NULL ? &calls[slot] : NULL;
}

static void release(page_call_state *call)
{
    locus_explainer_free(call->explainer);
    locus_problem_free(call->problem);
    free(call->words);
    free(call->numbers_of_trained);
    free(call->numbers);
    free(call->visible);
    free(call->forward);
    memset(call, 0, sizeof *call);
}

/* ---- reading a request ---- */

static int read_integer(const char *key, const char *text, int64_t low, int64_t *value)
{
    char *end;
    *value = strtoll(text, &end, 10);
    if (*text != '\0' && *end == '\0' && *value >= low && *value <= 1 << 20) return 0;
    return refuse(key, text, low < 0 ? "-1 or a whole number up to 2^20" : "a whole number");
}

static int read_setting(page_call_state *call, char *text)
{
    char *space = strchr(text, ' ');
    if (space == NULL || call->setting_count == CALL_SETTINGS)
        return refuse("option", text, "a name and a value");
    *space = '\0';
    call->settings[call->setting_count++] = (locus_problem_setting){text, space + 1};
    return 0;
}

static int read_token(page_call_state *call, const char *text)
{
    if (call->token_count == CALL_TOKENS) return refuse("tokens", "more than 64", "64 at most");
    call->tokens[call->token_count++] = text;
    return 0;
}

static int read_scale(page_call_state *call, const char *text)
{
    char *end;
    call->scale = strtod(text, &end);
    if (*text != '\0' && *end == '\0' && isfinite(call->scale)) return 0;
    return refuse("scale", text, "a finite number");
}

static int read_line(page_call_state *call, char *line)
{
    char *value = strchr(line, ' ');
    int64_t number = 0;
    int failed;
    if (value == NULL) return refuse("request", line, "KEY VALUE");
    *value++ = '\0';
    if (strcmp(line, "scheme") == 0) {
        call->scheme = value;
        return 0;
    }
    if (strcmp(line, "option") == 0) return read_setting(call, value);
    if (strcmp(line, "token") == 0) return read_token(call, value);
    if (strcmp(line, "weights") == 0) {
        call->trained = value;
        return 0;
    }
    if (strcmp(line, "scale") == 0) return read_scale(call, value);
    if (strcmp(line, "window_left") == 0) return read_integer(line, value, -1, &call->window_left);
    if (strcmp(line, "window_right") == 0)
        return read_integer(line, value, -1, &call->window_right);
    failed = read_integer(line, value, 0, &number);
    if (strcmp(line, "causal") == 0) {
        call->causal = number != 0;
        return failed;
    }
    if (strcmp(line, "seed") == 0) {
        call->seed = (uint64_t)number;
        return failed;
    }
    return refuse("request", line,
                  "scheme, causal, window_left, window_right, scale, seed, "
                  "weights, option or token");
}

static int read_request(page_call_state *call)
{
    call->window_left = call->window_right = -1;
    call->scale = NAN;
    call->seed = 1;
    for (char *line = call->words, *next; line != NULL && *line != '\0'; line = next) {
        next = strchr(line, '\n');
        if (next != NULL) *next++ = '\0';
        if (read_line(call, line) != 0) return 1;
    }
    const locus_scheme_info *scheme = call->scheme != NULL ? locus_scheme_find(call->scheme) : NULL;
    if (scheme == NULL)
        return refuse("scheme", call->scheme != NULL ? call->scheme : "none", "one of the list");
    if (call->token_count == 0) return refuse("tokens", "none", "1 to 64");
    call->level =
        call->trained != NULL || (scheme->terms & LOCUS_TERM_INPUT) != 0 ? LOCUS_LAYER : LOCUS_ATTEND;
    return 0;
}

/* ---- making the call ---- */

/* locus_problem_new passes over options that a scheme does not know: refuse them here. */
static locus_status check_settings(const page_call_state *call, locus_error *error)
{
    locus_options options;
    locus_status status = locus_options_init(&options, call->scheme);
    for (size_t i = 0; i < call->setting_count && status == LOCUS_OK; i++)
        status = locus_options_set(&options, call->scheme, call->level, call->settings[i].name,
                                   call->settings[i].value, error);
    return status;
}

/* The tensors of the trained layer take the place of those that were made up. */
static locus_status train(page_call_state *call, locus_error *error)
{
    locus_tensors *in = call->problem->in;
    locus_status status = trained_tensors(in, &call->numbers_of_trained, call->trained,
                                          call->tokens, call->token_count, error);
    call->problem->config->scale = 0.25; /* 1 / sqrt(D) for T5, too, as the lab has it */
    if (in->pos.rank != 0 || in->rel.rank != 0)
        call->problem->config->scale = LOCUS_UNSET_REAL; /* TUPE, DeBERTa: their own */
    return status;
}

static locus_status make(page_call_state *call, locus_error *error)
{
    const locus_problem_request request = {
        .size = sizeof request,
        .level = call->level,
        .scheme = call->scheme,
        .B = 1,
        .H = 4,
        .T = (int64_t)call->token_count,
        .D = 16,
        .E = 64,
        .causal = call->causal,
        .seed = call->seed,
        .tokens = call->tokens,
        .settings = call->settings,
    };
    locus_status status = check_settings(call, error);
    if (status == LOCUS_OK) status = locus_problem_new(&call->problem, &request, error);
    if (status != LOCUS_OK) return status;
    if (call->trained != NULL) status = train(call, error);
    if (status != LOCUS_OK) return status;
    locus_config *config = call->problem->config;
    config->window_left = call->window_left;
    config->window_right = call->window_right;
    config->isa = "generic";
    if (!isnan(call->scale)) config->scale = call->scale;
    status = locus_explainer_new(&call->explainer, call->level, config, call->problem->in, error);
    if (status != LOCUS_OK) return status;
    call->info.size = sizeof call->info;
    locus_explainer_describe(call->explainer, &call->info);
    return LOCUS_OK;
}

/* The old call stays until the new one stands. */
int page_call(uint32_t slot)
{
    page_call_state call = {0};
    locus_error error = {"out of memory"};
    if (slot >= PAGE_SLOTS || buffer == NULL) return refuse("slot", "none", "0 or 1");
    const size_t bytes = strlen(buffer) + 1;
    call.words = malloc(bytes);
    if (call.words == NULL) return call_fail(&error);
    memcpy(call.words, buffer, bytes);
    if (read_request(&call) != 0) {
        release(&call);
        return 1;
    }
    if (make(&call, &error) != LOCUS_OK) {
        release(&call);
        return call_fail(&error);
    }
    release(&calls[slot]);
    calls[slot] = call;
    return 0;
}

static size_t pair_count(const page_call_state *call)
{
    double frequency[CALL_PAIRS], gain[CALL_PAIRS];
    size_t pairs = CALL_PAIRS;
    const locus_status status = locus_call_turns(call->level, call->problem->config,
                                                 call->problem->in, &pairs, frequency, gain, NULL);
    return status == LOCUS_OK ? pairs : 0;
}

/* As they were resolved: the reader's, or those that a made-up call has. */
static void describe_options(const page_call_state *call)
{
    const char *comma = "";
    const char *fields = (const char *)&call->problem->config->options;
    const locus_scheme_info *scheme = locus_scheme_find(call->scheme);
    const locus_option_info *o;
    for (size_t i = 0; (o = locus_scheme_option(scheme, i)) != NULL; i++) {
        const char *field = fields + o->offset;
        const double value =
            o->kind == LOCUS_OPTION_REAL ? *(const double *)field : (double)*(const int64_t *)field;
        text_print("%s\"%s\":%.17g", comma, o->name, value);
        comma = ",";
    }
}

int page_describe(uint32_t slot)
{
    const page_call_state *call = call_at(slot);
    if (call == NULL) return refuse("slot", "an empty one", "a call");
    text_begin();
    text_print("{\"scheme\":\"%s\",\"length\":%d,\"heads\":%d,\"dim\":%d,\"scale\":%.17g,"
               "\"pairs\":%d,\"terms\":[",
               call->scheme, (int)call->info.queries, (int)call->info.heads,
               (int)call->info.head_dim, call->info.scale, (int)pair_count(call));
    for (size_t t = 0; t < call->info.terms; t++) {
        const locus_explainer_term *term = locus_explainer_term_at(call->explainer, t);
        text_print("%s{\"place\":%u,\"name\":\"%s\",\"ink\":%u,\"formula\":", t > 0 ? "," : "",
                   (unsigned)term->place, term->name,
                   (unsigned)locus_picture_term_ink(term->name));
        text_quote(term->formula);
        text_print("}");
    }
    text_print("],\"options\":{");
    describe_options(call);
    text_print("}}");
    return 0;
}
