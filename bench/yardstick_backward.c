/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "bench/limits.h"
#include "bench/yardstick.h"

/* c [m,D] = alpha x b + beta c, where x is [m,n], or [n,m] when turned. */
static void times(const yardstick *y, int turn, int64_t m, int64_t n, const float *x, int64_t ldx,
                  const float *b, float alpha, float beta, float *c)
{
    const int d = (int)y->D;
    y->blas->gemm(BLAS_ROWS, turn, BLAS_AS_IS, (int)m, d, (int)n, alpha, x, (int)ldx, b, d, beta, c,
                  d);
}

static void add_columns(const yardstick *y, float *sums, const float *rows)
{
    for (int64_t i = 0; i < y->T; i++) y->loops->add(sums, rows + i * y->D, y->D);
}

/* ds along the diagonals. Folding 2T - 1 sums into buckets costs nothing and is left out. */
static void bias_grad(yardstick *y, int64_t h, const float *ds)
{
    float *by_distance = y->dbias + h * (2 * y->T - 1);
    for (int64_t i = 0; i < y->T; i++)
        y->loops->add(by_distance + y->T - 1 - i, ds + i * y->T, y->T);
}

/* Gradients of a table [R,D] and of the rows it was multiplied with, from `folded` [T,R]. */
typedef struct table_product {
    const float *table, *rows;
    float *dtable, *drows; /* drows is overwritten */
    int first;             /* 1: nothing is in dtable yet */
} table_product;

static void table_grad(const yardstick *y, const float *folded, const table_product *p)
{
    times(y, BLAS_AS_IS, y->T, y->R, folded, y->R, p->table, y->scale, 0.0f, p->drows);
    times(y, BLAS_TURNED, y->R, y->T, folded, y->R, p->rows, y->scale, p->first ? 0.0f : 1.0f,
          p->dtable);
}

/* Nobody has added to the gradient of this head's table yet. */
static int is_first(const yardstick *y, int64_t b, int64_t h)
{
    return b == 0 && (!y->shared || h == 0);
}

static float *table_of(const yardstick *y, float *tables, int64_t h)
{
    return tables + (y->shared ? 0 : h * y->R * y->D);
}

/* (q + w) R: ds by table row. */
static void key_table_grad(yardstick *y, int64_t b, int64_t h, const float *ds, float *folded,
                           float *queries, float *dq, float *part)
{
    const int64_t T = y->T, D = y->D;
    for (int64_t i = 0; i < T; i++) yardstick_fold_row(y, ds + i * T, folded + i * y->R, i);
    yardstick_biased_queries(y, b, h, &y->in.w, queries);
    table_grad(y, folded,
               &(table_product){.table = yardstick_table(y, y->key_table, h),
                                .rows = queries,
                                .dtable = table_of(y, y->dtable, h),
                                .drows = part,
                                .first = is_first(y, b, h)});
    if (y->in.u.rank != 0) add_columns(y, y->du + h * D, dq);
    if (y->in.w.rank != 0) add_columns(y, y->dw + h * D, part);
    y->loops->add(dq, part, T * D);
}

/* k Q: the same by key. */
static void query_table_grad(yardstick *y, int64_t b, int64_t h, const float *ds, float *folded,
                             float *dk, float *part)
{
    const int own = y->dquery_table != NULL;
    yardstick_fold_turned(y, ds, folded);
    table_grad(y, folded,
               &(table_product){.table = yardstick_table(y, y->query_table, h),
                                .rows = yardstick_head(y->in.k.data, y, b, h),
                                .dtable = table_of(y, own ? y->dquery_table : y->dtable, h),
                                .drows = part,
                                .first = own && is_first(y, b, h)});
    y->loops->add(dk, part, y->T * y->D);
}

/* The weights by table row times dy. */
static void value_table_grad(yardstick *y, int64_t b, int64_t h, const float *p, const float *dy,
                             float *folded)
{
    for (int64_t i = 0; i < y->T; i++) yardstick_fold_row(y, p + i * y->T, folded + i * y->R, i);
    times(y, BLAS_TURNED, y->R, y->T, folded, y->R, dy, 1.0f, b == 0 && h == 0 ? 0.0f : 1.0f,
          y->dvalue_table);
}

