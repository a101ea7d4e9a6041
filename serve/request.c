/* SPDX-License-Identifier: Apache-2.0 */
/* From JSON to jobs. What is not as expected is refused with the key, what was found, what was expected. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "serve/server.h"

static void wrong(exchange *x, const char *key, const json_value *value, const char *expected)
{
    char found[100];
    serve_refuse(&x->refused, 400, "validation", "%s: found %s, expected %s", key,
                 locus_tree_describe(found, sizeof found, value), expected);
    x->refused.param = key;
}

/* ---- single values ---- */

static const json_value *given(const json_value *body, const char *key)
{
    const json_value *v = locus_tree_get(body, key);
    return v != NULL && v->kind == LOCUS_JSON_NULL ? NULL : v;
}

int serve_read_flag(exchange *x, const json_value *body, const char *key, int preset)
{
    const json_value *v = given(body, key);
    if (v == NULL) return preset;
    if (v->kind != LOCUS_JSON_TRUE && v->kind != LOCUS_JSON_FALSE)
        wrong(x, key, v, "true or false");
    return v->kind == LOCUS_JSON_TRUE;
}

int64_t serve_read_integer(exchange *x, const json_value *body, const char *key, int64_t preset,
                           int64_t least, int64_t most)
{
    char expected[80];
    const json_value *v = given(body, key);
    if (v == NULL) return preset;
    if (v->kind == LOCUS_JSON_INTEGER && v->integer <= (uint64_t)most &&
        (int64_t)v->integer >= least)
        return (int64_t)v->integer;
    snprintf(expected, sizeof expected, "an integer from %" PRId64 " to %" PRId64, least, most);
    wrong(x, key, v, expected);
    return preset;
}

double serve_read_real(exchange *x, const json_value *body, const char *key, double preset,
                       double least, double most)
{
    char expected[80];
    const json_value *v = given(body, key);
    if (v == NULL) return preset;
    if (v->kind == LOCUS_JSON_INTEGER || v->kind == LOCUS_JSON_NUMBER) {
        const double number = strtod(v->text, NULL);
        if (isfinite(number) && number >= least && number <= most) return number;
    }
    snprintf(expected, sizeof expected, "a number from %g to %g", least, most);
    wrong(x, key, v, expected);
    return preset;
}

void serve_expect_keys(exchange *x, const json_value *body, const char *const *keys)
{
    char name[100];
    for (const json_value *v = body->child; v != NULL; v = v->next) {
        size_t k = 0;
        while (keys[k] != NULL &&
               (v->key_bytes != strlen(keys[k]) || memcmp(v->key, keys[k], v->key_bytes) != 0))
            k++;
        if (keys[k] == NULL && v->kind != LOCUS_JSON_NULL)
            serve_refuse(&x->refused, 400, "validation", "%s: this key is not supported",
                         locus_escape(name, sizeof name, v->key, v->key_bytes));
    }
}

/* ---- the model ---- */

int serve_pick_model(exchange *x, const json_value *body, int (*can)(const loaded *),
                     const char *what)
{
    const json_value *name = given(body, "model");
    server *s = x->server;
    if (name != NULL && name->kind != LOCUS_JSON_STRING) {
        wrong(x, "model", name, "the name of a model");
        return 0;
    }
    for (size_t i = 0; i < s->model_count && x->model == NULL; i++) {
        served *m = &s->models[i];
        if (name != NULL && !locus_tree_is_text(name, m->name)) continue;
        loaded *l = serve_hold(m);
        if (can == NULL || can(l)) x->model = m;
        serve_release(l);
        if (name != NULL && x->model == NULL) {
            serve_refuse(&x->refused, 424, "backend", "the model \"%s\" does not %s", m->name,
                         what);
            return 0;
        }
    }
    if (x->model != NULL) return 1;
    if (name != NULL) {
        char quoted[100];
        serve_refuse(&x->refused, 404, "validation", "there is no model \"%s\"; see /v1/models",
                     locus_escape(quoted, sizeof quoted, name->text, name->bytes));
        x->refused.param = "model";
    } else {
        serve_refuse(&x->refused, 424, "backend", "no model here does %s", what);
    }
    return 0;
}

/* ---- jobs ---- */

int serve_new_jobs(exchange *x, size_t count, job_kind kind)
{
    if (count > x->server->options->max_texts) {
        serve_refuse(&x->refused, 413, "validation", "found %zu texts, expected at most %u", count,
                     (unsigned)x->server->options->max_texts);
        return 0;
    }
    x->jobs = calloc(count + 1, sizeof *x->jobs);
    for (size_t i = 0; x->jobs != NULL && i < count; i++) {
        job *j = x->jobs[i] = calloc(1, sizeof *j);
        if (j == NULL) break;
        x->job_count++;
        j->of = x;
        j->kind = kind;
        j->input.size = sizeof j->input;
    }
    if (x->jobs != NULL && x->job_count == count) return 1;
    serve_refuse(&x->refused, 503, "backend", "out of memory");
    return 0;
}

int serve_read_text(exchange *x, const char *key, const json_value *value, const char **text,
                    size_t *bytes)
{
    if (value == NULL || value->kind != LOCUS_JSON_STRING) {
        wrong(x, key, value, "a text");
        return 0;
    }
    *text = value->text;
    *bytes = value->bytes;
    return 1;
}

int serve_read_ids(exchange *x, const char *key, const json_value *value, job *j)
{
    if (value->count == 0) {
        wrong(x, key, value, "token ids, at least one");
        return 0;
    }
    j->ids = calloc(value->count, sizeof *j->ids);
    if (j->ids == NULL) {
        serve_refuse(&x->refused, 503, "backend", "out of memory");
        return 0;
    }
    for (const json_value *v = value->child; v != NULL; v = v->next) {
        if (v->kind != LOCUS_JSON_INTEGER || v->integer > INT32_MAX) {
            wrong(x, key, v, "a token id");
            return 0;
        }
        j->ids[j->id_count++] = (int32_t)v->integer;
    }
    return 1;
}

static int read_input(exchange *x, const char *key, const json_value *value, job *j)
{
    if (value->kind == LOCUS_JSON_ARRAY) return serve_read_ids(x, key, value, j);
    return serve_read_text(x, key, value, &j->input.text, &j->input.bytes);
}

int serve_read_inputs(exchange *x, const char *key, const json_value *value, job_kind kind)
{
    static const char expected[] = "a text, token ids, or a list of either, not empty";
    const int list = value != NULL && value->kind == LOCUS_JSON_ARRAY && value->count > 0 &&
                     value->child->kind != LOCUS_JSON_INTEGER;
    if (value == NULL || (value->kind != LOCUS_JSON_STRING && value->kind != LOCUS_JSON_ARRAY) ||
        (value->kind == LOCUS_JSON_ARRAY && value->count == 0)) {
        wrong(x, key, value, expected);
        return 0;
    }
    x->one = !list;
    if (!serve_new_jobs(x, list ? value->count : 1, kind)) return 0;
    const json_value *v = list ? value->child : value;
    for (size_t i = 0; i < x->job_count; i++, v = v->next)
        if (!read_input(x, key, v, x->jobs[i])) return 0;
    return 1;
}

/* Cut to what the model takes; the worker knows how much that is. */
void serve_set_truncation(exchange *x, int truncate)
{
    for (size_t i = 0; i < x->job_count; i++)
        x->jobs[i]->input.truncate = truncate ? UINT32_MAX : 0;
}
