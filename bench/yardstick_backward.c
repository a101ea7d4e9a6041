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

/* The transposed shift: ds by distance, then products with the table and with q + w. */
static void table_grad(yardstick *y, int64_t b, int64_t h, const float *ds, float *spread,
                       float *queries, float *dq, float *part)
{
    const int64_t T = y->T, R = y->R, D = y->D;
    for (int64_t i = 0; i < T; i++) {
        float *row = spread + i * R;
        const int64_t start = T - 1 - i;
        memset(row, 0, (size_t)start * sizeof *row);
        memcpy(row + start, ds + i * T, (size_t)T * sizeof *row);
        memset(row + start + T, 0, (size_t)(R - start - T) * sizeof *row);
    }
    yardstick_biased_queries(y, b, h, &y->in.w, queries);
    times(y, BLAS_AS_IS, T, R, spread, R, yardstick_table(y, y->key_table, h), y->scale, 0.0f,
          part);
    times(y, BLAS_TURNED, R, T, spread, R, queries, y->scale,
          b > 0 || (y->shared && h > 0) ? 1.0f : 0.0f, y->dtable + (y->shared ? 0 : h * R * D));
    if (y->in.u.rank != 0) add_columns(y, y->du + h * D, dq);
    if (y->in.w.rank != 0) add_columns(y, y->dw + h * D, part);
    y->loops->add(dq, part, T * D);
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

static void backward_head(yardstick *y, int64_t b, int64_t h, const float *dout)
{
    const int64_t T = y->T, D = y->D, head = b * y->H + h, base = head * T * D;
    const float *p = y->weights + head * T * T, *dy = dout + base;
    float *ds = y->scratch->data, *spread = ds + T * T, *queries = spread + 2 * T * y->R;
    float *part = queries + T * D, *dq = y->dq + base;
    const int k = (int)D;
    times(y, BLAS_TURNED, T, T, p, T, dy, 1.0f, 0.0f, y->dv + base);
    y->blas->gemm(BLAS_ROWS, BLAS_AS_IS, BLAS_TURNED, (int)T, (int)T, k, 1.0f, dy, k,
                  yardstick_head(y->in.v.data, y, b, h), k, 0.0f, ds, (int)T);
    for (int64_t i = 0; i < T; i++)
        y->loops->unsoftmax(ds + i * T, p + i * T,
                            y->loops->dot(dy + i * D, y->out + base + i * D, D), T);
    if (y->bias != NULL) bias_grad(y, h, ds);
    yardstick_biased_queries(y, b, h, &y->in.u, queries);
    times(y, BLAS_AS_IS, T, T, ds, T, yardstick_head(y->in.k.data, y, b, h), y->scale, 0.0f, dq);
    times(y, BLAS_TURNED, T, T, ds, T, queries, y->scale, 0.0f, y->dk + base);
    if (y->in.pos_q.rank != 0) position_grad(y, b, h, ds);
    if (y->key_table != NULL) table_grad(y, b, h, ds, spread, queries, dq, part);
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
