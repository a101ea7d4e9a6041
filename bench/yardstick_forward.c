/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "bench/limits.h"
#include "bench/yardstick.h"

enum { TILE_ROWS = 64, TILE_KEYS = 512 };

const float *yardstick_head(const float *all, const yardstick *y, int64_t b, int64_t h)
{
    return all + (b * y->H + h) * y->T * y->D;
}

/* c = alpha a b^T + beta c:  a [m,k], b [n,k], c [m,n] with rows of ldc. */
static void times_turned(const yardstick *y, int64_t m, int64_t n, const float *a, const float *b,
                         float beta, float *c, int64_t ldc)
{
    const int k = (int)y->D;
    y->blas->gemm(BLAS_ROWS, BLAS_AS_IS, BLAS_TURNED, (int)m, (int)n, k, y->scale, a, k, b, k, beta,
                  c, (int)ldc);
}

/* out [m,D] = p [m,n] v [n,D] + beta out */
static void weigh(const yardstick *y, int64_t m, int64_t n, const float *p, int64_t ldp,
                  const float *v, float beta, float *out)
{
    const int d = (int)y->D;
    y->blas->gemm(BLAS_ROWS, BLAS_AS_IS, BLAS_AS_IS, (int)m, d, (int)n, 1.0f, p, (int)ldp, v, d,
                  beta, out, d);
}

/* q + u, where there is a u. */
void yardstick_biased_queries(const yardstick *y, int64_t b, int64_t h, const locus_tensor *bias,
                              float *to)
{
    memcpy(to, yardstick_head(y->in.q.data, y, b, h), (size_t)(y->T * y->D) * sizeof *to);
    if (bias->rank == 0) return;
    const float *row = (const float *)bias->data + h * y->D;
    for (int64_t i = 0; i < y->T; i++) y->loops->add(to + i * y->D, row, y->D);
}

const float *yardstick_table(const yardstick *y, const float *table, int64_t h)
{
    return table + (y->shared ? 0 : h * y->R * y->D);
}

/* ---- the unfused pass ---- */

/* All products of one head: scores [T,T], and what is still to be added row by row. */
static void multiply(const yardstick *y, int64_t b, int64_t h, float *s, float *key_products,
                     float *spare)
{
    const int64_t T = y->T;
    const float *q = yardstick_head(y->in.q.data, y, b, h);
    const float *k = yardstick_head(y->in.k.data, y, b, h), *content = q, *position = q;
    if (y->in.u.rank != 0) {
        yardstick_biased_queries(y, b, h, &y->in.u, spare);
        yardstick_biased_queries(y, b, h, &y->in.w, spare + T * y->D);
        content = spare;
        position = spare + T * y->D;
    }
    times_turned(y, T, T, content, k, 0.0f, s, T);
    if (y->in.pos_q.rank != 0)
        times_turned(y, T, T, yardstick_head(y->in.pos_q.data, y, 0, h),
                     yardstick_head(y->in.pos_k.data, y, 0, h), 1.0f, s, T);
    if (y->query_table != NULL) {
        times_turned(y, T, y->R, k, yardstick_table(y, y->query_table, h), 0.0f, key_products,
                     y->R);
        yardstick_add_turned(y, s, key_products);
    }
    if (y->key_table != NULL)
        times_turned(y, T, y->R, position, yardstick_table(y, y->key_table, h), 0.0f, key_products,
                     y->R);
}

/* Add what the row still lacks, exponentiate it; returns the sum. */
static float finish_row(const yardstick *y, int64_t b, int64_t h, int64_t i, float *s,
                        const float *products, float *top)
{
    const int64_t T = y->T;
    const locus_tensor *dense = &y->in.bias_dense;
    if (y->key_table != NULL) yardstick_add_row(y, s, products + i * y->R, i);
    if (y->bias != NULL) y->loops->add(s, y->bias + h * (2 * T - 1) + T - 1 - i, T);
    if (dense->rank != 0)
        y->loops->add(s,
                      (const float *)dense->data +
                          b * (dense->shape[0] > 1 ? dense->stride[0] : 0) + h * dense->stride[1] +
                          i * dense->stride[2],
                      T);
    *top = y->loops->greatest(s, T);
    return y->loops->exps(s, *top, T);
}

