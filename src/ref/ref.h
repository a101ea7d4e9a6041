/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_REF_REF_H
#define LOCUS_REF_REF_H

/* The oracle, file by file:
 *     oracle.c  the door: checks a call, picks the level
 *     layer.c   the sublayer; project.c: what its attention is given
 *     attend.c  the loop over batch, head and query: softmax, output, their gradients
 *     score.c   one score and its gradient: every place where a position can enter
 *     visible.c which pairs there are
 *     counted.c positions that a query counts by its own gates
 *     explain.c the same scores part by part, for whoever asks
 *
 * m and n are positions. Row i of q has position m = query_offset + i - first_query, row n of k
 * has position n - first_key, where a sequence of a ragged batch begins at rows first_query and
 * first_key; both are 0 in a batch that is not ragged. delta is the difference of the positions.
 * Every real number is a double. */

#include <locus/call.h>

#include "schemes/scheme.h"

/* ---- memory: taken piece by piece, released all at once ---- */

typedef struct ref_memory {
    const locus_allocator *allocator;
    void *newest; /* every block begins with the address of the one before */
    int failed;   /* 1: some locus_ref_take found no memory                */
} ref_memory;

/* Zeroed room for a * b objects, or NULL and memory->failed. */
void *locus_ref_take(ref_memory *memory, int64_t a, int64_t b, size_t bytes);
void locus_ref_release(ref_memory *memory);

/* `from` as F64: itself, or a dense copy. An absent tensor stays absent. */
locus_tensor locus_ref_widen(ref_memory *memory, const locus_tensor *from);

/* ---- rows of doubles ---- */

/* Element [i][j][k][0] of an F64 tensor; NULL for an absent one. */
double *locus_ref_at(const locus_tensor *t, int64_t i, int64_t j, int64_t k);

double locus_ref_dot(const double *a, const double *b, int64_t count);

/* to += factor * from; nothing where `to` is NULL: a gradient that nobody asked for. */
void locus_ref_add(double *to, double factor, const double *from, int64_t count);

/* ---- inputs ---- */

/* LOCUS_OK when every present tensor has data. */
locus_status locus_ref_check_inputs(const locus_tensors *in, locus_error *error);

/* Every tensor that is read by rows, as F64; bias_dense and the masks, which can be
 * large, are read where they are. */
locus_tensors locus_ref_widen_all(ref_memory *memory, const locus_tensors *in);

/* ---- attention ---- */

/* What a score is a sum of. Each part carries its scale; an absent one is 0. */
enum ref_part {
    REF_CONTENT,           /* c q_m . k_n, turned where the scheme turns               */
    REF_CONTENT_POSITION,  /* c q_m . RK[r],  or c q_m . pos_k[n] of a split input,
                              or p_m . RK[r] of a position query, or q_m . RK[p]       */
    REF_U_CONTENT,         /* c u . k_n                                                */
    REF_W_POSITION,        /* c w . RK[r]                                              */
    REF_POSITION_CONTENT,  /* c RQ[r] . k_n,  or c pos_q[m] . k_n of a split input     */
    REF_POSITION_POSITION, /* c pos_q[m] . pos_k[n]                                    */
    REF_BIAS,              /* b_h(m - n), times gate_m where there are gates           */
    REF_RESET,             /* cls, which takes the place of the two parts before it    */
    REF_SOFTCAP,           /* C tanh(s / C) - s, s being the sum of the parts before   */
    REF_GATES,             /* the sum of log_gate between n and m                      */
    REF_DENSE,             /* bias_dense(m, n)                                         */
    REF_PARTS
};

/* One call at work. Tensors of `in` that score.c and attend.c read by rows are F64 with
 * unit stride on the last axis; `grad` tensors likewise, zeroed by the caller. */
typedef struct ref_attention {
    const locus_call *call;
    const locus_tensors *in, *grad;
    size_t key_table, query_table, value_table; /* offsets into locus_tensors */
    int split; /* 1: q, k and pos_q, pos_k are the two parts of an embedded input,
                  row i of pos_q beside row i of q (locus_ref_split_input)           */

    /* By distance, index delta - call->least: what the hooks say, asked once each. */
    int64_t distances;
    int64_t *row;     /* [distances]     row of the relative tables                      */
    double *bias;     /* [H][distances]  b_h(delta); NULL: none, or by pair              */
    double *log_gain; /* [D]  log of the growth of a column per position; NULL: all 0    */
    double *dbias;    /* [H][distances]  gradient of bias, for the bias_grad hook        */
    uint8_t *used;    /* [H][distances]  1: some pair added to dbias                     */

    /* The batch entry, head and sequence at work, and the keys: turned, gradient not turned
     * back. */
    int64_t b, h, s;
    locus_sequence sequence;
    double *k, *dk; /* [Tk][D] */
    /* Sums of log_gate and of log_decay from the first position of the sequence on, by row of
     * theirs, and the gradients of these sums; NULL: there are none. */
    double *gates, *dgates;   /* [N]    */
    double *decays, *ddecays; /* [N][D] */

    /* The query row at work. */
    int64_t i;
    double *q, *dq; /* [D], turned like k                                   */
    double *score;  /* [Tk]                                                 */
    double *weight; /* [Tk]  softmax of score, before dropout               */
    double *keep;   /* [Tk]  dropout's factor: 0 or 1 / (1 - p)             */
    double *dweight;
    double *place, *dplace; /* [Tk] what was counted up to key n, before the cut, and its
                               gradient; NULL: nothing is counted           */
    uint8_t *visible;       /* [Tk]  0: the pair is skipped, whatever it holds    */
} ref_attention;

