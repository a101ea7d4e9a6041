/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of server-sent events: a worker puts bytes in, the thread of the HTTP library takes them out and
 * sleeps while there are none. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

/* With x->lock held. */
static void wake(exchange *x)
{
    if (!x->waiting) return;
    x->waiting = 0;
    MHD_resume_connection(x->connection);
}

void serve_stream_start(exchange *x)
{
    if (!atomic_exchange(&x->started, 1)) MHD_resume_connection(x->connection);
}

void serve_stream(exchange *x, const char *bytes, size_t count)
{
    pthread_mutex_lock(&x->lock);
    if (x->sent_bytes + count > x->sent_room) {
        const size_t room = 2 * (x->sent_bytes + count);
        char *grown = realloc(x->sent, room);
        if (grown == NULL) count = 0; /* the end says so: a piece is missing */
        if (grown == NULL) serve_refuse(&x->refused, 503, "backend", "out of memory");
        if (grown != NULL) x->sent = grown, x->sent_room = room;
    }
    if (count > 0) memcpy(x->sent + x->sent_bytes, bytes, count);
    x->sent_bytes += count;
    wake(x);
    pthread_mutex_unlock(&x->lock);
}

/* What went wrong with a text of a stream that had begun. */
static void send_refusals(exchange *x)
{
    for (size_t i = 0; i < x->job_count; i++) {
        char *event = NULL;
        size_t size = 0;
        FILE *out = x->jobs[i]->refused.status != 0 ? open_memstream(&event, &size) : NULL;
        if (out == NULL) continue;
        fputs("data: ", out);
        serve_write_refusal(x, &x->jobs[i]->refused, out);
        fputc('\n', out);
        if (fclose(out) == 0) serve_stream(x, event, size);
        free(event);
    }
}

void serve_stream_end(exchange *x)
{
    static const char done[] = "data: [DONE]\n\n";
    if (!atomic_load(&x->started)) {
        for (size_t i = 0; i < x->job_count && x->refused.status == 0; i++)
            x->refused = x->jobs[i]->refused;
        serve_stream_start(x);
        return;
    }
    send_refusals(x);
    serve_stream(x, done, sizeof done - 1);
    pthread_mutex_lock(&x->lock);
    x->ended = 1;
    wake(x);
    pthread_mutex_unlock(&x->lock);
}

/* The HTTP library asks for bytes. */
static ssize_t give(void *cls, uint64_t at, char *out, size_t most)
{
    exchange *x = cls;
    (void)at;
    pthread_mutex_lock(&x->lock);
    size_t count = x->sent_bytes - x->sent_from;
    if (count > most) count = most;
    if (count > 0) {
        memcpy(out, x->sent + x->sent_from, count);
        x->sent_from += count;
        if (x->sent_from == x->sent_bytes) x->sent_from = x->sent_bytes = 0;
    }
    const int over = count == 0 && x->ended;
    if (count == 0 && !over) {
        x->waiting = 1;
        MHD_suspend_connection(x->connection);
    }
    pthread_mutex_unlock(&x->lock);
    return over ? MHD_CONTENT_READER_END_OF_STREAM : (ssize_t)count;
}

enum MHD_Result serve_stream_answer(exchange *x)
{
    struct MHD_Response *response =
        MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 4096, give, x, NULL);
    if (response == NULL) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", "text/event-stream");
    MHD_add_response_header(response, "Cache-Control", "no-cache");
    const enum MHD_Result result = MHD_queue_response(x->connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
    return result;
}
