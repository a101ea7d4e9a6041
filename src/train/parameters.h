/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TRAIN_PARAMETERS_H
#define LOCUS_TRAIN_PARAMETERS_H

/* What a model learns: names, shapes, initial values; and how the schemes differ. All tensors lie
 * one behind the other, so that gradients, moments and weights are four arrays of one layout. */

#include <stddef.h>
#include <stdint.h>

#include <locus/call.h>

/* The model: pre-norm blocks, GELU, tied embedding (docs/lab.md). */
typedef struct train_shape {
    const char *scheme; /* a name of locus_scheme_at */
    int causal;
    int64_t layers, width, heads, vocabulary;
    int64_t longest;       /* P: tokens of the longest row of training                    */
    int64_t position_rows; /* of learned positions; P unless positions are drawn          */
    int64_t clip;          /* shaw                                                        */
    int c2p, p2c;          /* deberta                                                     */
} train_shape;

enum { TRAIN_SCHEME_TENSORS = 6, TRAIN_NAME = 64, TRAIN_MOST_LAYERS = 64 };

typedef enum train_start { START_NORMAL, START_ONE, START_ZERO, START_UNIFORM } train_start;

typedef struct train_parameter {
    char name[TRAIN_NAME]; /* "blocks.0.attn.w_q" */
    uint32_t rank;
    int64_t shape[2];
    size_t at, count;  /* floats */
    train_start start; /* START_NORMAL: `extent` is the deviation; START_UNIFORM: in (0, extent) */
    double extent;
    double least; /* kept at least this large; -HUGE_VAL: free */
    int decays, positional;
} train_parameter;

/* Numbers in `items`; -1: there is none. */
typedef struct train_block {
    int norm1_weight, norm1_bias, w_q, w_k, w_v, w_o, norm2_weight, norm2_bias, w_1, w_2;
    int scheme[TRAIN_SCHEME_TENSORS];
} train_block;

typedef struct train_parameters {
    train_parameter *items;
    size_t count, floats; /* floats: of all, gaps for alignment included */
    int embed, norm_weight, norm_bias;
    int input_positions;                      /* learned: added to the input; -1: none */
    const char *tensor[TRAIN_SCHEME_TENSORS]; /* of block.scheme, as locus_tensors spells it */
    int shared[TRAIN_SCHEME_TENSORS];         /* 1: one for all blocks                       */
    size_t scheme_tensors;
    train_block *blocks;
} train_parameters;

/* One line about what is wrong with a shape: widths, heads, the scheme. */
locus_status train_shape_check(const train_shape *shape, locus_error *error);

locus_status train_parameters_new(train_parameters *list, const train_shape *shape,
                                  locus_error *error);
void train_parameters_free(train_parameters *list);

/* Initial values, keyed by (seed, name). */
void train_parameters_start(const train_parameters *list, uint64_t seed, float *values);

/* Learned numbers in all, and those of positions. */
void train_parameters_count(const train_parameters *list, int64_t *all, int64_t *positional);

/* The attention of the model as the library is to be called. */
locus_status train_config(const train_shape *shape, uint32_t threads, locus_config *config,
                          locus_error *error);

/* The longest row that the scheme has rows for; INT64_MAX: any. */
int64_t train_longest_row(const train_shape *shape);

#endif
