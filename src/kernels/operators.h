/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_KERNELS_OPERATORS_H
#define LOCUS_KERNELS_OPERATORS_H

/* Contracts of the kernels behind the operators of src/nn: norms, activations, softmax of rows,
 * convolutions. Included by kernels.h, which declares locus_activation. A row never depends on
 * the rows beside it; NaN propagates as in the formulas. */

#include <stdint.h>

/* y[c] = activation(x[c]) gate[c] for c < columns; gate NULL: 1. y may be x or gate. */
#define LOCUS_ACTIVATE_ROWS(name)                                                                  \
    void name(float *y, const float *x, const float *gate, locus_activation activation,            \
              int64_t columns)
typedef LOCUS_ACTIVATE_ROWS((*locus_activate_rows_fn));

/* dx[c] = dy[c] gate[c] activation'(x[c]) and, gate not NULL, dgate[c] = dy[c] activation(x[c]).
 * gate NULL: 1. relu'(0) = 0. dx and dgate may be dy, x or gate, but not one another. */
#define LOCUS_ACTIVATE_GRAD(name)                                                                  \
    void name(float *dx, float *dgate, const float *dy, const float *x, const float *gate,         \
              locus_activation activation, int64_t columns)
typedef LOCUS_ACTIVATE_GRAD((*locus_activate_grad_fn));

/* Norms of rows:
 *     y[i][c] = (x[i][c] - mean[i]) factor[i] gain[c] + shift[c]      for i < rows, c < width
 *     mean[i] = centred ? sum_c x[i][c] / width : 0
 *     factor[i] = 1 / sqrt(v + epsilon), or 1 / (sqrt(v) + epsilon) where epsilon is outside,
 *     v = sum_c (x[i][c] - mean[i])^2 / width
 * gain NULL: 1, shift NULL: 0. y may be x. */
typedef struct locus_norm_rule {
    int centred, epsilon_outside;
    float epsilon;
    const float *gain, *shift;
    int64_t width;
} locus_norm_rule;
#define LOCUS_NORM_ROWS(name)                                                                      \
    void name(const locus_norm_rule *rule, float *y, int64_t y_row, const float *x, int64_t x_row, \
              int64_t rows)
typedef LOCUS_NORM_ROWS((*locus_norm_rows_fn));

/* dx[i] = (add ? dx[i] : 0) + the gradient of norm_rows with respect to x[i]. With n = (x - mean)
 * factor and g = dy gain:
 *     dx = factor (g - (centred ? mean of g : 0) - n (mean of g n) s),
 * s = 1, or (sqrt(v) + epsilon) / sqrt(v) where epsilon is outside (0 where v is 0). statistics[i] =
 * {mean[i], factor[i]}. dx may be dy, or NULL: statistics alone. */
#define LOCUS_NORM_GRAD(name)                                                                      \
    void name(const locus_norm_rule *rule, float *dx, int64_t dx_row, int add,                     \
              float(*statistics)[2], const float *dy, int64_t dy_row, const float *x,              \
              int64_t x_row, int64_t rows)
typedef LOCUS_NORM_GRAD((*locus_norm_grad_fn));

/* dgain[c] += sum_i dy[i][c] n[i][c], dshift[c] += sum_i dy[i][c] for i < rows, c < columns, each
 * sum one chain from 0; either may be NULL. */
#define LOCUS_NORM_PARAMETER_GRAD(name)                                                            \
    void name(float *dgain, float *dshift, const float *dy, int64_t dy_row, const float *x,        \
              int64_t x_row, const float(*statistics)[2], int64_t rows, int64_t columns)
typedef LOCUS_NORM_PARAMETER_GRAD((*locus_norm_parameter_grad_fn));

/* *top = the greatest x[c], NaN aside, and *sum = sum_c e^(x[c] - *top), c < columns. The sum is
 * NaN where an x[c] is NaN or +inf, or all are -inf. */
#define LOCUS_EXP_SUM(name) void name(float *top, float *sum, const float *x, int64_t columns)
typedef LOCUS_EXP_SUM((*locus_exp_sum_fn));

/* y[c] = e^(x[c] - top) factor, 0 where x[c] is -inf (NaN where factor is), c < columns. y may be x. */
#define LOCUS_EXP_ROW(name)                                                                        \
    void name(float *y, const float *x, float top, float factor, int64_t columns)
typedef LOCUS_EXP_ROW((*locus_exp_row_fn));

/* y[c] = (x[c] - top) - rest, c < columns. y may be x. */
#define LOCUS_SHIFT_ROW(name)                                                                      \
    void name(float *y, const float *x, float top, float rest, int64_t columns)
typedef LOCUS_SHIFT_ROW((*locus_shift_row_fn));

/* The gradients of y = softmax(x) and of y = log softmax(x), from y:
 *     dx[c] = y[c] (dy[c] - sum dy y)         dx[c] = dy[c] - e^y[c] sum dy
 * dx may be dy or y. */
#define LOCUS_SOFTMAX_ROW_GRAD(name)                                                               \
    void name(float *dx, const float *dy, const float *y, int logarithm, int64_t columns)
typedef LOCUS_SOFTMAX_ROW_GRAD((*locus_softmax_row_grad_fn));

/* y[t][c] = (start != NULL ? start[c] : 0) + sum_k w[k][c] x[t + k][c] for t < rows, k < taps,
 * c < columns, k ascending. y overlaps nothing. */
#define LOCUS_DEPTHWISE(name)                                                                      \
    void name(float *y, int64_t y_row, const float *x, int64_t x_row, const float *w,              \
              int64_t w_row, const float *start, int64_t rows, int64_t taps, int64_t columns)
typedef LOCUS_DEPTHWISE((*locus_depthwise_fn));

/* sum[c] += sum_i a[i][c] b[i][c] for i < rows, c < columns, each sum one chain from 0. */
#define LOCUS_PRODUCT_SUMS(name)                                                                   \
    void name(float *sum, const float *a, int64_t a_row, const float *b, int64_t b_row,            \
              int64_t rows, int64_t columns)
typedef LOCUS_PRODUCT_SUMS((*locus_product_sums_fn));

#endif
