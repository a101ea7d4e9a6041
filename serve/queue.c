/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs wait for the thread of their model, oldest first. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <sys/socket.h>

#include "serve/server.h"

int serve_queue(served *m, exchange *x)
{
    job_queue *q = &m->queue;
    pthread_mutex_lock(&q->lock);
    const int room = !q->closed && q->count + x->job_count <= m->server->options->max_queue;
    for (size_t i = 0; room && i < x->job_count; i++) {
        if (q->last == NULL)
            q->first = x->jobs[i];
        else
            q->last->next = x->jobs[i];
        q->last = x->jobs[i];
        q->count++;
    }
    if (room) pthread_cond_signal(&q->filled);
    pthread_mutex_unlock(&q->lock);
    return room;
}

job *serve_queue_take(served *m, int wait)
{
    job_queue *q = &m->queue;
    pthread_mutex_lock(&q->lock);
    while (wait && q->first == NULL && !q->closed && m->next == NULL)
        pthread_cond_wait(&q->filled, &q->lock);
    job *j = q->first;
    if (j != NULL) {
        q->first = j->next;
        if (q->first == NULL) q->last = NULL;
        q->count--;
        j->next = NULL;
    }
    pthread_mutex_unlock(&q->lock);
    return j;
}

void serve_queue_close(served *m)
{
    pthread_mutex_lock(&m->queue.lock);
    m->queue.closed = 1;
    pthread_cond_signal(&m->queue.filled);
    pthread_mutex_unlock(&m->queue.lock);
}

size_t serve_queue_count(served *m)
{
    pthread_mutex_lock(&m->queue.lock);
    const size_t count = m->queue.count;
    pthread_mutex_unlock(&m->queue.lock);
    return count;
}

int serve_queue_drained(served *m)
{
    pthread_mutex_lock(&m->queue.lock);
    const int drained = m->queue.closed && m->queue.count == 0;
    pthread_mutex_unlock(&m->queue.lock);
    return drained;
}

/* ---- a job ---- */

void serve_job_done(job *j)
{
    exchange *x = j->of;
    if (atomic_fetch_sub(&x->left, 1) > 1) return;
    if (x->streams)
        serve_stream_end(x);
    else
        MHD_resume_connection(x->connection);
    serve_exchange_release(x);
}

int serve_job_abandoned(const job *j)
{
    char byte;
    if (atomic_load(&j->of->gone)) return 1;
    if (j->of->streams)
        return 0; /* the HTTP library may have closed the socket: it says so itself */
    return recv(j->of->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

void serve_job_free(job *j)
{
    if (j == NULL) return;
    if (j->writing != NULL) free(j->writing->text);
    free(j->writing);
    free(j->ids);
    free(j->numbers);
    free(j->text);
    locus_encoding_free(j->encoding);
    serve_release(j->by);
    free(j);
}

/* ---- turns ---- */

void serve_compute_begin(server *s)
{
    pthread_mutex_lock(&s->compute_lock);
    const unsigned long long ticket = s->compute_next++;
    while (ticket != s->compute_now) pthread_cond_wait(&s->compute_turn, &s->compute_lock);
    pthread_mutex_unlock(&s->compute_lock);
}

void serve_compute_end(server *s)
{
    pthread_mutex_lock(&s->compute_lock);
    s->compute_now++;
    pthread_cond_broadcast(&s->compute_turn);
    pthread_mutex_unlock(&s->compute_lock);
}
