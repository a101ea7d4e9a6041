/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SERVE_SERVER_H
#define SERVE_SERVER_H

/* The inside of locus serve.
 *
 *     exchange.c   a request from its first byte to its answer: the thread of the HTTP library
 *     doors.c      which path is which door; a door reads a request into jobs and writes their answer
 *     queue.c      jobs wait for the thread of their model, oldest first
 *     worker.c     that thread: jobs become ragged batches
 *     write.c      the same thread between batches: texts that are written token by token
 *     models.c     models are opened, described, swapped
 *
 * A job belongs to the worker from the moment it is queued until serve_job_done; the exchange waits
 * suspended meanwhile. So nothing of either needs a lock but the queue and the bytes of a stream. */

#include <locus/generate.h>
#include <locus/texts.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cli/json.h"
#include "io/json_tree.h"
#include "serve/serve.h"

typedef struct server server;
typedef struct served served;
typedef struct exchange exchange;

/* ---- models ---- */

/* A model as it is opened. Jobs that it answered hold it until their answer is written. */
typedef struct loaded {
    atomic_int holders;
    locus_model *model;
    locus_model_info info;
    locus_tokenizer *tokenizer;
} loaded;

typedef struct job job;

typedef struct job_queue {
    pthread_mutex_t lock;
    pthread_cond_t filled;
    job *first, *last;
    size_t count;
    int closed; /* nothing more comes */
} job_queue;

/* One model of the command line, and the thread that runs it. */
struct served {
    server *server;
    char *name;
    const char *folder;
    job_queue queue;
    pthread_t thread;
    int runs;      /* the thread has been started       */
    loaded *model; /* under queue.lock                  */
    loaded *next;  /* the same: takes its place between two batches */
    atomic_ullong texts, tokens, batches, written;
};

/* An exit code. */
int serve_models_open(server *s);
void serve_models_close(server *s);
/* Open every folder anew, beside what runs; one that is refused stays as it is. */
void serve_models_reload(server *s);
loaded *serve_hold(served *m);
void serve_release(loaded *l);

int serve_embeds(const loaded *l);
int serve_classifies(const loaded *l);
int serve_writes(const loaded *l);

/* ---- jobs ---- */

typedef enum job_kind { JOB_EMBED, JOB_CLASSIFY, JOB_TOKENIZE, JOB_DECODE, JOB_WRITE } job_kind;

/* Why there is no answer. */
typedef struct refusal {
    int status;       /* of HTTP; 0: there is none */
    const char *type; /* "validation", "overloaded", ...: text-embeddings-inference's words */
    const char *param;
    char text[400];
} refusal;

/* How a text is to be written, and what there is of it. */
typedef struct writing {
    double temperature, top_p; /* below 0: the model's                                 */
    int64_t top_k;             /* the same                                             */
    uint64_t seed;
    locus_generation how;   /* by them and the model, once it is its turn           */
    int64_t most;           /* tokens behind the prompt                             */
    const json_value *stop; /* a text that ends it, or an array of them; NULL: none */
    int echo;               /* the prompt is a part of the answer                   */
    int64_t row;
    int64_t window, read; /* ids: the window begins, and what is in `text` ends   */
    char *text;
    size_t bytes, sent; /* of the text; that a stream has been given            */
    const char *finish; /* "stop", "length"; NULL: it is being written          */
} writing;

/* One text. */
struct job {
    job *next;
    exchange *of;
    job_kind kind;
    /* asked */
    locus_text_input input;
    int32_t *ids; /* in place of a text */
    int64_t id_count;
    int skip_special;
    writing *writing;
    /* answered */
    loaded *by;
    float *numbers; /* an embedding, or logits */
    int64_t count;
    int64_t tokens, new_tokens;
    locus_encoding *encoding;
    char *text;
    size_t bytes;
    refusal refused;
};

/* Put the jobs of an exchange behind those that wait. 0: there is no room for them. */
int serve_queue(served *m, exchange *x);
/* Take the oldest; waits for one if `wait`. NULL: there is none. */
job *serve_queue_take(served *m, int wait);
void serve_queue_close(served *m);
size_t serve_queue_count(served *m);
int serve_queue_drained(served *m); /* it is closed and nothing waits */
void serve_job_done(job *j);
/* 1: nobody waits for its answer any more. */
int serve_job_abandoned(const job *j);
void serve_job_free(job *j);

/* The thread of a model. */
void *serve_worker(void *served_model);

/* write.c: texts that are being written by one model. */
typedef struct scribe scribe;
scribe *serve_scribe_new(served *m, loaded *by, uint32_t rows);
void serve_scribe_free(scribe *s);
int serve_scribe_busy(const scribe *s);
int serve_scribe_full(const scribe *s);
void serve_scribe_begin(scribe *s, job *j);
void serve_scribe_step(scribe *s);

/* One model computes at a time, in the order in which they ask: threads never share a core. */
void serve_compute_begin(server *s);
void serve_compute_end(server *s);

/* ---- requests ---- */

