/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_REF_LAYER_H
#define LOCUS_REF_LAYER_H

/* The attention sublayer, shared by project.c (what attention is given) and layer.c (its
 * output, and the way back):
 *     y     = memory, then x;  or x_scale x_i + p_i where the scheme embeds positions
 *     q     = Wq y + bq (rows of x),   k = Wk y + bk,   v = Wv y + bv (all rows)
 *     table = W source + b             for each projection that the scheme lists
 *     log_gate = ln sigmoid(Wf X + bf),  log_decay alike,  X = memory, then x
 *     pos_query = Wr x + br,  gate = the scheme's of x     where its attention takes them
 *     out   = Wo attend(q, k, v, tables) + bo
 * Rows are stored (B, T, H, D), so a projection is a matrix and a head is a view. */

#include "ref/ref.h"

typedef struct ref_layer {
    const locus_call *call; /* of the layer */
    const locus_tensors *in, *grad;
    ref_memory *memory;
    double *y, *dy;              /* [B][M+T][E]                                          */
    double *mixed, *dmixed;      /* [B][T][H*D]: what attention gives, before w_o        */
    locus_tensors inner, dinner; /* the tensors of attention and their gradients         */
    double *sources[4];          /* [rows][E] of each projection                         */
} ref_layer;

/* inner: q, k, v and the tables of attention, from `in`. */
void locus_ref_project(ref_layer *l);

/* Where the scheme embeds positions, q and k once more, in two parts:
 *     q = Wq x_scale x + bq,  k = Wk x_scale x + bk,  pos_q = Wq p,  pos_k = Wk p
 * so that (q + pos_q) . (k + pos_k) is the score. Row i of pos_q belongs to row i of x. */
void locus_ref_split_input(ref_layer *l);

/* y = x W^T + b, W [outs, ins], on `rows` rows; b may be NULL or absent. */
void locus_ref_linear(double *y, const double *x, const locus_tensor *w, const locus_tensor *b,
                      int64_t rows);

/* The factor of x, 1 for the schemes that have none. */
double locus_ref_x_scale(const locus_call *call);

/* A zeroed [B,H,rows,width] tensor stored as (B, rows, H, width). */
locus_tensor locus_ref_take_heads(ref_layer *l, int64_t rows, int64_t width);

/* Of gate number `row` in [B,H,T]: its columns of l->y or l->dy, and the numbers that it is made
 * of. */
double *locus_ref_gate_columns(const ref_layer *l, double *rows, int64_t row);
void locus_ref_gate_inputs(const ref_layer *l, int64_t row, double *y);

/* Zeroed room for pos_query and gate, or their gradients, where the layer makes them. */
void locus_ref_take_query_rows(ref_layer *l, locus_tensors *inner);

/* log_gate and log_decay of every position, from memory and x; and the way back. */
void locus_ref_project_gates(ref_layer *l);
void locus_ref_take_gate_gradients(ref_layer *l);
void locus_ref_project_gates_grad(ref_layer *l);

/* A zeroed [H,rows,D] table stored as (rows, H, D). */
locus_tensor locus_ref_take_table(ref_layer *l, int64_t rows);

/* Weight and bias of a projection, or their gradients: its own, else the shared ones. */
void locus_ref_projection(const ref_layer *l, const locus_projection *projection,
                          const locus_tensors *from, const locus_tensor **weight,
                          const locus_tensor **bias);

static inline locus_tensor *locus_ref_slot(locus_tensors *tensors, size_t offset)
{
    return (locus_tensor *)(void *)((char *)tensors + offset);
}

#endif
