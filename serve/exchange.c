/* SPDX-License-Identifier: Apache-2.0 */
/* A request from its first byte to its answer, in the thread of the HTTP library. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "cli/text.h"
#include "serve/server.h"

enum { MOST_VALUES = 1 << 17, MOST_UNIQUE = 64, FIRST_ROOM = 4096 };

double serve_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void serve_refuse(refusal *r, int status, const char *type, const char *format, ...)
{
    va_list list;
    if (r->status != 0) return;
    r->status = status;
    r->type = type;
    va_start(list, format);
    vsnprintf(r->text, sizeof r->text, format, list);
    va_end(list);
}

/* ---- begin and end ---- */

static exchange *new_exchange(server *s, struct MHD_Connection *connection, const char *url,
                              const char *method)
{
    const char *others = NULL;
    exchange *x = calloc(1, sizeof *x);
    if (x == NULL) return NULL;
    x->server = s;
    x->connection = connection;
    x->socket = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    x->began = serve_clock();
    x->top = -1;
    x->holders = 1;
    x->created = (int64_t)time(NULL);
    pthread_mutex_init(&x->lock, NULL);
    atomic_fetch_add(&s->exchanges, 1);
    x->door = serve_door(method, url, &others);
    if (x->door == NULL && others != NULL)
        serve_refuse(&x->refused, 405, "validation", "this path takes %s", others);
    else if (x->door == NULL)
        serve_refuse(&x->refused, 404, "validation", "there is no such path");
    return x;
}

/* What jobs and body held; the connection may be used again. */
void serve_exchange_release(exchange *x)
{
    server *s = x->server;
    if (atomic_fetch_sub(&x->holders, 1) > 1) return;
    for (size_t i = 0; i < x->job_count; i++) serve_job_free(x->jobs[i]);
    free(x->jobs);
    locus_json_tree_free(&x->tree);
    free(x->body);
    free(x->sent);
    pthread_mutex_destroy(&x->lock);
    atomic_fetch_sub(&s->buffered, x->room);
    atomic_fetch_sub(&s->exchanges, 1);
    free(x);
}

/* One line for each request: what was asked for and how it went, nothing of any text. */
static void log_request(const exchange *x, int status)
{
    char when[32], model[100];
    struct tm t;
    const time_t now = time(NULL);
    int64_t tokens = 0;
    for (size_t i = 0; i < x->job_count; i++) tokens += x->jobs[i]->tokens + x->jobs[i]->new_tokens;
    const double seconds = serve_clock() - x->began;
    serve_metrics_add(&x->server->metrics, status, seconds);
    if (x->server->options->quiet) return;
    strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &t));
    fprintf(stderr, "time=%s door=%s status=%d model=%s texts=%zu tokens=%lld us=%lld\n", when,
            x->door != NULL ? x->door->path : "-", status,
            x->model != NULL ? text_quote(model, sizeof model, x->model->name) : "-", x->job_count,
            (long long)tokens, (long long)(seconds * 1e6));
}

void serve_completed(void *cls, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode how)
{
    exchange *x = *state;
    (void)cls, (void)connection;
    *state = NULL;
    if (x == NULL) return;
    atomic_store(&x->gone, 1);
    if (x->streams && x->state == EXCHANGE_ENDS && x->refused.status == 0)
        log_request(x, how == MHD_REQUEST_TERMINATED_COMPLETED_OK ? 200 : 499);
    serve_exchange_release(x);
}

/* ---- answers ---- */

void serve_write_refusal(const exchange *x, const refusal *r, FILE *out)
{
    json j = {.out = out};
    json_inline_object(&j, NULL);
    if (x->door != NULL && x->door->openai) {
        json_inline_object(&j, "error");
        json_text(&j, "message", r->text);
        json_text(&j, "type",
                  r->status == 429  ? "rate_limit_error"
                  : r->status < 500 ? "invalid_request_error"
                                    : "server_error");
        json_text(&j, "param", r->param);
        json_integer(&j, "code", r->status);
        json_end(&j);
    } else {
        json_text(&j, "error", r->text);
        json_text(&j, "error_type", r->type);
    }
    json_end(&j);
}

static enum MHD_Result queue_answer(exchange *x, int status, char *text, size_t bytes,
                                    const char *type)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(bytes, text, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(text);
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    if (status == 429 || status == 503) MHD_add_response_header(response, "Retry-After", "1");
    if (status == 401) MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
    /* What is left of a body that was refused is not read. */
    if (x->state == EXCHANGE_READS && x->refused.status != 0)
        MHD_add_response_header(response, "Connection", "close");
    x->state = EXCHANGE_ENDS;
    log_request(x, status);
    const enum MHD_Result result = MHD_queue_response(x->connection, (unsigned)status, response);
    MHD_destroy_response(response);
    return result;
}

/* The refusal of x, or of the first job that has one. */
static const refusal *refusal_of(const exchange *x)
{
    if (x->refused.status != 0) return &x->refused;
    for (size_t i = 0; i < x->job_count; i++)
        if (x->jobs[i]->refused.status != 0) return &x->jobs[i]->refused;
    return NULL;
}

static enum MHD_Result answer(exchange *x)
{
    char *text = NULL;
    size_t bytes = 0;
    const refusal *refused = refusal_of(x);
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL) return MHD_NO;
    if (refused != NULL)
        serve_write_refusal(x, refused, out);
    else
        x->door->write(x, out);
    const int failed = fclose(out) != 0;
    if (failed) {
        free(text);
        return MHD_NO;
    }
    const char *type =
        refused == NULL && x->door->type != NULL ? x->door->type : "application/json";
    return queue_answer(x, refused != NULL ? refused->status : 200, text, bytes, type);
}