/* A path, and what is behind it. */
typedef struct door {
    const char *method, *path;
    int openai; /* errors as OpenAI's clients expect them; else as text-embeddings-inference's */
    /* Read the body into jobs of x, or refuse. NULL: there is no body. */
    void (*read)(exchange *x, const json_value *body);
    /* Write the answer. */
    void (*write)(exchange *x, FILE *out);
    const char *type; /* of the answer; NULL: application/json */
} door;

/* NULL: no such path; *others: it has one of another method. */
const door *serve_door(const char *method, const char *path, const char **others);
const door *serve_door_at(size_t index);

typedef enum exchange_state {
    EXCHANGE_READS, /* its body comes                        */
    EXCHANGE_WAITS, /* suspended, until its jobs are done    */
    EXCHANGE_ENDS,  /* an answer has been given              */
} exchange_state;

struct exchange {
    server *server;
    struct MHD_Connection *connection;
    int socket;
    const door *door;
    exchange_state state;
    char *body;
    size_t bytes, room;
    double began; /* seconds */
    json_tree tree;
    /* what the door read */
    served *model;
    job **jobs;
    size_t job_count;
    atomic_size_t left; /* jobs that are not done */
    int base64, raw_scores, with_texts, one, normalize;
    int nested;              /* a list of lists, for a single text, too */
    int64_t top;             /* so many of the best; -1: all */
    const json_value *texts; /* of a rerank, to be given back */
    refusal refused;
    /* a stream */
    int streams;
    pthread_mutex_t lock; /* of what follows */
    char *sent;
    size_t sent_bytes, sent_room, sent_from;
    int waiting, ended;
    atomic_int started, gone;
    atomic_int holders; /* the HTTP library, and the jobs together */
    char id[40];
    int64_t created;
};

/* The only way to say no; the first one stays. */
#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
void serve_refuse(refusal *r, int status, const char *type, const char *format, ...);

void serve_exchange_release(exchange *x);
/* Its whole body becomes jobs, or a refusal. */
void serve_exchange_read(exchange *x);

/* ---- a stream (stream.c): what a worker sends while the HTTP library hands it on ---- */

/* Its first text is being written, so the answer begins. */
void serve_stream_start(exchange *x);
void serve_stream(exchange *x, const char *bytes, size_t count);
/* All of its jobs are done. */
void serve_stream_end(exchange *x);
enum MHD_Result serve_stream_answer(exchange *x);

/* The message of a refusal as one line of JSON. */
void serve_write_refusal(const exchange *x, const refusal *r, FILE *out);

enum MHD_Result serve_access(void *cls, struct MHD_Connection *connection, const char *url,
                             const char *method, const char *version, const char *upload,
                             size_t *upload_bytes, void **state);
void serve_completed(void *cls, struct MHD_Connection *connection, void **state,
                     enum MHD_RequestTerminationCode how);

/* ---- reading (request.c); each refuses x where the body is not as expected ---- */

/* The model that is asked for by name, or the first that `can`. */
int serve_pick_model(exchange *x, const json_value *body, int (*can)(const loaded *),
                     const char *what);
int serve_new_jobs(exchange *x, size_t count, job_kind kind);
int serve_read_text(exchange *x, const char *key, const json_value *value, const char **text,
                    size_t *bytes);
int serve_read_ids(exchange *x, const char *key, const json_value *value, job *j);
/* A text, a list of texts, of ids, or of lists of ids: one job each; x->one: it was no list. */
int serve_read_inputs(exchange *x, const char *key, const json_value *value, job_kind kind);
int serve_read_flag(exchange *x, const json_value *body, const char *key, int preset);
int64_t serve_read_integer(exchange *x, const json_value *body, const char *key, int64_t preset,
                           int64_t least, int64_t most);
double serve_read_real(exchange *x, const json_value *body, const char *key, double preset,
                       double least, double most);
void serve_set_truncation(exchange *x, int truncate);
/* Keys that a door does not know, or must not ignore, are refused by their name. */
void serve_expect_keys(exchange *x, const json_value *body, const char *const *keys);

/* ---- the rest ---- */

typedef struct metrics {
    atomic_ullong answered[6]; /* by the first digit of the status */
    atomic_ullong overloaded;
    atomic_ullong bucket[16]; /* requests by their time */
    atomic_ullong micros;
} metrics;
void serve_metrics_add(metrics *m, int status, double seconds);
void serve_metrics_write(exchange *x, FILE *out);

struct server {
    const serve_options *options;
    struct MHD_Daemon *daemon;
    served *models;
    size_t model_count;
    char *key; /* of the file; NULL: anybody may ask */
    atomic_size_t buffered, exchanges;
    atomic_int stopping;
    atomic_ullong numbers; /* of ids of answers */
    pthread_mutex_t compute_lock;
    pthread_cond_t compute_turn;
    unsigned long long compute_next, compute_now; /* tickets */
    metrics metrics;
};

double serve_clock(void);

extern const door serve_door_embeddings, serve_door_embeddings_short, serve_door_embed,
    serve_door_predict, serve_door_rerank, serve_door_rank_jina, serve_door_rank_cohere,
    serve_door_tokenize, serve_door_decode, serve_door_completions, serve_door_root;

#endif
