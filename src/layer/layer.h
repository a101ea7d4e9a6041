/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAYER_LAYER_H
#define LOCUS_LAYER_LAYER_H

/* f(x, i), file by file:
 *     maps.c      linear maps on tensors of any type
 *     plan.c      a layer is a resolved call, the plan of the attention inside, sizes
 *     check.c     the tensors of one call against the layer
 *     forward.c   positions, projections, tables, attention, output projection
 *     backward.c  the same road reversed
 *     rows.c      rows that maps read and write
 *     query_rows.c  what a query has of its own, from x alone: pos_query and gate
 *     gates.c     gates and decays of every position, from memory and x
 *     tables.c    what depends on parameters alone, made once for many calls
 * Projected rows are stored (B, T, H, D): a projection writes a matrix, attention reads
 * a head of it as a strided view, nothing is copied. */

#include <locus/layer.h>

#include "layer/maps.h"
#include "schemes/scheme.h"

enum { LOCUS_LAYER_TABLES = 2 }; /* no scheme projects more */

/* A table that this layer projects: rows [rows, H*D] = source W^T + b. */
typedef struct layer_table {
    size_t table, source, weight, bias; /* offsets into locus_tensors, as in locus_projection */
    int64_t rows;
    int shared; /* 1: weight and bias belong to a content projection */
} layer_table;

struct locus_layer {
    const locus_allocator *allocator;
    locus_call call;
    locus_tensors shapes; /* of every call to come; data pointers are not read */
    locus_plan *plan;
    const locus_kernels *kernels;
    uint32_t threads;
    size_t second_cache; /* of a core, bytes; 0: not known */
    double x_scale;
    layer_table tables[LOCUS_LAYER_TABLES];
    size_t table_count;
    int64_t query_width; /* F of the position queries that the layer projects; 0: none */
    layer_extents extents;
    float *sinusoid; /* [R, E], row r at distance delta_min + r; NULL: no such source */
    size_t saved_bytes, forward_bytes, backward_bytes;
};

/* What attention sees of a layer: buffers of projected rows, or of their gradients. */
typedef struct layer_rows {
    float *q;                          /* [B, T, H*D]     */
    float *k, *v;                      /* [B, M+T, H*D]   */
    float *tables[LOCUS_LAYER_TABLES]; /* [rows, H*D]     */
    float *pos_query;                  /* [B, T, H*F]; NULL: none                */
    float *gate;                       /* [B, H, T]; NULL: none                  */
    float *gate_inputs;                /* [B, T, H*2]: what the gates are made of */
    float *gate_weight, *gate_bias;    /* [H*2, E], [H*2]: of that map           */
    float *log_gate;                   /* [B, H, M+T]; NULL: not projected       */
    float *gate_rows;                  /* [B, M+T, H]: what it is made of        */
    float *log_decay;                  /* [B, M+T, H*D]; NULL: not projected     */
} layer_rows;

typedef struct layer_saved {
    float *input; /* [B, T, E]: x with positions; NULL: x itself */
    layer_rows rows;
    float *out;               /* [B, T, H*D]: what attention gives, before w_o */
    float *lse;               /* [B, H, T]                                     */
    uint64_t *without_tables; /* [1]: 1 after a prepared call, which projects none */
    size_t bytes;
} layer_saved;

typedef struct layer_forward {
    layer_multiplier multiplier; /* workspaces, used one after the other: they share memory */
    void *attention;
    double *row; /* [threads, E]: positions of the row at work */
    size_t bytes;
} layer_forward;

typedef struct layer_backward {
    float *dinput; /* [B, T, E]; NULL: straight into the caller's grad.x    */
    float *dout;   /* [B, T, H*D]; NULL: no w_o, the caller's dout is this  */
    layer_rows rows;
    double *gate_twins; /* [locus_layer_gate_numbers] */
    float *row;         /* [threads, E]: of grad.x or grad.pos; NULL: no positions in x */
    layer_multiplier multiplier;
    void *attention;
    size_t bytes;
} layer_backward;

struct locus_layer_tables {
    const locus_layer *layer;
    float *rows[LOCUS_LAYER_TABLES];  /* projected, as in layer_rows */
    locus_tables *forward, *backward; /* backward NULL: not wanted   */
};

/* Lay the memory of a pass out on `base`, or measure it (NULL). 0: a size does not fit. */
int locus_layer_carve_saved(const locus_layer *layer, void *base, layer_saved *saved);
int locus_layer_carve_forward(const locus_layer *layer, void *base, layer_forward *work);
int locus_layer_carve_backward(const locus_layer *layer, void *base, layer_backward *work);

/* The parts of `rows` that take part in a call. */
enum {
    LAYER_Q = 1,
    LAYER_K = 2,
    LAYER_V = 4,
    LAYER_POS_QUERY = 8,
    LAYER_GATE = 16,
    LAYER_TABLE_0 = 32, /* and the bits behind it, LOCUS_LAYER_TABLES in all */
    LAYER_LOG_GATE = LAYER_TABLE_0 << LOCUS_LAYER_TABLES,
    LAYER_LOG_DECAY = LAYER_LOG_GATE << 1,
    LAYER_ALL = -1
};

