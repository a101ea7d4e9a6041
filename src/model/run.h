/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_RUN_H
#define LOCUS_MODEL_RUN_H

/* One pass over a batch: where every value is, and what the operators of ops/ share. */

#include "model/pass.h"

struct run {
    const program *p;
    const locus_model_pass *pass; /* NULL while constants are made */
    const locus_model_batch *batch;
    const locus_model_results *results;
    float **buffers;    /* of this run */
    float **at, **grad; /* of every value: where it and its gradient are; NULL: nowhere */
    int64_t rows[EXTENTS];
    uint32_t serves; /* results that are wanted */
    int keeps;       /* 1: the backward pass comes, or has begun */
    int asked;       /* 1: logits of some rows alone; their numbers: */
    int few;         /* 1: the last layer goes on with the rows alone that are wanted */
    const int32_t *ids[2], *types, *picked;
    const float *const *memory;
    int32_t *position[2], *next;
    void *attention, *linear, *convolution, *norm;
    size_t attention_bytes;
    float *other; /* a second value, in a backward pass */
    float *parts; /* gradients of q, k and v of one call of attention */
    float *before, *joined, *pairs;
    float *input; /* gradient of the input; NULL: not wanted */
    locus_error *error;
};

/* ---- what operators share ---- */

static inline float *run_at(const run *r, value v) { return v != NONE ? r->at[v] : NULL; }
static inline float *run_grad(const run *r, value v) { return v != NONE ? r->grad[v] : NULL; }
static inline int64_t run_rows(const run *r, value v)
{
    const value_info *i = &r->p->values[v];
    return i->rows == FIXED ? i->count : r->rows[i->rows];
}
static inline int64_t run_size(const run *r, value v)
{
    return run_rows(r, v) * r->p->values[v].width;
}
static inline void run_add(const run *r, value to, const float *from)
{
    if (run_grad(r, to) != NULL) r->p->workers.kernels->add(run_grad(r, to), from, run_size(r, to));
}
static inline locus_rows rows_like(const run *r, const float *data, value like)
{
    return (locus_rows){(float *)(uintptr_t)data, run_rows(r, like), r->p->values[like].width};
}
static inline locus_row_batch batch_of(const float *data, int64_t rows, int64_t width)
{
    return (locus_row_batch){(float *)(uintptr_t)data, 1, rows, rows * width, width};
}
static inline locus_row_batch batch_like(const run *r, const float *data, value like)
{
    return batch_of(data, run_rows(r, like), r->p->values[like].width);
}
/* Which stack of layers the rows of a value belong to. */
static inline int stack_of(const run *r, value v) { return r->p->values[v].rows == TARGET; }
/* Numbers that pick rows. */
const int32_t *run_numbers(const run *r, picker by, int stack);

/* ---- ops/map.c ---- */

/* y = x W^T + b of a map operator, for rows of another number. */
void map_rows(const program *p, const op *o, float *y, const float *x, int64_t rows,
              void *workspace);
/* The gradients of its parameters from dz [rows, outputs]. */
void map_rows_back(const run *r, const op *o, const float *dz, const float *x, float *dx,
                   int64_t rows);

/* ---- ops/convolve.c ---- */

/* Without workspace; weights NULL: those that lie in the program. */
locus_convolution convolution_of(const program *p, const op *o, const float *weight);

/* ---- ops/turn.c ---- */

/* All heads of rows `stride` apart turned in place. */
void turn_rows(const run *r, const attention *a, float *y, int64_t y_stride, const float *x,
               int64_t x_stride, const float *turns, int64_t heads, int64_t rows);

/* ---- ops/segments.c: scores of pairs of tokens of two types ---- */

typedef struct segment_rule {
    const float *bias, *segment;     /* [H, D], [2, H, D] */
    int64_t heads, head_dim, stride; /* stride: of rows of q */
} segment_rule;

int segments_differ(const int32_t *types, int64_t count);
locus_tensor segment_scores(const segment_rule *rule, const float *q, const int32_t *types,
                            int64_t length, float *pairs);
void segment_back(const segment_rule *rule, const float *q, const int32_t *types, int64_t length,
                  const float *dpairs, float *dq, float *dbias, float *dsegment);

/* ---- ops/attend.c ---- */

/* The tensors of an attention beside q, k and v, at their places. */
void attend_tables(const program *p, const op *o, float *const *at, const int64_t *rows,
                   locus_tensors *in);

/* ---- run.c ---- */

locus_status model_forward_ops(run *r);
locus_status model_backward_ops(run *r, const locus_model_gradients *gradients);
int run_wants(const run *r, const op *o);

#endif
