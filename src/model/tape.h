/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_TAPE_H
#define LOCUS_MODEL_TAPE_H

/* What a forward pass did, operator by operator, for the way back (backward.c).
 *
 * The executor writes its results again and again into the same few buffers of its workspace. Each
 * buffer has a twin that holds the gradient of what the buffer holds at that moment. The way back
 * takes the operators in reverse order; one that wrote y from x
 *     takes g = dy and sets dy = 0, for what y held before is another variable,
 *     adds J^T g to dx, and to the gradients of its parameters.
 * What J needs of the values (inputs of maps and norms, q, k, v, what attention gave and its lse) is
 * kept beside the tape; a value that several operators need is kept once. Nothing kept is as large as
 * the number of tokens squared.
 *
 * Each function below does the work of the operator, too, unless the tape only counts. */

#include "model/pass.h"
#include "nn/depthwise.h"
#include "nn/embedding.h"
#include "nn/pooling.h"

typedef enum tape_kind {
    TAPE_EMBED,
    TAPE_NORM,
    TAPE_MAP,
    TAPE_ATTEND,
    TAPE_CONVOLVE,
    TAPE_DEPTH,
    TAPE_ACTIVATE,
    TAPE_TURN,
    TAPE_COPY,
    TAPE_POOL,
    TAPE_UNIT,
    TAPE_GIVE, /* hidden states that the caller was given */
} tape_kind;

enum { TAPE_TERMS = 3, TAPE_COPIES = 24 };

typedef struct tape_attention {
    const locus_plan *plan;
    locus_tensors *in;   /* where the executor had them */
    locus_tensors *kept; /* the same with values that stay */
    float *lse;
    int64_t length;
    const model_layer *layer; /* of pairs of two types; else NULL */
    const int32_t *types;     /* [length] of those */
} tape_attention;

typedef struct tape_entry {
    tape_kind kind;
    float *y; /* [rows, width], as the executor had it */
    const float *x;
    int64_t rows, width, x_width, y_stride, x_stride;
    int of_input; /* 1: x is what the caller gave: rows of the tokens, or numbers in their place */
    int decoder;  /* 1: of the decoder behind an encoder */
    const float *kept_x, *kept_z, *kept_gate; /* z: before an activation */
    const float *gate, *residual;             /* as the executor had them; NULL: none */
    locus_activation activation;
    union {
        model_map map;
        locus_norm_rule norm;
        struct {
            locus_embedding term[TAPE_TERMS];
            int64_t count;
        } embed;
        tape_attention attend;
        locus_convolution convolve;
        locus_depthwise depth;
        struct {
            const float *turns;
            int64_t pairs;
        } turn;
        locus_pooling pool;
        int64_t give; /* which states */
    } of;
} tape_entry;

/* A buffer whose value is kept as it is. */
typedef struct tape_copy {
    const float *from;
    int64_t count;
    const float *kept;
} tape_copy;

struct model_tape {
    int counting; /* 1: nothing is computed or stored */
    int failed;   /* 1: more came than was counted */
    const locus_model_pass *pass;
    tape_entry *entries;
    size_t count, room;
    unsigned char *memory; /* values */
    uint64_t at, bytes;
    uintptr_t base; /* of the executor's workspace */
    uint64_t base_bytes;
    tape_copy copies[TAPE_COPIES];
    size_t copy_count;
    size_t attended;            /* the first entry whose attention is not yet kept */
    int64_t largest, most_rows; /* floats of the largest y in the workspace; rows of any */
    int64_t most_parts;         /* floats of q, k and v of one call of attention */
    /* of the forward pass */
    const float *features, *logits, *embedding;
};

/* y = activation(x W^T + b) gate + residual */
void model_tape_map(const locus_model *m, void *workspace, const model_map *map, float *y,
                    const float *x, int64_t rows, const model_end *end);
void model_tape_norm(const locus_model *m, const locus_norm_rule *rule, float *y, const float *x,
                     int64_t rows);

/* Rows of tables. input: of the tokens; else rows of the workspace. */
void model_tape_embed(const locus_model *m, const locus_rows *y, const locus_embedding *terms,
                      int64_t count, int64_t width, int input);

/* One call of attention. q, k and v of the executor's buffers: model_tape_hold before. types: of a
 * sequence whose pairs of two types have scores; else NULL. */
locus_status model_tape_attend(const locus_model *m, const locus_plan *plan,
                               const locus_tensors *in, const locus_results *results,
                               const model_layer *layer, const int32_t *types, void *workspace,
                               size_t bytes, locus_error *error);
/* Keep the value of a buffer; what attention gave, after its last call of a layer. */
void model_tape_hold(const locus_model *m, const float *buffer, int64_t count);
void model_tape_attended(const locus_model *m, const float *out, int64_t count);

void model_tape_convolve(const locus_model *m, const locus_convolution *f, const locus_rows *y,
                         const locus_rows *x, const locus_rows *residual,
                         const locus_ragged *tokens);
void model_tape_depth(const locus_model *m, const locus_depthwise *f, const locus_rows *y,
                      const locus_rows *x, const locus_ragged *tokens);
void model_tape_activate(const locus_model *m, locus_activation activation, const locus_rows *y,
                         int64_t width);
/* All heads of rows x [rows, heads * head_dim] turned by turns [rows, 2, head_dim / 2]. */
void model_tape_turn(const locus_model *m, float *y, const float *x, const float *turns,
                     int64_t rows);
void model_tape_copy(const locus_model *m, float *y, int64_t y_stride, const float *x,
                     int64_t x_stride, int64_t rows, int64_t width);
void model_tape_pool(const locus_model *m, locus_pooling pooling, const locus_rows *y,
                     const locus_rows *x, const locus_ragged *tokens, int64_t width);
void model_tape_unit(const locus_model *m, const locus_rows *y, int64_t width);
void model_tape_give(const locus_model *m, const float *h, int64_t rows, int64_t width,
                     int64_t which);

#endif
