/* SPDX-License-Identifier: Apache-2.0 */
/* Texts that are written token by token: they join and leave between two tokens of the others. A decoder
 * behind an encoder writes a text at a time. */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "serve/server.h"

struct scribe {
    served *model;
    loaded *by;
    locus_writer *writer; /* NULL: a decoder behind an encoder */
    uint32_t rows, busy;
    job *row[]; /* [rows]; NULL: nothing is written there */
};

scribe *serve_scribe_new(served *m, loaded *by, uint32_t rows)
{
    locus_error error = {""};
    scribe *s = calloc(1, sizeof *s + rows * sizeof(job *));
    if (s == NULL) return NULL;
    s->model = m;
    s->by = by;
    s->rows = rows;
    if (by->info.decoder_layers > 0) return s;
    if (locus_writer_new(&s->writer, by->model, rows, &error) == LOCUS_OK) return s;
    free(s);
    return NULL;
}

void serve_scribe_free(scribe *s)
{
    if (s == NULL) return;
    locus_writer_free(s->writer);
    free(s);
}

int serve_scribe_busy(const scribe *s) { return s->busy > 0; }

int serve_scribe_full(const scribe *s) { return s->busy == s->rows; }

/* ---- letters ---- */

/* Ids as text; the caller frees it. NULL: no memory, or no text. */
static char *decode(const scribe *s, const int32_t *ids, int64_t count, size_t *bytes)
{
    locus_error error = {""};
    const uint32_t *own = (const uint32_t *)ids;
    *bytes = 0;
    if (locus_tokenizer_decode(s->by->tokenizer, own, (size_t)count, 1, NULL, 0, bytes, &error) !=
        LOCUS_OK)
        return NULL;
    char *text = malloc(*bytes + 1);
    if (text != NULL && locus_tokenizer_decode(s->by->tokenizer, own, (size_t)count, 1, text,
                                               *bytes, bytes, &error) == LOCUS_OK)
        return text;
    free(text);
    return NULL;
}

/* 1: the last letter may still grow: U+FFFD stands for a part of one. */
static int is_unfinished(const char *text, size_t bytes)
{
    return bytes >= 3 && memcmp(text + bytes - 3, "\xEF\xBF\xBD", 3) == 0;
}

static int append(writing *w, const char *text, size_t bytes)
{
    char *grown = realloc(w->text, w->bytes + bytes + 1);
    if (grown == NULL) return 0;
    w->text = grown;
    memcpy(w->text + w->bytes, text, bytes);
    w->bytes += bytes;
    return 1;
}

/* What ids [read, count) add to the text: the window begins before them, since blanks and joined letters
 * depend on what stands in front. A letter that may still grow waits, unless this is the end. */
static int read_letters(const scribe *s, writing *w, const int32_t *ids, int64_t count, int last)
{
    size_t before = 0, bytes = 0;
    char *old = decode(s, ids + w->window, w->read - w->window, &before);
    char *text = decode(s, ids + w->window, count - w->window, &bytes);
    int good = old != NULL && text != NULL;
    if (good && bytes >= before && (last || !is_unfinished(text, bytes))) {
        good = append(w, text + before, bytes - before);
        w->window = w->read;
        w->read = count;
    }
    free(old);
    free(text);
    return good;
}

/* ---- stops ---- */

/* The first place of a stop in the text from `from` on, or SIZE_MAX. */
static size_t find_stop(const writing *w, const json_value *stop, size_t from)
{
    for (size_t at = from; stop->bytes > 0 && at + stop->bytes <= w->bytes; at++)
        if (memcmp(w->text + at, stop->text, stop->bytes) == 0) return at;
    return SIZE_MAX;
}

static const json_value *first_stop(const writing *w)
{
    return w->stop != NULL && w->stop->kind == LOCUS_JSON_ARRAY ? w->stop->child : w->stop;
}

static size_t longest_stop(const writing *w)
{
    size_t longest = 0;
    for (const json_value *s = first_stop(w); s != NULL; s = s->next) {
        if (s->bytes > longest) longest = s->bytes;
        if (s == w->stop) break;
    }
    return longest;
}

/* The text ends before the first stop in it. */
static void cut_at_stop(writing *w, size_t from)
{
    size_t cut = SIZE_MAX;
    for (const json_value *s = first_stop(w); s != NULL; s = s->next) {
        const size_t at = find_stop(w, s, from);
        if (at < cut) cut = at;
        if (s == w->stop) break;
    }
    if (cut == SIZE_MAX) return;
    w->bytes = cut;
    w->finish = "stop";
}

/* ---- a stream ---- */