/* Results of the call, and with dresults and grad its gradients (added to what is there). */
locus_status locus_ref_attend(const locus_call *call, const locus_tensors *in,
                              const locus_results *results, const locus_results *dresults,
                              const locus_tensors *grad, ref_memory *memory);

/* A call about to work: tables by offset, and by distance what the hooks say. Rows of the
 * head and of the query are the caller's to fill. */
ref_attention locus_ref_begin(const locus_call *call, const locus_tensors *in,
                              const locus_tensors *grad, ref_memory *memory);

/* Turn row `number` of q (is_key: of k), whose position is `position` unless the call gives
 * positions of its own; direction -1 turns it back. */
void locus_ref_turn(const locus_call *call, double *row, int is_key, int64_t batch, int64_t number,
                    int64_t position, int direction);

/* The position of query row i, and of key row n, in the sequence at work. */
static inline int64_t locus_ref_query_position(const ref_attention *at)
{
    return at->sequence.query_offset + at->i - at->sequence.first_query;
}
static inline int64_t locus_ref_key_position(const ref_attention *at, int64_t n)
{
    return n - at->sequence.first_key;
}

/* Element of a [B or 1, H or 1, Tq, Tk] tensor for the query row at work and key n. */
double locus_ref_pair_value(const ref_attention *at, const locus_tensor *t, int64_t n);

/* 1 when the query row at work sees key n. */
int locus_ref_visible(const ref_attention *at, int64_t n);

/* The sink of the head at work; -inf where the call has none. */
double locus_ref_sink(const ref_attention *at);

/* Fill in every part of s(m, n), n a row of k; their sum, the score. */
double locus_ref_parts(const ref_attention *at, int64_t n, double parts[REF_PARTS]);

/* parameter += ds * d s(m, n) / d parameter. */
void locus_ref_score_grad(const ref_attention *at, int64_t n, double ds);

/* The gate of the query row at work; NULL: its bias has none. From `in` or from `grad`. */
double *locus_ref_gate(const ref_attention *at, const locus_tensors *from);

/* Where positions are counted: fill `place` for the query row at work; one pair's part of the score
 * and its pull-back, which leaves dplace; and the pull-back of dplace through the gates, after all
 * pairs. The first and the last do nothing elsewhere. */
void locus_ref_count_row(const ref_attention *at);
double locus_ref_counted_part(const ref_attention *at, int64_t n);
void locus_ref_counted_grad(const ref_attention *at, int64_t n, double ds);
void locus_ref_count_grad(const ref_attention *at);

/* How far apart the query row at work and key n are, on an axis: by their rows, or by the positions
 * that the call brings. */
int64_t locus_ref_distance(const ref_attention *at, int64_t n, int axis);

/* Gates and decays (gates.c): sums for the sequence at work; their gradients, when all of its
 * queries are done. locus_ref_gate_row: theirs of key n, or with n < 0 of the query row at work. */
void locus_ref_take_gates(ref_attention *at, ref_memory *memory);
void locus_ref_sum_gates(ref_attention *at);
void locus_ref_gates_grad(const ref_attention *at);
int64_t locus_ref_gate_row(const ref_attention *at, int64_t n);

/* The sequence that query row i belongs to. */
int64_t locus_ref_sequence_of(const locus_call *call, int64_t i);

/* Row of the table at `offset` that serves distance delta in the head at work, from `in`
 * or from `grad`; NULL where that tensor is absent or no row serves delta. */
double *locus_ref_table_row(const ref_attention *at, const locus_tensors *from, size_t offset,
                            int64_t delta);

/* ---- layer ---- */

locus_status locus_ref_layer(const locus_call *call, const locus_tensors *in,
                             const locus_results *results, const locus_results *dresults,
                             const locus_tensors *grad, ref_memory *memory);

#endif
