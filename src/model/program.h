/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_PROGRAM_H
#define LOCUS_MODEL_PROGRAM_H

/* A model is a list of operators on values. Each value is written by one operator, or is a
 * parameter, or is given with a batch. The list is made once, when a model is opened; from it follow
 *     the tensors that a checkpoint must have     parameters, by name and shape
 *     what is computed once                       operators whose inputs are all constant
 *     the workspace of a pass                     values that live at the same time lie apart
 *     what a pass keeps for the backward pass     values that some backward function reads
 *     the backward pass                           the list in reverse
 *
 * Values that are rows of another (`base`) have no memory of their own: one rule for forward values,
 * gradients and parameters alike is that only values without base are laid out or set to 0. */

#include <locus/attention.h>

#include "io/store.h"
#include "model/checkpoint.h"
#include "nn/convolution.h"
#include "nn/depthwise.h"
#include "nn/embedding.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pooling.h"
#include "nn/quantized.h"

typedef int32_t value; /* its number */
enum { NONE = -1, OP_INPUTS = 14, MOVE_AXES = 3 };

/* How many rows a value has; known when a batch is. */
typedef enum extent {
    FIXED,  /* `count`: parameters and what is made of them              */
    TOKENS, /* of the encoder, or of the only stack of layers            */
    SEQUENCES,
    TARGET,    /* tokens of the decoder behind an encoder                   */
    ASKED,     /* tokens whose logits are asked for                         */
    NEXT,      /* the last token of each sequence that has any              */
    LAST,      /* tokens that the last layer goes on with, behind attention */
    DISTANCES, /* between tokens of the longest sequence                    */
    TURNED,    /* tokens whose keys go to a cache, turned by their position */
    EXTENTS,
} extent;

/* What callers may ask for. */
typedef enum gift_kind {
    GIVES_NOTHING,
    GIVES_HIDDEN,
    GIVES_LOGITS,
    GIVES_NEXT,
    GIVES_EMBEDDING
} gift_kind;

/* Operators that only some results need, as bits; SERVES_ALL: every pass runs them. */
enum { SERVES_ALL = 1, SERVES_LOGITS = 2, SERVES_NEXT = 4, SERVES_EMBEDDING = 8, SERVES_LAST = 16 };

typedef struct value_info {
    extent rows;
    int64_t count, width; /* count: of FIXED                                            */
    int parameter;        /* its tensor in the store; NONE: an operator makes it        */
    int constant;         /* 1: made of parameters alone, when a model is opened        */
    value base;           /* NONE, or: rows first_row .. of that value                  */
    int64_t first_row;
    value part, next;     /* of tensors one behind the other: the first, and the next of them */
    int first, last;      /* operators between which it lives; first NONE: no operator  */
    int kept;             /* 1: a backward function reads it                            */
    int buffer, gradient; /* that it and its gradient lie in; NONE: elsewhere           */
    int given;            /* 1: comes with a batch or with the lengths                  */
    float *data;          /* of constants; owned by those without base                  */
    locus_packed *packed; /* of weights that are not trained; owned                     */
    locus_quantized *quantized;   /* in its place; owned */
    locus_quantized_table *words; /* of a table in integers; owned */
    gift_kind gives;
    int stack;
    int64_t index;
} value_info;

/* Columns of a value: q, k or v in the rows of one map. */
typedef struct part {
    value of;
    int64_t column;
} part;

/* Numbers that pick rows of a table. */
typedef enum picker { BY_IDS, BY_TYPES, BY_POSITIONS, BY_ASKED, BY_NEXT, BY_LAST } picker;

/* to[to_first + sum of i to_stride] = from[from_first + sum of i from_stride] / divisor, over all
 * i < extent */
typedef struct move_rule {
    int64_t extent[MOVE_AXES], from[MOVE_AXES], to[MOVE_AXES], from_first, to_first;
    float divisor;
} move_rule;

/* A tensor that attention takes beside q, k and v. */
typedef struct attend_table {
    size_t tensor; /* its number in locus_tensors                             */
    int by_heads;  /* 1: rows [R, heads * head_dim] are a table [H, R, D]     */
    uint32_t rank; /* else its shape                                          */
    int64_t shape[3];
} attend_table;

