/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_BLOCKS_H
#define LOCUS_MODEL_BLOCKS_H

/* The layers that families have in common, appended to a program. */

#include "model/model.h"

typedef struct model_wiring model_wiring;

typedef struct builder {
    program *p;
    locus_model *m;
    const model_description *d; /* of the stack at hand */
    const model_wiring *wiring; /* of its family */
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
    int kinds[2];    /* attentions of a family whose layers are of two kinds, and their turns */
    value kind_turns[2];
    int few; /* 1: what is behind the last attention can run for some rows alone */
    locus_error *error;
} builder;

/* How a family whose layers are its own appends them. Each may be NULL: then it is done by the
 * description (assemble.c, blocks.c). Tensors are asked for where they are used (tensors.c); what is
 * read from config.json for that lies in the description's `own`. */
struct model_wiring {
    value (*embed)(builder *b);                         /* rows of the tokens            */
    void (*begin)(builder *b);                          /* what the layers share         */
    value (*block)(builder *b, value h, int64_t layer); /* one layer                     */
    value (*end)(builder *b, value h);                  /* behind the last one: its norm */
    value (*logits)(builder *b, value h);               /* of the token behind a state   */
};

/* ---- tensors.c: tensors by their names; # is the layer ---- */

int tensor_there(const builder *b, const char *name, int64_t layer);
/* [rows, columns], or [rows] where columns is 1. */
value tensor_named(builder *b, const char *name, int64_t layer, int64_t rows, int64_t columns);
/* NAME.weight [outputs, width of x] and, if biased, NAME.bias. */
value map_named(builder *b, value x, const char *name, int64_t layer, int64_t outputs, int biased,
                locus_activation activation, value gate, value residual);
/* Several maps of x as one, their results one behind the other. */
value maps_named(builder *b, value x, const char *const *names, const int64_t *outputs, int count,
                 int64_t layer, int biased);
/* A norm as the description has them: NAME.weight and, where norms have shifts, NAME.bias. */
value norm_named(builder *b, value x, const char *name, int64_t layer);

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
/* v; of the last layer, only the rows that are wanted. For what goes on behind attention. */
value rows_wanted(builder *b, value v, int64_t layer);
/* DeBERTa's convolution of the embeddings beside its first layer. */
value block_beside(builder *b, value h, value first);

/* ---- self.c ---- */

/* Attention among the tokens of a stack, without its last map. */
value attend_self(builder *b, value x, int64_t layer);
/* The same of q, k and v that are made: columns of one value, one behind the other. how: the
 * attention; turns: NONE without rotations. */
value attend_made(builder *b, value qkv, int how, value turns, int64_t layer);

#endif