/* x [T,rows] = dy values^T, [rows,D]. */
static void weight_grad(const yardstick *y, const float *dy, const float *values, int64_t rows,
                        float *x)
{
    const int k = (int)y->D;
    y->blas->gemm(BLAS_ROWS, BLAS_AS_IS, BLAS_TURNED, (int)y->T, (int)rows, k, 1.0f, dy, k, values,
                  k, 0.0f, x, (int)rows);
}

/* From dy to the gradient of the scores. */
static void score_grad(yardstick *y, int64_t b, int64_t h, const float *p, const float *dy,
                       float *products, float *ds)
{
    const int64_t T = y->T, D = y->D;
    const float *out = yardstick_head(y->out, y, b, h);
    const int by_distance = y->in.rel_v.rank != 0;
    weight_grad(y, dy, yardstick_head(y->in.v.data, y, b, h), T, ds);
    if (by_distance) weight_grad(y, dy, y->in.rel_v.data, y->R, products);
    for (int64_t i = 0; i < T; i++) {
        if (by_distance) yardstick_add_row(y, ds + i * T, products + i * y->R, i);
        y->loops->unsoftmax(ds + i * T, p + i * T, y->loops->dot(dy + i * D, out + i * D, D), T);
    }
}

/* The same products as for q and k; positions are shared by the sequences of a batch. */
static void position_grad(yardstick *y, int64_t b, int64_t h, const float *ds)
{
    const int64_t T = y->T, at = h * T * y->D;
    const float beta = b > 0 ? 1.0f : 0.0f;
    times(y, BLAS_AS_IS, T, T, ds, T, yardstick_head(y->in.pos_k.data, y, 0, h), y->scale, beta,
          y->dpos_q + at);
    times(y, BLAS_TURNED, T, T, ds, T, yardstick_head(y->in.pos_q.data, y, 0, h), y->scale, beta,
          y->dpos_k + at);
}

static void turn_back(yardstick *y, float *grads[2], float *part)
{
    for (int which = 0; which < 2; which++) {
        memcpy(part, grads[which], (size_t)(y->T * y->D) * sizeof *part);
        yardstick_turn_head(y, which, 1, part, grads[which]);
    }
}

static void backward_head(yardstick *y, int64_t b, int64_t h, const float *dout)
{
    const int64_t T = y->T, D = y->D, head = b * y->H + h, base = head * T * D;
    const float *p = y->weights + head * T * T, *dy = dout + base;
    float *ds = y->scratch->data, *folded = ds + T * T, *queries = folded + 2 * T * y->R;
    float *part = queries + T * D, *dq = y->dq + base, *dk = y->dk + base;
    times(y, BLAS_TURNED, T, T, p, T, dy, 1.0f, 0.0f, y->dv + base);
    score_grad(y, b, h, p, dy, folded, ds);
    if (y->in.rel_v.rank != 0) value_table_grad(y, b, h, p, dy, folded);
    if (y->bias != NULL) bias_grad(y, h, ds);
    yardstick_biased_queries(y, b, h, &y->in.u, queries);
    times(y, BLAS_AS_IS, T, T, ds, T, yardstick_head(y->in.k.data, y, b, h), y->scale, 0.0f, dq);
    times(y, BLAS_TURNED, T, T, ds, T, queries, y->scale, 0.0f, dk);
    if (y->in.pos_q.rank != 0) position_grad(y, b, h, ds);
    if (y->key_table != NULL) key_table_grad(y, b, h, ds, folded, queries, dq, part);
    if (y->query_table != NULL) query_table_grad(y, b, h, ds, folded, dk, part);
    if (y->pairs.count > 0) turn_back(y, (float *[2]){dq, dk}, part);
}

void yardstick_backward(yardstick *y, const float *dout)
{
    const unsigned state = limits_flush_denormals();
    memset(y->dbias, 0, (size_t)(2 * y->T * y->H) * sizeof *y->dbias);
    memset(y->du, 0, (size_t)(y->H * y->D) * sizeof *y->du);
    memset(y->dw, 0, (size_t)(y->H * y->D) * sizeof *y->dw);
    for (int64_t b = 0; b < y->B; b++)
        for (int64_t h = 0; h < y->H; h++) backward_head(y, b, h, dout);
    limits_restore_denormals(state);
}
