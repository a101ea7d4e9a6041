/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_BLOCKS_H
#define LOCUS_MODEL_BLOCKS_H

/* The layers that families have in common, appended to a program. */

#include "model/model.h"

typedef struct builder {
    program *p;
    locus_model *m;
    const model_description *d; /* of the stack at hand */
    model_checkpoint *c;
    int stack;
    extent tokens;      /* of its rows */
    value word;         /* its word table */
    value scaled;       /* divided, for logits; NONE: not yet */
    value states;       /* the last ones of the encoder */
    value relative;     /* a table that every layer projects; NONE */
    value bias;         /* one that all layers have; NONE */
    value pos_q, pos_k; /* projections of positions that all layers have; NONE */
    value turns;
    int self, cross; /* attentions */
    int few;         /* 1: what is behind the last attention can run for some rows alone */
    locus_error *error;
} builder;

/* ---- slots.c ---- */

int slot_wanted(const builder *b, model_slot slot);
int slot_there(const builder *b, model_slot slot, int64_t layer);
value slot_tensor(builder *b, model_slot slot, int64_t layer);
value slot_fixed(builder *b, model_slot slot, int64_t layer); /* no parameter of the model */
/* A matrix [outputs, inputs], transposed where the checkpoint has it so, divided. */
value slot_matrix(builder *b, model_slot slot, int64_t layer, float divisor);
/* The bias of a map is the slot behind its weights; NONE where there is none. */
value slot_bias(builder *b, model_slot slot, int64_t layer);
value slot_norm(builder *b, value x, model_slot gain, int64_t layer, double epsilon);
value slot_map(builder *b, value x, model_slot slot, int64_t layer, locus_activation activation,
               value gate, value residual);

/* ---- blocks.c ---- */

void begin_tables(builder *b);
value block_norm_after(builder *b, value h, int64_t layer);
value block_norm_before(builder *b, value h, int64_t layer);
value block_conformer(builder *b, value h, int64_t layer);
/* DeBERTa's convolution of the embeddings beside its first layer. */
value block_beside(builder *b, value h, value first);

/* ---- self.c ---- */

/* Attention among the tokens of a stack, without its last map. */
value attend_self(builder *b, value x, int64_t layer);

#endif