/* Tensors of the attention inside: those of `outer` that pass straight through, and
 * views of `rows` where `parts` says so. */
locus_tensors locus_layer_inner(const locus_layer *layer, const locus_tensors *outer,
                                const layer_rows *rows, int parts);
locus_results locus_layer_inner_results(const locus_layer *layer, const layer_saved *saved);

/* Lay out what linear maps need, on `base`, or measure it (NULL). 0: the size does not fit. */
int locus_layer_carve_maps(const locus_layer *layer, void *base, layer_multiplier *multiplier,
                           size_t *bytes);

/* Project the tables of the layer into `to`. */
void locus_layer_project_tables(const locus_layer *layer, const layer_multiplier *multiplier,
                                const locus_tensors *in, float *const *to);

/* pos_query and the gates of every query. */
void locus_layer_project_query_rows(const locus_layer *layer, const layer_multiplier *multiplier,
                                    const locus_tensors *in, const layer_matrix *x,
                                    const layer_rows *rows);

/* Numbers of the parameters behind the gates; 0: there are none. Their gradients are summed in a
 * room of so many doubles: first what stands between the map and the gates, in the order of the
 * rows, then, after the gradient of the map's input, the map. */
int64_t locus_layer_gate_numbers(const locus_layer *layer);
void locus_layer_gates_backward(const locus_layer *layer, const locus_tensors *in,
                                const layer_rows *rows, const layer_rows *drows,
                                const locus_tensors *grad, double *room);
layer_map locus_layer_gate_map(const locus_layer *layer, const layer_rows *rows,
                               const layer_rows *drows, const layer_matrix *x,
                               locus_tensor *weight);
void locus_layer_gate_parameters(const locus_layer *layer, const layer_multiplier *multiplier,
                                 const layer_map *map, const layer_rows *drows,
                                 const locus_tensors *grad, double *room, int add);

/* Gates that a layer projects from memory and x: one number of each head, or one of each channel. */
enum { LAYER_POSITION_GATES = 2 };
typedef struct layer_position_gate {
    size_t weight, bias; /* offsets into locus_tensors */
    int part;            /* LAYER_LOG_GATE or LAYER_LOG_DECAY */
    int64_t width;       /* of a row: H or H*D */
} layer_position_gate;

/* 0: the layer has none of number `number`. */
int locus_layer_position_gate(const locus_layer *layer, int number, layer_position_gate *gate);

/* Rows of what the gates are made of, or of its gradient: [B, M+T, width], and those of x or of
 * memory alone. */
float *locus_layer_gate_rows(const layer_rows *rows, const layer_position_gate *gate);
layer_matrix locus_layer_gate_side(const locus_layer *layer, const layer_rows *rows,
                                   const layer_position_gate *gate, int of_memory);

void locus_layer_project_position_gates(const locus_layer *layer,
                                        const layer_multiplier *multiplier, const locus_tensors *in,
                                        const layer_rows *rows);

/* The gradient of gates becomes that of what they are made of. */
void locus_layer_position_gate_gradient(const locus_layer *layer, const layer_position_gate *gate,
                                        const layer_rows *rows, const layer_rows *drows);

/* Rows of a [B, T, E] or [R, E] tensor. */
layer_matrix locus_layer_tensor_rows(const locus_tensor *t);

/* Rows first .. first + count - 1 of a buffer of [batches, rows, width]. */
layer_matrix locus_layer_buffer_rows(float *data, int64_t batches, int64_t rows, int64_t width,
                                     int64_t first, int64_t count);

/* x with positions where the scheme embeds them, else the caller's x. */
layer_matrix locus_layer_input(const locus_layer *layer, const locus_tensors *in,
                               const layer_saved *saved);

/* Where the rows of a table come from. */
layer_matrix locus_layer_source(const locus_layer *layer, const locus_tensors *in,
                                const layer_table *table);

/* out [B,T,E] or [B,T,H*D]; its shape alone. */
locus_tensor locus_layer_out_shape(const locus_layer *layer);

/* The tensors of `in` that tables are made of. */
locus_status locus_layer_check_tables(const locus_layer *layer, const locus_tensors *in,
                                      locus_error *error);

/* Everything about the arguments of one call. */
locus_status locus_layer_check_forward(const locus_layer *layer, const locus_tensors *in,
                                       const locus_results *results, void *saved,
                                       size_t saved_bytes, void *workspace, size_t workspace_bytes,
                                       locus_error *error);
locus_status locus_layer_check_backward(const locus_layer *layer, const locus_tensors *in,
                                        const locus_results *dresults, const locus_tensors *grad,
                                        uint32_t flags, const void *saved, size_t saved_bytes,
                                        void *workspace, size_t workspace_bytes,
                                        locus_error *error);

#endif
