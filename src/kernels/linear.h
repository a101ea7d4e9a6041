/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_KERNELS_LINEAR_H
#define LOCUS_KERNELS_LINEAR_H

/* The contracts of the kernels of linear maps, C = A B, compiled once per instruction set.
 *
 * A product of any size is cut into blocks of `inner` inner indices (locus_linear_kernels). A
 * block of A is packed into left panels, a block of B into right panels:
 *     left panel    h <= `rows` rows of A, as [inner / LOCUS_LANES][h][LOCUS_LANES] where
 *                   A lies by rows, [inner][h] where it lies by columns, so that packing
 *                   is copying; the rows of a block are spread evenly over the least
 *                   number of panels, one behind the other. Where `left_in_place` is
 *                   set, A that lies by rows is not packed
 *     right panel   [inner][columns], the last one filled up with zeros
 * so that the innermost loop reads both of them from one end to the other. A right panel stays
 * in the first cache (of wide vectors, in the second) while all left panels go by.
 *
 * Every element of C is summed in chains of LOCUS_CHAIN inner indices counted from 0: each is
 * multiply-adds in ascending order that start at 0, and the chains are added in ascending
 * order to the bias or to what C held. So the bits depend neither on the rows and columns next to
 * the element nor on how the product is cut into blocks and tasks, nor on the instruction set, but
 * for the fused multiply-add. */

#include <stddef.h>
#include <stdint.h>

/* No vector is wider; the floats of a cache line. */
#define LOCUS_LANES 16

/* Of which every block has a whole number, but for the last one. */
#define LOCUS_CHAIN 256

/* Right panels are packed for LOCUS_RIGHT_COLUMNS columns at a time, a multiple of the columns of
 * every panel; a block of so many takes at most LOCUS_RIGHT_FLOATS floats. */
#define LOCUS_RIGHT_COLUMNS 64
#define LOCUS_RIGHT_FLOATS (32 * 1024)

/* Of up to so many inner indices, a product goes row by row over all columns that it is given. */
#define LOCUS_SHORT_INNER 8

/* Pack a block of A that lies by rows: A[i][j] = a[i * a_row + j] for i < rows, j < inner. Room:
 * locus_left_floats(rows, inner). */
#define LOCUS_PACK_LEFT_ROWS(name)                                                                 \
    void name(float *to, const float *a, int64_t a_row, int64_t rows, int64_t inner)
typedef LOCUS_PACK_LEFT_ROWS((*locus_pack_left_rows_fn));

/* Pack the inner indices first .. first + count - 1 of a block of A that has `inner` of them and
 * lies by columns: A[i][first + j] = a[j * a_column + i] for i < rows. */
#define LOCUS_PACK_LEFT_COLUMNS(name)                                                              \
    void name(float *to, const float *a, int64_t a_column, int64_t rows, int64_t inner,            \
              int64_t first, int64_t count)
typedef LOCUS_PACK_LEFT_COLUMNS((*locus_pack_left_columns_fn));

static inline int64_t locus_left_floats(int64_t rows, int64_t inner)
{
    return rows * ((inner + LOCUS_LANES - 1) / LOCUS_LANES * LOCUS_LANES);
}

/* Pack the right panels of `columns` columns, panel p at to + p * stride: B[j][c] =
 * b[j * b_row + c * b_column] for j < count; one of the two strides is 1. */
#define LOCUS_PACK_RIGHT(name)                                                                     \
    void name(float *to, int64_t stride, const float *b, int64_t b_row, int64_t b_column,          \
              int64_t count, int64_t columns)
typedef LOCUS_PACK_RIGHT((*locus_pack_right_fn));

/* What a finished sum becomes. Infinities give the limits. */
typedef enum locus_activation {
    LOCUS_IDENTITY,
    LOCUS_RELU,      /* max(0, s)                                            */
    LOCUS_GELU,      /* s (1 + erf(s / sqrt 2)) / 2                          */
    LOCUS_GELU_TANH, /* s (1 + tanh(sqrt(2 / pi) (s + 0.044715 s^3))) / 2    */
    LOCUS_SILU,      /* s / (1 + e^-s)                                       */
    LOCUS_TANH,      /* tanh s                                               */
    LOCUS_SIGMOID,   /* 1 / (1 + e^-s)                                       */
} locus_activation;

/* The product of all left panels of a block with some right panels:
 *     s = (resume ? C[i][c] : bias[c]) + sum_j A[i][j] B[j][c]      i < rows, j < inner, c < columns
 *     C[i][c] = finish ? gate[i][c] activation(s) + residual[i][c] : s
 * inner is at most that of a block, 0 allowed. C overlaps nothing. */
typedef struct locus_linear_tile {
    float *c;
    int64_t c_row;
    const float *left;
    int left_columns;   /* packed from columns, not from rows */
    int64_t left_row;   /* of A in place */
    const float *right; /* panel p at right + p * right_stride */
    int64_t right_stride;
    int64_t rows, inner, columns;
    int resume;
    const float *bias; /* NULL: 0 */
    int finish;        /* the block is the last one */
    locus_activation activation;
    const float *gate; /* rows gate_row apart; NULL: 1 */
    int64_t gate_row;
    const float *residual; /* NULL: 0 */
    int64_t residual_row;
    /* Rows that are read next: they are prefetched meanwhile. */
    const float *next;
    int64_t next_row, next_width, next_count;
} locus_linear_tile;
#define LOCUS_LINEAR(name) void name(const locus_linear_tile *t)
typedef LOCUS_LINEAR((*locus_linear_fn));

typedef struct locus_linear_kernels {
    int64_t rows, columns; /* of a register tile: a left panel by a right panel */
    int64_t inner;         /* of a block */
    int64_t few_rows;      /* of up to so many rows, a tile takes several right panels */
    int left_in_place;     /* A that lies by rows is not packed but read where it lies */
    locus_pack_left_rows_fn pack_left_rows;
    locus_pack_left_columns_fn pack_left_columns;
    locus_pack_right_fn pack_right;
    locus_linear_fn multiply;
} locus_linear_kernels;

#endif
