/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a model: jobs that wait become ragged batches, the oldest first. Nobody waits for a batch
 * to fill: it takes what is there, up to a number of tokens. */
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

enum { MOST_BATCH = 1024 }; /* texts */

typedef struct worker {
    served *model;
    loaded *by;
    locus_texts *texts;
    scribe *scribe; /* NULL: the model writes no text */
    job *batch[MOST_BATCH];
    size_t count;
    job *held; /* the next one, which does not fit */
} worker;

/* ---- opening ---- */

static void close_model(worker *w)
{
    serve_scribe_free(w->scribe);
    locus_texts_free(w->texts);
    serve_release(w->by);
    w->scribe = NULL;
    w->texts = NULL;
    w->by = NULL;
}

static void open_model(worker *w)
{
    locus_error error = {""};
    w->by = serve_hold(w->model);
    if (locus_texts_new(&w->texts, w->by->model, w->by->tokenizer, NULL, &error) != LOCUS_OK)
        w->texts = NULL;
    if (serve_writes(w->by))
        w->scribe = serve_scribe_new(w->model, w->by, w->model->server->options->rows);
}

/* Between two batches, when nothing is being written, a model that was opened anew takes over. */
static void swap(worker *w)
{
    served *m = w->model;
    if (w->scribe != NULL && serve_scribe_busy(w->scribe)) return;
    pthread_mutex_lock(&m->queue.lock);
    loaded *old = m->model, *next = m->next;
    if (next != NULL) {
        m->model = next;
        m->next = NULL;
    }
    pthread_mutex_unlock(&m->queue.lock);
    if (next == NULL) return;
    serve_release(old);
    close_model(w);
    open_model(w);
}

/* ---- jobs without a pass ---- */

static void refuse_status(job *j, locus_status status, const locus_error *error)
{
    if (status == LOCUS_ERR_MEMORY)
        serve_refuse(&j->refused, 503, "backend", "out of memory");
    else if (status == LOCUS_ERR_RANGE)
        serve_refuse(&j->refused, 413, "validation", "%s", error->text);
    else
        serve_refuse(&j->refused, 422, "tokenizer", "%s", error->text);
}

static void tokenize(worker *w, job *j)
{
    locus_error error = {""};
    locus_status status = locus_encoding_new(&j->encoding, NULL, &error);
    if (status == LOCUS_OK)
        status = locus_tokenizer_encode(w->by->tokenizer, &j->input, j->encoding, &error);
    if (status != LOCUS_OK)
        refuse_status(j, status, &error);
    else
        j->tokens = (int64_t)locus_encoding_count(j->encoding);
}

static void decode(worker *w, job *j)
{
    locus_error error = {""};
    size_t bytes = 0;
    const uint32_t *ids = (const uint32_t *)j->ids;
    locus_status status = locus_tokenizer_decode(w->by->tokenizer, ids, (size_t)j->id_count,
                                                 j->skip_special, NULL, 0, &bytes, &error);
    if (status == LOCUS_OK) j->text = malloc(bytes + 1);
    if (status == LOCUS_OK && j->text == NULL) status = LOCUS_ERR_MEMORY;
    if (status == LOCUS_OK)
        status = locus_tokenizer_decode(w->by->tokenizer, ids, (size_t)j->id_count, j->skip_special,
                                        j->text, bytes, &j->bytes, &error);
    if (status != LOCUS_OK) refuse_status(j, status, &error);
}

/* ---- batches ---- */

static locus_status add(worker *w, job *j, locus_error *error)
{
    if (w->texts == NULL) return LOCUS_ERR_MEMORY;
    if (j->ids != NULL) return locus_texts_add_ids(w->texts, j->ids, j->id_count, error);
    locus_text_input input = j->input;
    const locus_model_info *info = &w->by->info;
    const int64_t most = info->cut_tokens > 0 ? info->cut_tokens : info->most_tokens;
    if (most > 0 && (int64_t)input.truncate > most) input.truncate = (uint32_t)most;
    return locus_texts_add(w->texts, &input, error);
}

static int64_t tokens_of(const locus_texts *t)
{
    return locus_texts_offsets(t)[locus_texts_count(t)];
}

/* 1: the job is in the batch. */
static int take(worker *w, job *j)
{
    locus_error error = {""};
    const int64_t before = w->texts != NULL ? tokens_of(w->texts) : 0;
    const locus_status status = add(w, j, &error);
    if (status != LOCUS_OK) {
        refuse_status(j, status, &error);
        return 0;
    }
    j->tokens = tokens_of(w->texts) - before;
    w->batch[w->count++] = j;
    return 1;
}

