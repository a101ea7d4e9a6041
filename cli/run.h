/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_RUN_H
#define CLI_RUN_H

/* locus run: inputs become a batch, a task answers it. One file per task. */

#include <locus/texts.h>

#include "cli.h"
#include "json.h"

/* Settings of generation; the model's own where they are not given. */
typedef struct run_generation {
    uint32_t beams, max_length; /* 0: not given */
    uint32_t min_length, no_repeat_ngram, top_k;
    uint32_t seed;
    double temperature, top_p;  /* 0: not given */
    const char *length_penalty; /* a number, also below 0; NULL: not given */
    int sample;
} run_generation;
#define RUN_UNSET UINT32_MAX

typedef struct run_values {
    const char *model, *tokenizer, *task, *pair, *file, *ids, *decoder_ids, *features, *isa,
        *output, *labels, *hypothesis, *rank, *precision;
    run_generation generation;
    cli_words texts;
    uint32_t threads, truncate, tokens_per_batch;
    uint32_t rounding; /* locus_precision, of `precision` */
    int json, multi_label;
} run_values;

typedef struct run_task run_task;

typedef struct run_session {
    const run_values *values;
    const run_task *task;
    locus_model *model;
    locus_model_info info;
    locus_tokenizer *tokenizer; /* NULL: ids only, no tokens to print */
    locus_texts *texts;         /* the batch */
    uint32_t *ids;              /* of --ids */
    size_t id_count;
    uint32_t *decoder_ids; /* of --decoder-ids */
    size_t decoder_id_count;
    uint64_t answered; /* inputs of the batches before */
    int64_t per_input; /* texts of the batch that one input is, 1 as a rule */
    void *own;         /* the task's */
    int several;       /* more inputs than one may come */
    double progress;   /* part of the file that is in batches; negative: not known */
} run_session;

struct run_task {
    const char *name;
    int (*given)(const locus_model_info *info); /* 1: the model can do it */
    /* Answers every text of s->texts: computes, then prints one result each, in order. An exit code. */
    int (*run)(run_session *s);
    /* Each may be NULL. Before the first input, an exit code; an input into s->texts; behind the last,
     * an exit code; and away with s->own, whatever happened. */
    int (*begin)(run_session *s);
    locus_status (*add)(run_session *s, const locus_text_input *input, locus_error *error);
    int (*finish)(run_session *s);
    void (*end)(run_session *s);
};

extern const run_task run_zero_shot, run_rank; /* chosen by --labels and --rank alone */
extern const run_task run_classify, run_tokens, run_answer, run_fill, run_generate, run_embed,
    run_hidden;

/* run_task.c: all tasks, in the order in which one is chosen where none is asked for; NULL beyond
 * the last. */
const run_task *run_task_at(size_t index);
/* What the folder is for. */
const run_task *run_task_default(const locus_model_info *info);
/* The task that is asked for, of those that the model gives. */
int run_task_choose(run_session *s);

/* run_session.c: everything between the options and the tasks; an exit code. */
int run_all(const run_values *values);

/* run_features.c: --features, with --task hidden; an exit code. */
int run_features(const run_session *s);

/* run_hidden.c: `count` arrays of `size` floats in one block, NULL: no memory; and the file of the
 * states of all layers. */
float **run_arrays_new(int64_t count, int64_t size);
void run_arrays_free(float **arrays);
int run_hidden_write(const run_session *s, float *const *hidden, int64_t tokens);

/* ---- what tasks share (run_results.c) ---- */

typedef struct run_text { /* one of the batch */
    const int32_t *ids;
    int64_t first, count; /* tokens of the batch */
} run_text;
run_text run_text_at(const run_session *s, int64_t index);

int run_no_memory(void);
/* The forward pass over the batch. */
int run_forward(run_session *s, const locus_model_results *results);
/* An object with the ids and tokens of a text; json_end ends it. */
void run_json_begin(json *j, const run_session *s, const run_text *text);
void run_json_numbers(json *j, const char *key, const float *numbers, int64_t count);
/* The token of an id, or the id itself where there is no tokenizer; returns its columns. */
size_t run_print_token(const run_session *s, int32_t id);

/* The probability of a label of the head: softmax over the row, or each by itself. */
double run_probability(const locus_model_info *info, const float *row, int64_t label);
/* The largest of a row. */
int64_t run_best(const float *row, int64_t count);

#endif
