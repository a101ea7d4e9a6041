/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_KERNELS_KERNELS_H
#define LOCUS_KERNELS_KERNELS_H

/* The contracts of the kernels. A kernel never knows a scheme: it sees rows, tiles
 * and tables. One source per operation (NAME.inc.c), written against the vector
 * vocabulary of vec/<isa>.h and compiled once per isa/<isa>.c into a const table.
 *
 * The tile contract that everything hangs on:
 *     score tile  S[m][n] = products + position tile        (BLOCK_ROWS x BLOCK_KEYS)
 *     streaming softmax over the key tiles in ascending order
 *     out[m] = sum of the tiles' P V
 * Every output element is one chain of operations in ascending order of the inner
 * index, started from its old value, so it does not depend on how rows are grouped
 * into tiles or threads. */

#include <stdint.h>

/* Rows of a query tile and columns of a key tile. The same for every table: the order
 * of the sums, and with it the bits, is a function of these two. */
#define LOCUS_BLOCK_ROWS 64
#define LOCUS_BLOCK_KEYS 64

/* C[i][c] = (accumulate ? C[i][c] : 0) + sum_j A[i][j] B[j][c]
 * for i < rows, j < inner, c < columns, j ascending. A is read at
 * A[i * a_row + j * a_column]: both a matrix and its transpose will do. B and C are
 * row-major with unit column stride. C overlaps nothing. */
#define LOCUS_GEMM(name)                                                                           \
    void name(float *C, int64_t c_row, const float *A, int64_t a_row, int64_t a_column,            \
              const float *B, int64_t b_row, int64_t rows, int64_t inner, int64_t columns,         \
              int accumulate)
typedef LOCUS_GEMM((*locus_gemm_fn));

/* One step of the streaming softmax on rows x columns scores, row stride LOCUS_BLOCK_KEYS.
 * Invariant over the keys seen so far:
 *     top[i] = max s,  sum[i] = sum e^(s - top[i]),  out[i] = sum e^(s - top[i]) v.
 * On return S holds e^(s - top) and carry[i] = e^(old top - new top), by which the caller
 * multiplies out[i] before it adds this tile. -inf scores give exactly 0; a row of
 * nothing but -inf keeps top = -inf, sum = 0, carry = 1. NaN and +inf make the row NaN. */
#define LOCUS_SOFTMAX_STEP(name)                                                                   \
    void name(float *S, int64_t rows, int64_t columns, float *top, float *sum, float *carry)
typedef LOCUS_SOFTMAX_STEP((*locus_softmax_step_fn));

/* S[i][j] = e^(S[i][j] - top[i]) factor[i]; exactly 0 where S[i][j] is -inf. Row stride
 * LOCUS_BLOCK_KEYS. */
#define LOCUS_SOFTMAX_AGAIN(name)                                                                  \
    void name(float *S, int64_t rows, int64_t columns, const float *top, const float *factor)
typedef LOCUS_SOFTMAX_AGAIN((*locus_softmax_again_fn));

/* dS[i][j] = P[i][j] (dP[i][j] - delta[i]), written over dP; 0 where P is 0. Row stride
 * LOCUS_BLOCK_KEYS. */
#define LOCUS_SOFTMAX_GRAD(name)                                                                   \
    void name(float *dP, const float *P, int64_t rows, int64_t columns, const float *delta)
typedef LOCUS_SOFTMAX_GRAD((*locus_softmax_grad_fn));

/* y[c] += x[c] for c < columns. */
#define LOCUS_ADD(name) void name(float *y, const float *x, int64_t columns)
typedef LOCUS_ADD((*locus_add_fn));

/* y[c] *= factor. */
#define LOCUS_SCALE(name) void name(float *y, float factor, int64_t columns)
typedef LOCUS_SCALE((*locus_scale_fn));

typedef struct locus_kernels {
    const char *isa;
    uint32_t cpu; /* LOCUS_CPU_ bits it needs */
    locus_gemm_fn gemm;
    locus_softmax_step_fn softmax_step;
    locus_softmax_again_fn softmax_again;
    locus_softmax_grad_fn softmax_grad;
    locus_add_fn add;
    locus_scale_fn scale;
} locus_kernels;

/* Tables of this build, worst first; NULL beyond the end. */
const locus_kernels *locus_kernels_at(uint32_t index);

/* The best table that the CPU offers below `ceiling` (NULL: none) and below the
 * environment variable LOCUS_ISA; NULL when one of the two names no table. */
const locus_kernels *locus_kernels_pick(const char *ceiling);

#endif