/* ---- the body ---- */

/* As long for a wrong key as for the right one. */
static int key_is_right(const char *key, const char *given)
{
    static const char scheme[] = "Bearer ";
    const size_t bytes = strlen(key), skip = sizeof scheme - 1;
    unsigned char wrong = 0;
    if (given == NULL || strncasecmp(given, scheme, skip) != 0) return 0;
    const size_t found = strlen(given + skip);
    for (size_t i = 0; i < bytes; i++)
        wrong |= (unsigned char)(key[i] ^ (i < found ? given[skip + i] : 0));
    return wrong == 0 && found == bytes;
}

static void check_head(exchange *x)
{
    const server *s = x->server;
    const char *length =
        MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Content-Length");
    const char *key = MHD_lookup_connection_value(x->connection, MHD_HEADER_KIND, "Authorization");
    const unsigned long long most = 1024ULL * s->options->max_body;
    const int open =
        x->door != NULL && x->door->read == NULL && strcmp(x->door->path, "/health") == 0;
    if (s->key != NULL && !open && !key_is_right(s->key, key))
        serve_refuse(&x->refused, 401, "unauthorized", "expected Authorization: Bearer KEY");
    if (length != NULL && strtoull(length, NULL, 10) > most)
        serve_refuse(&x->refused, 413, "validation",
                     "found a body of %.20s bytes, expected at most %llu", length, most);
}

/* Room for `count` more bytes, within what a request and all of them may have. */
static int make_room(exchange *x, size_t count)
{
    server *s = x->server;
    const size_t most = 1024 * (size_t)s->options->max_body;
    size_t room = x->room > 0 ? x->room : FIRST_ROOM;
    if (count > most - x->bytes) {
        serve_refuse(&x->refused, 413, "validation",
                     "found a body of more than %zu bytes, expected at most so many", most);
        return 0;
    }
    while (room < x->bytes + count) room *= 2;
    if (room == x->room) return 1;
    const size_t more = room - x->room;
    if (atomic_fetch_add(&s->buffered, more) + more > (size_t)s->options->max_memory << 20) {
        atomic_fetch_sub(&s->buffered, more);
        serve_refuse(&x->refused, 429, "overloaded", "requests hold all memory that they may have");
        return 0;
    }
    char *grown = realloc(x->body, room);
    if (grown == NULL) {
        atomic_fetch_sub(&s->buffered, more);
        serve_refuse(&x->refused, 503, "backend", "out of memory");
        return 0;
    }
    x->body = grown;
    x->room = room;
    return 1;
}

/* A body that is refused is read to its end, since no answer can be given before; one that does not end
 * in time closes the connection. */
static enum MHD_Result take_bytes(exchange *x, const char *bytes, size_t count)
{
    if (serve_clock() - x->began > (double)x->server->options->timeout) {
        log_request(x, 408);
        return MHD_NO;
    }
    if (x->refused.status == 0 && make_room(x, count)) {
        memcpy(x->body + x->bytes, bytes, count);
        x->bytes += count;
    }
    return MHD_YES;
}

void serve_exchange_read(exchange *x)
{
    const json_limits limits = {.text = 1024 * (size_t)x->server->options->max_body,
                                .values = MOST_VALUES,
                                .unique = MOST_UNIQUE};
    locus_error error = {""};
    if (x->refused.status != 0) return;
    if (x->door->read == NULL) return;
    const locus_status status = locus_json_tree_parse(&x->tree, x->bytes > 0 ? x->body : "",
                                                      x->bytes, &limits, NULL, &error);
    if (status == LOCUS_ERR_MEMORY)
        serve_refuse(&x->refused, 503, "backend", "out of memory");
    else if (status != LOCUS_OK)
        serve_refuse(&x->refused, 400, "validation", "the body is not JSON: %s", error.text);
    else if (x->tree.root->kind != LOCUS_JSON_OBJECT)
        serve_refuse(&x->refused, 400, "validation", "the body: expected an object");
    else
        x->door->read(x, x->tree.root);
}

/* Hand the jobs to their model and sleep until they are done. */
static enum MHD_Result queue_jobs(exchange *x)
{
    x->left = x->job_count;
    x->state = EXCHANGE_WAITS;
    atomic_fetch_add(&x->holders, 1);
    MHD_suspend_connection(x->connection);
    if (serve_queue(x->model, x)) return MHD_YES;
    atomic_fetch_sub(&x->holders, 1);
    atomic_fetch_add(&x->server->metrics.overloaded, 1);
    serve_refuse(&x->refused, atomic_load(&x->server->stopping) ? 503 : 429, "overloaded",
                 "the model is overloaded: %u texts wait already",
                 (unsigned)x->server->options->max_queue);
    MHD_resume_connection(x->connection);
    return MHD_YES;
}

enum MHD_Result serve_access(void *cls, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_bytes, void **state)
{
    exchange *x = *state;
    (void)version;
    if (x == NULL) {
        x = *state = new_exchange(cls, connection, url, method);
        if (x == NULL) return MHD_NO;
        check_head(x);
        return x->refused.status != 0 ? answer(x) : MHD_YES;
    }
    if (x->state == EXCHANGE_WAITS)
        return x->streams && x->refused.status == 0
                   ? (x->state = EXCHANGE_ENDS, serve_stream_answer(x))
                   : answer(x);
    if (*upload_bytes > 0) {
        const size_t count = *upload_bytes;
        *upload_bytes = 0;
        return take_bytes(x, upload, count);
    }
    serve_exchange_read(x);
    if (x->refused.status != 0 || x->job_count == 0) return answer(x);
    return queue_jobs(x);
}
