/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_PASS_H
#define LOCUS_MODEL_PASS_H

/* What depends on the lengths of a batch: plans of attention and how much memory a run takes. One
 * ragged plan serves all sequences where it can; else there is a plan per length. With a cache, the
 * tokens of a sequence continue those that are in it. */

#include "model/model.h"

typedef struct pass_plan {
    int64_t queries, keys;
    int attention; /* its number in the program */
    int pairs;     /* 1: with scores of pairs of two types */
    int all;       /* 1: of all sequences of the pass */
    locus_plan *plan;
} pass_plan;

/* The plans of an attention. */
typedef struct pass_kind {
    int together;    /* 1: plan_of[0] attends in all sequences at once, in one ragged call */
    size_t *plan_of; /* [sequences] */
} pass_kind;

/* What a session keeps between its steps. Keys and values: [layers][slots][capacity][k, v], turned
 * where the scheme turns; and those of the encoder's states: [layers][tokens of all texts][k, v]. */
typedef struct model_cache {
    float *kv;
    int64_t rows, capacity;
    int64_t *past;       /* [rows] tokens that are there */
    const int64_t *slot; /* [rows] where in kv a row lies */
    float *source;
    int64_t source_tokens;
    const int64_t *source_offsets; /* of the texts */
    const int64_t *text;           /* [rows] which text a row is about */
    int stretched; /* 1: tokens turn by the frequencies of long texts, be they few */
} model_cache;

struct locus_model_pass {
    const locus_model *model;
    model_cache *cache;           /* NULL: there is nothing before the tokens */
    int first_stack, stack_count; /* which stacks of layers run */
    int64_t sequences;
    int64_t tokens[2], longest[2]; /* of each stack */
    int64_t *offsets[2];           /* copies; NULL: the stack does not run */
    locus_ragged ragged[2];
    pass_plan *plans;
    size_t plan_count, plan_room;
    pass_kind *kinds; /* [attentions] */
    float *sinusoid;  /* [distance_rows, E] of the distances */
    int64_t first_distance, distance_rows;
    size_t bytes;                  /* of workspace */
    size_t kept_bytes, back_bytes; /* of a model that is trained */
};

/* A pass for as many sequences, without lengths, of stacks first_stack and on. */
locus_status model_pass_make(locus_model_pass **pass, const locus_model *model, model_cache *cache,
                             int first_stack, int stack_count, int64_t sequences,
                             locus_error *error);

/* Plans for these lengths; sequences of a cached pass continue what the cache holds. Arrays of the
 * pass are for as many sequences as it was made for. */
locus_status model_pass_set(locus_model_pass *pass, const int64_t *offsets,
                            const int64_t *decoder_offsets, locus_error *error);

/* Where the sequences of a stack begin, as q_offsets and k_offsets of a ragged call. */
static inline locus_tensor pass_offsets(const locus_model_pass *p, int stack)
{
    return locus_view(p->offsets[stack], LOCUS_I64, 1, (const int64_t[]){p->sequences + 1});
}

/* Tokens of a sequence that went before. */
static inline int64_t pass_past(const locus_model_pass *p, int64_t s)
{
    return p->cache != NULL ? p->cache->past[s] : 0;
}

/* The two ends of the encoder's tokens that sequence s of the decoder attends to. */
static inline const int64_t *pass_text(const locus_model_pass *p, int64_t s)
{
    return p->cache != NULL ? p->cache->source_offsets + p->cache->text[s] : p->offsets[0] + s;
}

/* 1: this stack runs. */
static inline int pass_runs(const locus_model_pass *p, int stack)
{
    return stack >= p->first_stack && stack < p->first_stack + p->stack_count;
}

/* ---- memory.c ---- */

/* Rows of every extent, the most that a batch can ask for. */
void pass_rows(const locus_model_pass *pass, int64_t rows[EXTENTS]);

/* How much memory runs take. 0: it does not fit. */
int model_measure(locus_model_pass *pass);

/* ---- distances.c ---- */

/* Sinusoids of the distances of these lengths. */
locus_status model_distances_new(locus_model_pass *pass, locus_error *error);

/* The distances that `longest` tokens meet: the first, and how many. */
void model_distances(const attention *a, int64_t longest, int64_t *first, int64_t *count);
/* Their rows; workers: of as many threads. */
locus_status model_sinusoids(const locus_model *m, const attention *a, int64_t first, int64_t count,
                             float *to, locus_error *error);

#endif