static void unfused_head(yardstick *y, int64_t b, int64_t h)
{
    const int64_t T = y->T, D = y->D, head = b * y->H + h;
    float *s = y->weights != NULL ? y->weights + head * T * T : y->scratch->data;
    float *products = y->scratch->data + T * T, *folded = products + T * y->R;
    float *spare = folded + T * y->R, *inverse = spare + 2 * T * D;
    float *out = y->out + head * T * D, *lse = y->lse + head * T;
    for (int which = 0; which < 2 && y->pairs.count > 0; which++)
        yardstick_turn_head(y, which, 0, yardstick_head(y->given[which], y, b, h),
                            y->turned[which] + head * T * D);
    multiply(y, b, h, s, products, spare);
    for (int64_t i = 0; i < T; i++) {
        float top = 0;
        const float sum = finish_row(y, b, h, i, s + i * T, products, &top);
        lse[i] = top + logf(sum);
        inverse[i] = 1.0f / sum;
        if (y->weights != NULL) y->loops->scale(s + i * T, inverse[i], T);
        if (y->in.rel_v.rank != 0) yardstick_fold_row(y, s + i * T, folded + i * y->R, i);
    }
    weigh(y, T, T, s, T, yardstick_head(y->in.v.data, y, b, h), 0.0f, out);
    if (y->in.rel_v.rank != 0) weigh(y, T, y->R, folded, y->R, y->in.rel_v.data, 1.0f, out);
    if (y->weights != NULL) return; /* normalised already */
    for (int64_t i = 0; i < T; i++) y->loops->scale(out + i * D, inverse[i], D);
}

void yardstick_unfused(yardstick *y)
{
    const unsigned state = limits_flush_denormals();
    for (int64_t b = 0; b < y->B; b++)
        for (int64_t h = 0; h < y->H; h++) unfused_head(y, b, h);
    limits_restore_denormals(state);
}

/* ---- the flash loop ---- */

typedef struct flash_state {
    float top[TILE_ROWS], sum[TILE_ROWS];
} flash_state;

static void flash_tile(const yardstick *y, flash_state *state, int64_t rows, int64_t keys,
                       const float *q, const float *k, const float *v, float *s, float *out)
{
    times_turned(y, rows, keys, q, k, 0.0f, s, TILE_KEYS);
    for (int64_t i = 0; i < rows; i++) {
        float *row = s + i * TILE_KEYS;
        const float tile_top = y->loops->greatest(row, keys);
        const float top = tile_top > state->top[i] ? tile_top : state->top[i];
        const float carry = expf(state->top[i] - top);
        state->sum[i] = state->sum[i] * carry + y->loops->exps(row, top, keys);
        state->top[i] = top;
        if (carry < 1.0f) y->loops->scale(out + i * y->D, carry, y->D);
    }
    weigh(y, rows, keys, s, TILE_KEYS, v, 1.0f, out);
}

static void flash_rows(yardstick *y, int64_t head, int64_t i0)
{
    const int64_t T = y->T, D = y->D, rows = T - i0 < TILE_ROWS ? T - i0 : TILE_ROWS;
    const int64_t base = head * T * D;
    const float *q = (const float *)y->in.q.data + base + i0 * D;
    float *out = y->out + base + i0 * D, *lse = y->lse + head * T + i0;
    flash_state state;
    for (int64_t i = 0; i < rows; i++) {
        state.top[i] = -INFINITY;
        state.sum[i] = 0.0f;
    }
    memset(out, 0, (size_t)(rows * D) * sizeof *out);
    for (int64_t j = 0; j < T; j += TILE_KEYS)
        flash_tile(y, &state, rows, T - j < TILE_KEYS ? T - j : TILE_KEYS, q,
                   (const float *)y->in.k.data + base + j * D,
                   (const float *)y->in.v.data + base + j * D, y->scratch->data, out);
    for (int64_t i = 0; i < rows; i++) {
        y->loops->scale(out + i * D, 1.0f / state.sum[i], D);
        lse[i] = state.top[i] + logf(state.sum[i]);
    }
}

void yardstick_flash(yardstick *y)
{
    const unsigned state = limits_flush_denormals();
    for (int64_t head = 0; head < y->B * y->H; head++)
        for (int64_t i = 0; i < y->T; i += TILE_ROWS) flash_rows(y, head, i);
    limits_restore_denormals(state);
}
