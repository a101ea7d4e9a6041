/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_GENERATE_GENERATE_H
#define LOCUS_MODEL_GENERATE_GENERATE_H

/* Generation: what all strategies share. */

#include <locus/generate.h>

#include "model/model.h"

/* One call for all texts. */
typedef struct generate_job {
    const locus_model *model;
    const locus_generation *how;
    locus_session *session;
    locus_generated *result;
    int64_t texts, vocabulary;
    float *logits;    /* [rows with tokens, V] of a step */
    float *scratch;   /* [V] */
    int64_t *places;  /* [V] */
    int32_t *ids;     /* tokens of a step */
    int64_t *offsets; /* [rows + 1] of a step */
    locus_error *error;
} generate_job;

/* A text while it grows. */
typedef struct generate_text {
    int32_t *ids; /* [limit] */
    int64_t count, prompt;
    int64_t limit, least; /* max_length and min_length of it */
    double score;
    int done;
} generate_text;

struct locus_generated {
    const locus_allocator *allocator;
    generate_text *texts;
    int64_t count;
};

/* ---- restrict.c ---- */

/* What the settings forbid or force behind ids[count]: scores of V tokens become -inf; in the
 * order of transformers' processors. */
void generate_restrict(const locus_generation *how, const generate_text *text, const int32_t *ids,
                       int64_t count, float *scores, int64_t vocabulary);

/* 1: the token ends a text. */
int generate_is_end(const locus_generation *how, int32_t id);

/* ---- pick.c: token by token, greedy or drawn ---- */
locus_status generate_pick(generate_job *job);

/* The next token of a text, by its row of logits and job->how. */
void generate_token(const generate_job *job, generate_text *text, int64_t which, float *logits);

/* ---- generate.c ---- */

/* The model generates, and the settings make sense. */
locus_status generate_check(const locus_model *model, const locus_generation *how,
                            locus_error *error);

/* What the text begins with, its lengths and room for its tokens, which are the caller's then. */
locus_status generate_begin(const generate_job *job, generate_text *text, int64_t which,
                            const int32_t *ids, int64_t count);

/* ---- beam.c ---- */
locus_status generate_beams(generate_job *job);

/* ---- settings.c ---- */

/* generation_config.json, else the same keys of config.json. */
locus_status model_read_generation(locus_model *m, const char *folder, const model_settings *config,
                                   locus_error *error);

#endif
