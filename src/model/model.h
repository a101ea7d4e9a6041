/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_MODEL_H
#define LOCUS_MODEL_MODEL_H

/* A model in memory: its description and its weights, packed. */

#include <locus/generate.h>
#include <locus/model.h>

#include "model/checkpoint.h"
#include "model/description.h"
#include "nn/convolution.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pooling.h"

/* A linear map. packed.outputs 0: there is none. */
typedef struct model_map {
    locus_packed packed; /* without panels where there is a `weight` */
    locus_tensor weight; /* [outputs, inputs] of a model that is trained; rank 0: none */
    locus_tensor bias;   /* rank 0: none */
} model_map;

/* A map that sees the tokens beside each one. */
typedef struct model_taps {
    locus_packed packed;
    const float *plain; /* [outputs, taps, inputs] of a model that is trained; else NULL */
} model_taps;

typedef struct model_norm {
    const float *gain, *shift; /* shift NULL: none */
} model_norm;

typedef struct model_layer {
    model_map qkv; /* [A + 2 C, E]: q, k, v one behind the other, C = kv_heads * head_dim */
    model_map o, in, gate, out;
    model_map cross_q, cross_kv, cross_o; /* cross_kv [2 A, E] */
    model_norm attention_norm, cross_norm, forward_norm;
    locus_tensors tables;                                   /* of attention: rel_k, rel_q, bias */
    model_map first_in, first_out, value, gated, depth_out; /* of a conformer block */
    model_norm first_norm, glu_norm, depth_norm, last_norm;
    const float *depth, *depth_shift; /* [depth_taps, E], [E] or NULL: with a batch norm in them */
    model_taps in_taps, out_taps;     /* of convolutions in place of `in` and `out` */
    model_map relative;               /* [A, E]: of sinusoids of the distance; or none */
    const float *segment_bias, *segment; /* [H, D], [2, H, D]; or NULL */
    model_map relative_k, relative_q;    /* [A, E] of a model that is trained: its tables' rows */
} model_layer;

typedef struct model_trainable model_trainable; /* trainable.h */
typedef struct model_tape model_tape;           /* tape.h */

struct locus_model {
    const locus_allocator *allocator;
    locus_workers workers;
    locus_linear linear; /* what all maps have in common */
    const model_family *family;
    locus_model *decoder;       /* of an encoder-decoder; NULL: there is none */
    const locus_model *encoder; /* of its decoder */
    int optional;               /* 1: a decoder that need not be there */
    model_description description;
    const float *word, *position, *type;
    const float *frequencies; /* [head_dim / 2] of rope; NULL: the scheme's own */
    model_norm embedding_norm, final_norm, convolution_norm;
    model_map embedding_map;
    const float *convolution_bias;
    locus_packed *convolution;       /* [groups]; NULL: none */
    const float *convolution_weight; /* [E, taps, E / groups] of a model that is trained */
    int can_train;                   /* 1: as the caller wants it */
    model_trainable *trainable;      /* its weights; NULL: they are packed */
    model_tape *tape;                /* where a pass is recorded; NULL: it is not */
    struct {
        const float *rows;     /* [its words, its width] */
        model_map map;         /* to the width; or none */
    } cluster[MODEL_CLUSTERS]; /* of a word table in parts that is trained */
    const float *relative;     /* [R, E] of tables that every layer projects; or NULL */
    model_norm relative_norm;  /* which it goes through */
    model_layer *layers;       /* [layers], or one that all share */
    model_map head_map, head_out;
    model_map fill_map, fill_out;
    model_norm fill_norm;
    model_map narrow;     /* of the last states, before logits; or none */
    model_map logits;     /* of LOCUS_MODEL_GENERATE */
    const char **labels;  /* [labels] */
    int64_t *window_rows; /* [2 window + 3]: the row of a table of each distance */
    locus_arena texts;
    locus_model_pooling pooling;
    locus_generation generation; /* as its files say */
    int64_t most_positions;      /* max_position_embeddings; 0: it does not say */
    int unit_length;
    int modules; /* 1: modules.json is there */
    int64_t parameters;
    uint64_t bytes;
    void **blocks; /* all memory of the weights */
    size_t block_count;
};

