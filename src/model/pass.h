/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_PASS_H
#define LOCUS_MODEL_PASS_H

/* What depends on the lengths of a batch: plans of attention and the layout of the workspace. One
 * ragged plan serves all sequences where it can; else there is a plan per length. With a cache, the
 * tokens of a sequence continue those that are in it. */

#include "model/model.h"

typedef struct pass_plan {
    int64_t queries, keys;
    int cross; /* 1: of attention to an encoder's states */
    int pairs; /* 1: with scores of pairs of two types */
    int all;   /* 1: of all sequences of the pass */
    locus_plan *plan;
} pass_plan;

/* What a decoder sees beside its tokens. Keys and values between the steps of a session: [layers][slots][capacity][k, v], turned where the
 * scheme turns; and those of the encoder's states: [layers][tokens of all texts][k, v]. */
typedef struct model_cache {
    float *kv;
    int64_t rows, capacity;
    int64_t *past;       /* [rows] tokens that are there */
    const int64_t *slot; /* [rows] where in kv a row lies */
    const float *source;
    int64_t source_tokens;
    const int64_t *source_offsets; /* of the texts */
    const int64_t *text;           /* [rows] which text a row is about */
    const float
        *states;      /* [source_tokens, E] of the encoder, where `source` is `projected` from them
                            in every layer; NULL: it holds all layers */
    float *projected; /* [source_tokens][k, v] */
} model_cache;

struct locus_model_pass {
    const locus_model *model;
    model_cache *cache; /* NULL: there is nothing before the tokens */
    int64_t tokens, longest;
    locus_ragged ragged; /* offsets are a copy */
    int64_t *offsets;
    pass_plan *plans;
    size_t plan_count, plan_room;
    size_t *plan_of, *cross_plan_of; /* [sequences] */
    int together;    /* 1: plan 0 attends in all sequences at once, in one ragged call */
    float *sinusoid; /* [distance_rows, E] of the distances -(longest - 1) to longest - 1 */
    int64_t distance_rows;
    size_t bytes; /* of workspace */
    locus_model_pass
        *decoder; /* behind this encoder; NULL: of one stack of layers alone. Its cache holds
                                  no tokens */
    int64_t *decoder_rows;        /* [2 sequences] past and text of that cache */
    model_cache source;           /* that cache */
    size_t source_at, decoder_at; /* in the workspace: k and v of the states, that of the decoder */
    /* of a model that is trained, as a pass that computes nothing counts them (gradients.c) */
    size_t kept_bytes, back_bytes, tape_entries;
    int64_t tape_largest, tape_rows, tape_parts;
};

/* The workspace. [N: tokens] */
typedef struct pass_work {
    float *h;               /* [N, E] the stream                                  */
    float *other;           /* [N, E] the stream before a norm, or normed for one */
    float *sum;             /* [N, E] the stream between sublayers with the norm first; or NULL */
    float *between;         /* [N, E] the stream behind attention to an encoder; or NULL */
    float *first;           /* [N, E] the embeddings, for a convolution; or NULL  */
    float *narrow;          /* [N, W] embeddings before a map; or NULL            */
    float *qkv;             /* [N, A + 2 C]                                       */
    float *turns;           /* [N, 2, D / 2] cosines and sines; or NULL           */
    float *heads;           /* [N, A] what attention gives                        */
    float *inner;           /* [N, F]                                             */
    float *gate;            /* [N, F]; or NULL                                    */
    float *firsts, *pooled; /* [sequences, E] of a head; or NULL */
    float *fill;            /* [N, W] of a head that fills masks; or NULL */
    float *glu;             /* [N, E] of a conformer block; or NULL                */
    float *turned;          /* [N, E] turned input; or NULL                        */
    float *before;          /* [memory, 3 A] of a memory; or NULL                  */
    float *kv;              /* [memory + longest, 2 A] with it before; or NULL     */
    float *distances;       /* [distance_rows, A] projected sinusoids; or NULL    */
    float *pairs;           /* [H, longest, longest] of pairs of two types; or NULL */
    float *words;           /* [V, E] of a word table in parts; or NULL           */
    float *relative;        /* [R, E] rows of relative tables behind a norm; or NULL */
    float *relative_k, *relative_q; /* [R, A] projected by a layer; or NULL */
    float *narrowed;                /* [N, W] before logits; or NULL */
    float *lse;                     /* [H, longest], or [H, N] of a ragged call           */
    int32_t *position;              /* [N]                                             */
    void *attention;
    size_t attention_bytes;
    void *convolution, *linear;
    size_t bytes;
} pass_work;