static size_t index_of(const job *j)
{
    size_t i = 0;
    while (j->of->jobs[i] != j) i++;
    return i;
}

/* One event: a piece of the text; at its end why it ends. */
static void send_event(const job *j, const char *text, size_t bytes, const char *finish)
{
    exchange *x = j->of;
    char *event = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&event, &size);
    if (out == NULL) return;
    json o = {.out = out};
    fputs("data: ", out);
    json_inline_object(&o, NULL);
    json_text(&o, "id", x->id);
    json_text(&o, "object", "text_completion");
    json_integer(&o, "created", x->created);
    json_text(&o, "model", x->model->name);
    json_inline_array(&o, "choices");
    json_inline_object(&o, NULL);
    json_bytes(&o, "text", text, bytes);
    json_size(&o, "index", index_of(j));
    json_null(&o, "logprobs");
    json_text(&o, "finish_reason", finish);
    json_end(&o);
    json_end(&o);
    json_end(&o);
    fputc('\n', out);
    if (fclose(out) == 0) serve_stream(x, event, size);
    free(event);
}

/* What cannot become a stop any more, in whole letters. */
static void send_letters(job *j)
{
    writing *w = j->writing;
    const size_t longest = longest_stop(w),
                 held = longest > 0 && w->finish == NULL ? longest - 1 : 0;
    size_t end = w->bytes > held ? w->bytes - held : 0;
    while (end < w->bytes && end > w->sent && ((unsigned char)w->text[end] & 0xC0) == 0x80) end--;
    if (w->finish == NULL && end <= w->sent) return;
    const size_t from = w->sent < end ? w->sent : end;
    send_event(j, w->text + from, end - from, w->finish);
    w->sent = end;
}

/* ---- a text ---- */

static void finish(scribe *s, job *j)
{
    if (s->writer != NULL && j->writing->row >= 0) {
        locus_writer_end(s->writer, j->writing->row);
        s->row[j->writing->row] = NULL;
        s->busy--;
    }
    atomic_fetch_add(&s->model->texts, 1);
    atomic_fetch_add(&s->model->tokens, (unsigned long long)j->tokens);
    atomic_fetch_add(&s->model->written, (unsigned long long)j->new_tokens);
    serve_job_done(j);
}

/* What `count` ids have become. `done`: the model adds nothing to them. */
static void look(scribe *s, job *j, const int32_t *ids, int64_t count, int done)
{
    writing *w = j->writing;
    const size_t longest = longest_stop(w);
    const size_t from = w->bytes > longest ? w->bytes - longest : 0;
    if (!read_letters(s, w, ids, count, done)) {
        serve_refuse(&j->refused, 503, "backend", "out of memory");
        w->finish = "stop";
        return;
    }
    if (longest > 0) cut_at_stop(w, from);
    if (done && w->finish == NULL) {
        int ended = 0;
        for (int64_t i = 0; i < w->how.end_count; i++) ended |= w->how.ends[i] == ids[count - 1];
        w->finish = ended ? "stop" : "length";
    }
    if (j->of->streams) send_letters(j);
}

static void refuse(job *j, locus_status status, const locus_error *error)
{
    if (status == LOCUS_ERR_MEMORY)
        serve_refuse(&j->refused, 503, "backend", "out of memory");
    else
        serve_refuse(&j->refused, 400, "validation", "%s", error->text);
}

/* The prompt as ids; an exit of 0 refuses the job. */
static int read_prompt(scribe *s, job *j)
{
    locus_error error = {""};
    locus_texts *texts = NULL;
    locus_status status = locus_texts_new(&texts, s->by->model, s->by->tokenizer, NULL, &error);
    if (status == LOCUS_OK)
        status = j->ids != NULL ? locus_texts_add_ids(texts, j->ids, j->id_count, &error)
                                : locus_texts_add(texts, &j->input, &error);
    if (status == LOCUS_OK) {
        j->tokens = locus_texts_offsets(texts)[1];
        int32_t *ids = malloc((size_t)j->tokens * sizeof *ids + 1);
        if (ids != NULL) memcpy(ids, locus_texts_ids(texts), (size_t)j->tokens * sizeof *ids);
        free(j->ids);
        j->ids = ids;
        if (ids == NULL) status = LOCUS_ERR_MEMORY;
    }
    locus_texts_free(texts);
    if (status != LOCUS_OK) refuse(j, status, &error);
    return status == LOCUS_OK;
}