static int needs_pass(const job *j) { return j->kind == JOB_EMBED || j->kind == JOB_CLASSIFY; }

static void begin_writing(worker *w, job *j)
{
    if (w->scribe != NULL)
        serve_scribe_begin(w->scribe, j);
    else {
        serve_refuse(&j->refused, 503, "backend", "out of memory");
        serve_job_done(j);
    }
}

/* What has to be done with a job; it is done, in the batch, or being written then. */
static void handle(worker *w, job *j)
{
    j->by = w->by;
    atomic_fetch_add(&j->by->holders, 1);
    if (serve_job_abandoned(j)) {
        serve_refuse(&j->refused, 499, "abandoned", "the client has gone");
        serve_job_done(j);
        return;
    }
    if (j->kind == JOB_WRITE) {
        begin_writing(w, j);
        return;
    }
    if (needs_pass(j) && take(w, j)) return;
    if (j->kind == JOB_TOKENIZE) tokenize(w, j);
    if (j->kind == JOB_DECODE) decode(w, j);
    serve_job_done(j);
}

static int is_full(const worker *w)
{
    if (w->count == MOST_BATCH) return 1;
    return w->count > 0 &&
           tokens_of(w->texts) >= (int64_t)w->model->server->options->tokens_per_batch;
}

/* Jobs until the batch is full, or a text is to be written and there is no row for it. */
static void fill(worker *w, int wait)
{
    while (!is_full(w)) {
        job *j = w->held != NULL ? w->held : serve_queue_take(w->model, wait && w->count == 0);
        w->held = NULL;
        if (j == NULL) return;
        if (j->kind == JOB_WRITE && w->scribe != NULL && serve_scribe_full(w->scribe)) {
            w->held = j;
            return;
        }
        handle(w, j);
        wait = 0;
    }
}

static float *copy_row(const float *rows, size_t index, int64_t width)
{
    float *row = malloc((size_t)width * sizeof *row + 1);
    if (row != NULL) memcpy(row, rows + (int64_t)index * width, (size_t)width * sizeof *row);
    return row;
}

static void give(job *j, const float *rows, size_t index, int64_t width)
{
    j->numbers = copy_row(rows, index, width);
    j->count = width;
    if (j->numbers == NULL) serve_refuse(&j->refused, 503, "backend", "out of memory");
}

static int wants(const worker *w, job_kind kind)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->batch[i]->kind == kind) return 1;
    return 0;
}

static void run_batch(worker *w)
{
    const int64_t width = w->by->info.embedding_width, labels = w->by->info.labels;
    const int embeds = wants(w, JOB_EMBED), classifies = wants(w, JOB_CLASSIFY);
    float *vectors = embeds ? calloc(w->count * (size_t)width + 1, sizeof *vectors) : NULL;
    float *logits = classifies ? calloc(w->count * (size_t)labels + 1, sizeof *logits) : NULL;
    const locus_model_results results = {.size = sizeof results,
                                         .embedding = vectors,
                                         .logits = logits};
    locus_error error = {""};
    locus_status status = LOCUS_ERR_MEMORY;
    if ((!embeds || vectors != NULL) && (!classifies || logits != NULL)) {
        serve_compute_begin(w->model->server);
        status = locus_texts_forward(w->texts, &results, &error);
        serve_compute_end(w->model->server);
    }
    atomic_fetch_add(&w->model->batches, 1);
    atomic_fetch_add(&w->model->texts, w->count);
    atomic_fetch_add(&w->model->tokens, (unsigned long long)tokens_of(w->texts));
    for (size_t i = 0; i < w->count; i++) {
        job *j = w->batch[i];
        if (status != LOCUS_OK)
            refuse_status(j, status, &error);
        else if (j->kind == JOB_EMBED)
            give(j, vectors, i, width);
        else
            give(j, logits, i, labels);
        serve_job_done(j);
    }
    free(vectors);
    free(logits);
    locus_texts_clear(w->texts);
    w->count = 0;
}

void *serve_worker(void *served_model)
{
    worker own = {.model = served_model}, *w = &own;
    open_model(w);
    for (;;) {
        const int writes = w->scribe != NULL && serve_scribe_busy(w->scribe);
        fill(w, !writes && w->held == NULL);
        if (w->count > 0) run_batch(w);
        if (w->scribe != NULL && serve_scribe_busy(w->scribe))
            serve_scribe_step(w->scribe);
        else if (w->held == NULL && serve_queue_drained(w->model))
            break;
        swap(w);
    }
    close_model(w);
    return NULL;
}