static inline const model_layer *model_layer_at(const locus_model *m, int64_t layer)
{
    return &m->layers[m->description.shared_layers ? 0 : layer];
}

/* Floats of a token's q, k and v, and of its k and v alone. */
static inline int64_t model_kv_width(const model_description *d)
{
    return 2 * d->kv_heads * d->head_dim;
}
static inline int64_t model_qkv_width(const model_description *d)
{
    return d->heads * d->head_dim + model_kv_width(d);
}

/* Floats of a token's last state: OPT may narrow it. */
static inline int64_t model_last_width(const locus_model *m)
{
    return m->narrow.packed.outputs > 0 ? m->narrow.packed.outputs : m->description.width;
}

/* A norm before the first layer or behind the last one. */
static inline double model_outer_epsilon(const model_description *d)
{
    return d->outer_epsilon > 0.0 ? d->outer_epsilon : d->norm_epsilon;
}

static inline locus_norm_rule model_norm_rule(const model_description *d, const model_norm *norm,
                                              int64_t width)
{
    return (locus_norm_rule){.centred = d->norm_centred,
                             .epsilon = (float)d->norm_epsilon,
                             .gain = norm->gain,
                             .shift = norm->shift,
                             .width = width};
}

/* ---- maps.c ---- */

/* What becomes of a product. */
typedef struct model_end {
    locus_activation activation;
    const float *gate;     /* [rows, outputs], multiplies; NULL: 1 */
    const float *residual; /* [rows, outputs], is added; NULL: 0   */
} model_end;

/* y [rows, outputs] = activation(x W^T + b) gate + residual; x [rows, inputs]. end NULL: the sum.
 * workspace: locus_linear_workspace(&m->linear) bytes. */
void model_map_apply(const locus_model *m, void *workspace, const model_map *map, float *y,
                     const float *x, int64_t rows, const model_end *end);

/* The other operators of the executor. All of these record what they do where m->tape says so. */
void model_norm_apply(const locus_model *m, const locus_norm_rule *rule, float *y, const float *x,
                      int64_t rows);
/* input: 1 for rows of the tokens, 0 for rows of the workspace. */
void model_embed_apply(const locus_model *m, const locus_rows *y, const locus_embedding *terms,
                       int64_t count, int64_t width, int input);
void model_pool_apply(const locus_model *m, locus_pooling pooling, const locus_rows *y,
                      const locus_rows *x, const locus_ragged *tokens, int64_t width);
void model_unit_apply(const locus_model *m, const locus_rows *y, int64_t width);
/* y_i = x_i of `width` numbers, for i < rows. */
void model_copy_apply(const locus_model *m, float *y, int64_t y_stride, const float *x,
                      int64_t x_stride, int64_t rows, int64_t width);
void model_convolution_apply(const locus_model *m, const locus_convolution *f, const locus_rows *y,
                             const locus_rows *x, const locus_rows *residual,
                             const locus_ragged *tokens);

/* ---- lengths.c ---- */

enum { MODEL_MOST_TOKENS = 1 << 20 }; /* of one sequence */

int model_is_length(int64_t tokens);

/* offsets[sequences + 1] begin at 0 and rise by lengths. */
locus_status model_check_offsets(const int64_t *offsets, int64_t sequences, locus_error *error);

/* ---- attention_config.c ---- */

/* How a layer attends by `scheme`: the model's own, or `none` where positions are in q and k. */
locus_status model_attention_config(const locus_model *m, const char *scheme, locus_config *config);

/* ---- rope.c ---- */

enum { MODEL_MOST_PAIRS = 512 }; /* head_dim of at most 1024 */

/* frequency[head_dim / 2] of a sequence of that many tokens. */
void model_rope_frequencies(const model_description *d, int64_t tokens, float *frequency);

/* ---- weights.c ---- */

/* Everything behind the description: checks all tensors first, then reads and packs them. */
locus_status model_load(locus_model *model, model_checkpoint *checkpoint, locus_error *error);
void model_unload(locus_model *model);

#endif