/* What several operators attend by; plans are made for it and the lengths. */
typedef struct attention {
    locus_config config;
    int64_t heads, kv_heads, head_dim, memory;
    int64_t turned; /* columns of a head that rotations turn */
    int stack, cross;
    int op;          /* the first operator that attends so                        */
    int segments;    /* 1: pairs of tokens of two types have scores of their own  */
    int distances;   /* 1: rel_k has a row for each distance of the pass          */
    model_rope rope; /* base 0: none                                              */
    int interleaved; /* 1: pairs of columns that turn are neighbours              */
    float *frequencies;
    locus_tensor rows; /* which row of a table serves each distance; rank 0: none  */
} attention;

enum { ATTEND_Q, ATTEND_K, ATTEND_V, ATTEND_BIAS, ATTEND_SEGMENT, ATTEND_TURNS, ATTEND_TABLES };

typedef struct attend_rule {
    part q, k, v;
    int attention; /* its number                                               */
    int64_t layer;
    int memory_map; /* the operator that makes q, k and v, of a memory, too     */
    int table_count;
    attend_table tables[OP_INPUTS - ATTEND_TABLES];
} attend_rule;

typedef struct op op;
typedef struct run run;

/* One file per kind in ops/: forward and backward side by side. */
typedef struct op_kind {
    const char *name;
    uint32_t reads; /* bits of in[]: what the backward function reads; bit 31: out */
    locus_status (*forward)(const run *r, const op *o);
    locus_status (*backward)(const run *r, const op *o); /* adds to the gradients of its inputs */
} op_kind;
#define READS_OUT (1u << 31)

struct op {
    const op_kind *kind;
    value in[OP_INPUTS], out;
    value inside;    /* kept for the backward pass: z of a map, lse of attention; NONE */
    uint32_t serves; /* results that need it */
    int once;        /* 1: sessions have its value already */
    int late;        /* 1: its backward comes behind all others: a copy of tensors */
    union {
        locus_activation activation; /* map, activate          */
        struct {
            int centred;
            float epsilon;
        } norm;
        struct {
            picker by[3];
            float factor;
            int stack, input; /* input: 1 for what is looked up for a token */
        } embed;
        const attend_rule *attend;
        struct {
            int64_t taps, before, groups;
            locus_activation activation;
            int stack;
        } convolve;
        const move_rule *moves; /* one for each input */
        struct {
            locus_pooling poolings[6]; /* their vectors lie side by side */
            int count;
        } pool;
        int turns; /* turns, turn: of which attention */
        struct {
            int64_t heads, kv_heads, head_dim;
            float epsilon;
        } heads;
        float cap;
        struct {
            int64_t taps;
            double epsilon;
        } fold;
        struct {
            int table;     /* locus_table */
            int64_t blank; /* a row of zeros; -1: none */
        } sinusoid;
    } as;
};

/* ---- the store: tensors of the checkpoint ---- */

typedef struct store_tensor {
    const char *name; /* in the checkpoint */
    uint32_t rank;
    int64_t shape[LOCUS_MAX_RANK]; /* of a rank that tensors may have */
    model_place place;             /* while the checkpoint is open    */
    value of;
    int fixed;         /* 1: no parameter of the model: statistics, fixed sinusoids */
    int64_t at, count; /* in the array of values of a model that is trained         */
} store_tensor;

/* Values that lie in the same memory at different times. */
typedef struct buffer {
    int64_t width[EXTENTS]; /* the most of each extent; FIXED: count * width */
    int free_from;          /* while buffers are chosen */
} buffer;

