/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_ROWS_H
#define LOCUS_NN_ROWS_H

/* What the operators beside linear maps have in common. Each of them
 *   - works on rows, and a row never depends on the rows beside it, except where the formula is a
 *     sum over rows (gradients of parameters): those run in blocks of LOCUS_ROW_BLOCK rows,
 *     counted from the first, in ascending order;
 *   - gives the same bits for any number of threads;
 *   - lets NaN through as its formula does;
 *   - allocates nothing. */

#include <stdint.h>

#include "core/parallel.h"
#include "kernels/kernels.h"

#define LOCUS_ROW_BLOCK 512

/* Who computes. */
typedef struct locus_workers {
    const locus_kernels *kernels;
    uint32_t threads;
} locus_workers;

/* Row i starts at data + i * stride. */
typedef struct locus_rows {
    float *data;
    int64_t count, stride;
} locus_rows;

/* Sequences of tokens one behind the other: sequence s is rows offsets[s] .. offsets[s + 1] - 1. */
typedef struct locus_ragged {
    const int64_t *offsets; /* [sequences + 1], ascending */
    int64_t sequences;
} locus_ragged;

static inline float *locus_row(const locus_rows *rows, int64_t i)
{
    return rows->data + i * rows->stride;
}

static inline int64_t locus_least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t locus_blocks(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

/* Rows of a task: enough to be worth starting. Does not show in the bits. */
static inline int64_t locus_task_rows(int64_t width)
{
    const int64_t rows = 16384 / (width > 0 ? width : 1);
    return rows > 0 ? rows : 1;
}

#endif
