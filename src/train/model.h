/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TRAIN_MODEL_H
#define LOCUS_TRAIN_MODEL_H

/* A small transformer with gradients:
 *     h = embed[token] sqrt(E) (+ positions: sinusoidal, learned)
 *     per block  h += Attn(LN1(h)),  h += W_2 gelu(W_1 LN2(h))
 *     logits = LN(h) embed^T,  loss = mean cross entropy of the targets that count
 * Rows of the batch that do not count leave after the last attention: nothing reads them there.
 *
 *     model.c     memory, and the layers of each length, made before the first step that needs them
 *     forward.c   logits of the rows that count
 *     backward.c  gradients of the loss
 *     adam.c      norm, clipping, the update
 * Every sum has an order that depends on shapes alone: the same bits for any number of threads. */

#include <locus/layer.h>

#include "nn/linear.h"
#include "nn/rows.h"
#include "train/parameters.h"

/* Rows of block N's input in the step before, kept without their gradient (Transformer-XL). */
typedef struct train_memory {
    int64_t rows;                   /* per sequence, now; 0: none yet            */
    int64_t most;                   /* M                                         */
    float *data[TRAIN_MOST_LAYERS]; /* [B, rows, E] of each block */
} train_memory;

/* Rows of one length. */
typedef struct train_batch {
    int64_t rows, tokens; /* B, T */
    int32_t *token;       /* [B,T] */
    int32_t *target;      /* [B,T] */
    float *weight;        /* [B,T], 1: the loss counts this target, or 0 */
    int32_t *position;    /* [B,T] of absolute positions; NULL: 0 .. T-1 */
} train_batch;

/* What one block keeps for the backward pass. */
typedef struct train_saved {
    float *input, *normed;     /* [B,T,E]: h, LN1(h)                               */
    void *layer;               /* what the attention layer saved                   */
    float *kept, *kept_normed; /* [K,E]: its rows that go on, LN2 of them          */
    float *wide, *active;      /* [K,4E]: before and after gelu                    */
    float *memory;             /* [B,M,E]: LN1 of the memory                       */
} train_saved;

typedef struct train_layer {
    int64_t rows, tokens, memory;
    locus_layer *layer;
} train_layer;

typedef struct train_model {
    train_shape shape;
    train_parameters list;
    float *weights, *m, *v; /* of list.floats each */
    float *gradients;       /* likewise, with 0 between tensors; the caller's */
    uint32_t threads;
    locus_workers workers;
    locus_linear linear; /* without weights */
    train_layer *layers;
    size_t layer_count, layer_room;
    const locus_layer *layer; /* of the batch at work */

    int64_t capacity; /* tokens of a batch; memory_capacity: rows of its memory  */
    int64_t memory_capacity;
    size_t saved_bytes, workspace_bytes;
    void *arena, *workspace;
    train_saved saved[TRAIN_MOST_LAYERS];
    float *out, *lse;     /* of attention                                           */
    float *last, *normed; /* [K,E]: h after the last block, LN of it                 */
    float *logits;        /* [K,V]; after the backward pass their gradient           */
    float *losses;        /* [K]                                                    */
    float *dh, *dnormed, *dkept, *dwide, *dmemory;
    float *shared_gradient; /* of a tensor that all blocks share: one block's part   */
    int32_t *target;        /* [K]                                                    */
    int32_t *position;      /* [B,T]                                                  */
    int64_t *place;         /* [K]: where the kept rows stand among the B T           */
    int64_t kept;           /* K                                                      */
    float *sinusoid;        /* [sinusoid_rows, E]                                     */
    int64_t sinusoid_rows;
    double *partial;  /* sums of squares of blocks of the gradients             */
    size_t step_peak; /* bytes in all, without the gradients                    */
} train_model;

locus_status train_model_new(train_model **model, const train_shape *shape, uint64_t seed,
                             uint32_t threads, locus_error *error);
void train_model_free(train_model *model);

/* Everything that batches of `rows` x `tokens` over `memory` rows need. Steps on such batches
 * allocate nothing. */
locus_status train_prepare(train_model *model, int64_t rows, int64_t tokens, int64_t memory,
                           locus_error *error);

/* Logits of the kept rows; memory NULL: none. */
locus_status train_forward(train_model *model, const train_batch *batch, const train_memory *memory,
                           locus_error *error);

/* Losses of the kept rows, and their sum. */
double train_loss(train_model *model);

/* Gradients (into model->gradients) of that sum divided by `targets`, after the forward pass just made. */
locus_status train_backward(train_model *model, const train_batch *batch,
                            const train_memory *memory, int64_t targets, locus_error *error);

/* The last rows of every block's input become the memory of the next batch. */
void train_remember(const train_model *model, const train_batch *batch, train_memory *memory);

typedef struct train_update {
    int64_t step; /* from 1 */
    double rate, decay;
} train_update;

/* One step of AdamW on the gradients at hand; returns their norm before clipping. */
double train_adam(train_model *model, const train_update *update);

/* Linear over the first 5 % of `steps`, then half a cosine down to a tenth of `peak`. */
double train_rate(double peak, int64_t step, int64_t steps);

/* ---- inside ---- */

/* The tensors of block `number`: views of `values`, which has the layout of the parameters. */
locus_tensors train_block_tensors(const train_model *model, int64_t number, float *values);

locus_rows train_rows(float *data, int64_t count, int64_t width);
locus_row_batch train_row_batch(float *data, int64_t count, int64_t width);
locus_linear train_linear(const train_model *model, const locus_tensor *weight);
locus_tensor train_matrix(const train_model *model, float *values, int index);
locus_norm_rule train_norm(const train_model *model, int weight, int bias);

#endif