/* A pass for as many sequences, without lengths. */
locus_status model_pass_make(locus_model_pass **pass, const locus_model *model, model_cache *cache,
                             int64_t sequences, locus_error *error);

/* Plans for these lengths; sequences of a cached pass continue what the cache holds. Arrays of the
 * pass are for as many sequences as it was made for. */
locus_status model_pass_set(locus_model_pass *pass, const int64_t *offsets, locus_error *error);

/* Where its sequences begin, as q_offsets and k_offsets of a ragged call. */
locus_tensor model_pass_offsets(const locus_model_pass *pass);

/* ---- forward.c ---- */

/* One stack of layers; batch and results are of this version. */
locus_status model_forward_stack(const locus_model_pass *pass, const locus_model_batch *batch,
                                 const locus_model_results *results, void *workspace,
                                 size_t workspace_bytes, locus_error *error);

/* ---- pass.c ---- */

/* One function measures (base NULL) and lays out. 0: it does not fit in memory. */
int model_pass_carve(const locus_model_pass *pass, void *base, pass_work *work);

/* ---- gradients.c ---- */

/* How much a forward pass keeps and the way back takes. */
locus_status model_count_tape(locus_model_pass *pass, locus_error *error);

/* ---- conformer.c ---- */

/* to = h + the gated convolution of h; `room` [N, E] is used on the way. */
void model_depth_forward(const locus_model_pass *pass, const model_layer *layer, const pass_work *w,
                         float *to, const float *h, float *room);

/* x turned by w->turns, in w->turned. */
void model_turns_apply(const locus_model_pass *pass, const pass_work *w, const float *x);

/* ---- distances.c ---- */

/* How many distances the longest sequence has, without those that share a row; the first of them. */
int64_t model_distance_rows(const locus_model_pass *pass);
int64_t model_first_distance(const locus_model_pass *pass);

/* Sinusoids of these distances. */
locus_status model_distances_new(locus_model_pass *pass, locus_error *error);

/* rel_k of a layer for the rows of the pass, from what was projected last; data may be NULL. */
locus_tensor model_distance_table(const locus_model_pass *pass, float *data);

/* Project them by a layer's map into w->distances. */
void model_distances_project(const locus_model_pass *pass, const model_layer *layer,
                             const pass_work *w);

/* ---- words.c ---- */

/* The word table of this pass. */
const float *model_words(const locus_model_pass *pass, const pass_work *w);

/* ---- relative.c ---- */

/* Tables of relative positions of a model that is trained: through their norm once in a pass, by the
 * maps of a layer into w->relative_k and w->relative_q. Of other models they are made once for all
 * (weights.c), and nothing happens here. */
void model_relative_norm(const locus_model_pass *pass, const pass_work *w);
void model_relative_project(const locus_model_pass *pass, const model_layer *layer,
                            const pass_work *w);

/* ---- segments.c ---- */

/* 1 when sequence s has tokens of two types. */
int model_has_segments(const locus_model_pass *pass, const locus_model_batch *batch, int64_t s);

/* Scores of the pairs of one sequence by their types, [1, H, T, T] in `pairs`; q in rows `stride`
 * apart. */
locus_tensor model_segment_pairs(const model_description *d, const model_layer *layer,
                                 const float *q, int64_t stride, const int32_t *types,
                                 int64_t length, float *pairs);

/* What a layer adds to the scores of sequence s, [1, H, T, T] in w->pairs, from its q. */
locus_tensor model_segment_scores(const locus_model_pass *pass, const locus_model_batch *batch,
                                  const model_layer *layer, const pass_work *w, int64_t s);

/* ---- fill.c ---- */

/* logits [rows of the batch, V] from the states in w->h. */
void model_fill(const locus_model_pass *pass, const locus_model_batch *batch, const pass_work *w,
                float *logits);

/* The same from `rows` states. */
void model_fill_rows(const locus_model *m, const pass_work *w, float *logits, const float *states,
                     int64_t rows);

/* ---- taps.c ---- */

/* The convolution beside the first layer, without workspace. */
locus_convolution model_convolution(const locus_model *m);

/* The two maps of a feed-forward sublayer as convolutions, without workspace. */
locus_convolution model_taps_in(const locus_model *m, const model_layer *layer);
locus_convolution model_taps_out(const locus_model *m, const model_layer *layer);

/* to = residual + convolution(activation(convolution(x))) */
void model_taps_forward(const locus_model_pass *pass, const model_layer *layer, const pass_work *w,
                        float *to, const float *x, const float *residual);

#endif