typedef struct program {
    const locus_allocator *allocator;
    locus_workers workers;
    locus_linear linear; /* what all maps have in common */
    value_info *values;
    op *ops;
    attention *attentions;
    store_tensor *tensors;
    int value_count, op_count, attention_count, tensor_count;
    size_t value_room, op_room, attention_room, tensor_room;
    locus_arena arena;
    int first_op[3]; /* of each stack, and the end */
    value sinusoid;  /* of the distances; NONE     */
    value features;  /* in place of ids; NONE      */
    buffer *buffers, *gradients;
    int buffer_count, gradient_count;
    buffer spare;      /* the largest value that a backward function needs a second of */
    int convolves;     /* 1: some operator does                                        */
    int64_t norm_rows; /* the most rows of a FIXED value that goes through a norm      */
    /* of a model that is trained */
    int trains;
    float *trained;
    int64_t trained_count, trained_tensors;
    uint64_t bytes;                      /* of all weights */
    uint32_t precision;                  /* locus_precision */
    int generates;                       /* 1: its last stack continues texts */
    const locus_quant_kernels *integers; /* of maps in integers */
    int64_t parameters;
    /* building */
    model_checkpoint *checkpoint;
    int32_t **tensor_of; /* [files][tensors] its number + 1 */
    uint32_t serves;
    locus_status status; /* the first failure; then nothing counts */
    locus_error *error;
} program;

/* The value whose memory v lies in. */
static inline value root_of(const program *p, value v)
{
    while (p->values[v].base != NONE) v = p->values[v].base;
    return v;
}

/* ---- build.c: append an operator, return its value. Shapes are checked here. ---- */

locus_status program_begin(program *p, const locus_allocator *allocator, locus_error *error);
void program_free(program *p);
void program_fail(program *p, locus_status status);

/* A tensor of the checkpoint; the same one again has the same number. It is there, with its shape. */
value build_tensor(program *p, const model_place *place, int64_t rows, int64_t width, int fixed);
value build_absent(program *p, int64_t rows, int64_t width);
value build_given(program *p, extent rows, int64_t width);
/* `count` rows of v from `first` on. */
value build_rows(program *p, value v, int64_t first, int64_t count);
/* Tensors one behind the other, as one. */
value build_join(program *p, const value *parts, int count);
value build_map(program *p, value x, value weight, value bias, locus_activation activation,
                value gate, value residual);
value build_norm(program *p, value x, value gain, value shift, int centred, double epsilon);
value build_embed(program *p, extent rows, int stack, const value *tables, const picker *by,
                  int count, double factor, int input);
value build_pick(program *p, extent rows, value x, picker by);
value build_attend(program *p, const value *in, const attend_rule *rule);
/* [rows, width] of FIXED, by a rule for each input. */
value build_move(program *p, const value *from, const move_rule *rules, int count, int64_t rows,
                 int64_t width);
value build_transposed(program *p, value matrix, float divisor);
value build_divided(program *p, value v, float divisor);
value build_convolve(program *p, value x, value weight, value bias, value residual, int64_t taps,
                     int64_t groups, locus_activation activation);
value build_depthwise(program *p, value x, value taps, int64_t before, int with_shift);
value build_fold(program *p, value taps, value gain, value shift, value mean, value variance,
                 double epsilon);
/* Columns of q, k and v, with the heads of q and k normed by gains [head_dim]. */
value build_heads(program *p, value qkv, value q_gain, value k_gain, const attention *how,
                  double epsilon);
value build_add(program *p, value a, value b);
value build_raise(program *p, value v);
value build_cap(program *p, value x, double cap);
value build_activate(program *p, value x, locus_activation activation);
int build_attention(program *p, const attention *how);
/* Cosines and sines of tokens, and rows turned by them. */
value build_turns(program *p, extent rows, int how);
value build_turn(program *p, value x, value turns, int how);
value build_pool(program *p, value x, const locus_pooling *poolings, int count);
value build_unit(program *p, value x);
value build_sinusoid(program *p, int64_t rows, int64_t width, int table, int64_t blank);
/* What callers may ask for. */
value build_gift(program *p, value v, gift_kind kind, int stack, int64_t index);

/* ---- layout.c: how long values live, and where ---- */
locus_status program_lay_out(program *p, locus_error *error);

/* ---- load.c: constants, made once and whenever parameters change ---- */
locus_status program_load(program *p, locus_error *error);
void program_unload(program *p);
/* 1: data lies among the tensors that are trained. */
int program_trains(const program *p, const float *data);
locus_status program_fold(program *p, locus_error *error);

#endif