static int fits(const scribe *s, job *j)
{
    const int64_t most = s->by->info.most_tokens, asked = j->tokens + j->writing->most;
    if (s->writer == NULL || most == 0 || asked <= most) return 1;
    serve_refuse(
        &j->refused, 400, "validation",
        "the model takes at most %lld tokens: found %lld of the prompt and max_tokens %lld",
        (long long)most, (long long)j->tokens, (long long)j->writing->most);
    return 0;
}

/* ---- a decoder behind an encoder ---- */

typedef struct telling {
    scribe *scribe;
    job *job;
    int32_t *ids;
    int64_t count;
} telling;

static void tell(void *context, int64_t text, int32_t id)
{
    telling *t = context;
    (void)text;
    t->ids[t->count++] = id;
    if (t->job->of->streams && t->job->writing->finish == NULL)
        look(t->scribe, t->job, t->ids, t->count, 0);
}

/* The whole text at once; the callback is not told of beams. */
static void write_whole(scribe *s, job *j)
{
    const int64_t offsets[2] = {0, j->tokens};
    locus_generated *generated = NULL;
    locus_error error = {""};
    locus_generation how = j->writing->how;
    telling t = {.scribe = s, .job = j};
    int64_t count = 0;
    t.ids = calloc((size_t)j->writing->most + 2, sizeof *t.ids);
    how.token = tell;
    how.context = &t;
    if (how.start >= 0) t.count = 1, t.ids[0] = how.start;
    serve_compute_begin(s->model->server);
    const locus_status status =
        t.ids == NULL ? LOCUS_ERR_MEMORY
                      : locus_generate(&generated, s->by->model, &how, j->ids, offsets, 1, &error);
    serve_compute_end(s->model->server);
    if (status != LOCUS_OK) {
        refuse(j, status, &error);
    } else {
        const int32_t *ids = locus_generated_ids(generated, 0, &count);
        j->new_tokens = count - 1;
        if (j->writing->finish == NULL) look(s, j, ids, count, 1);
    }
    locus_generated_free(generated);
    free(t.ids);
}

/* ---- all of them ---- */

/* What the request says goes before what the model says. A stream has no beams: they change their mind. */
static void set_how(const scribe *s, job *j)
{
    writing *w = j->writing;
    w->how = (locus_generation){.size = sizeof w->how};
    locus_generation_init(&w->how, s->by->model);
    if (w->temperature >= 0.0) w->how.sample = w->temperature > 0.0;
    if (w->temperature > 0.0) w->how.temperature = w->temperature;
    if (w->top_p >= 0.0) w->how.top_p = w->top_p;
    if (w->top_k >= 0) w->how.top_k = w->top_k;
    if (s->writer != NULL || w->how.sample || j->of->streams) w->how.beams = 1;
    w->how.seed = w->seed;
    w->how.max_new_tokens = w->most;
}

void serve_scribe_begin(scribe *s, job *j)
{
    locus_error error = {""};
    writing *w = j->writing;
    w->row = -1;
    set_how(s, j);
    if (!read_prompt(s, j) || !fits(s, j)) {
        serve_job_done(j);
        return;
    }
    if (j->of->streams) serve_stream_start(j->of);
    if (s->writer == NULL) {
        write_whole(s, j);
        finish(s, j);
        return;
    }
    w->window = 0;
    w->read = w->echo ? 0 : j->tokens;
    const locus_status status =
        locus_writer_begin(s->writer, &w->how, j->ids, j->tokens, &w->row, &error);
    if (status != LOCUS_OK) {
        refuse(j, status, &error);
        serve_job_done(j);
        return;
    }
    s->row[w->row] = j;
    s->busy++;
}

/* What a step has brought to a row. */
static void look_at_row(scribe *s, int64_t row)
{
    job *j = s->row[row];
    int64_t count = 0;
    int done = 0;
    const int32_t *ids = locus_writer_ids(s->writer, row, &count, &done);
    j->new_tokens = count - j->tokens;
    look(s, j, ids, count, done);
    if (j->writing->finish == NULL && serve_job_abandoned(j)) {
        serve_refuse(&j->refused, 499, "abandoned", "the client has gone");
        j->writing->finish = "stop";
    }
    if (j->writing->finish != NULL) finish(s, j);
}

void serve_scribe_step(scribe *s)
{
    locus_error error = {""};
    serve_compute_begin(s->model->server);
    const locus_status status = locus_writer_step(s->writer, &error);
    serve_compute_end(s->model->server);
    atomic_fetch_add(&s->model->batches, 1);
    for (int64_t r = 0; r < (int64_t)s->rows; r++) {
        if (s->row[r] == NULL) continue;
        if (status == LOCUS_OK) {
            look_at_row(s, r);
        } else {
            refuse(s->row[r], status, &error);
            finish(s, s->row[r]);
        }
    }
}
