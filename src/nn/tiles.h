/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_TILES_H
#define LOCUS_NN_TILES_H

/* How linear maps are cut into tasks. None of this shows in the bits. */

#include "core/memory.h"
#include "core/parallel.h"
#include "nn/linear.h"

/* Rows of a task, and the inputs of a round: the x of a task stays in the second cache while
 * the panels go by, and the rows are enough to make reading a panel cheap. Multiples of the
 * rows of every register tile and of LOCUS_INNER_BLOCK. */
enum { TASK_ROWS = 132, ROUND_INPUTS = 2 * LOCUS_INNER_BLOCK };

static inline int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static inline int64_t blocks_of(int64_t extent, int64_t block)
{
    return (extent + block - 1) / block;
}

/* The first address from `memory` on where a cache line starts. */
static inline float *line_start(void *memory)
{
    return (float *)(((uintptr_t)memory + LOCUS_ALIGNMENT - 1) / LOCUS_ALIGNMENT * LOCUS_ALIGNMENT);
}

/* Rows that follow one another without a gap are one batch: better tiles. */
static inline int is_one_batch(const locus_row_batch *r)
{
    return r->batch_stride == r->rows * r->row_stride || r->batches == 1;
}

static inline locus_row_batch as_one_batch(const locus_row_batch *r)
{
    locus_row_batch one = *r;
    one.rows = r->batches * r->rows;
    one.batches = 1;
    return one;
}

static inline float *row_at(const locus_row_batch *r, int64_t batch, int64_t row)
{
    return r->data + batch * r->batch_stride + row * r->row_stride;
}

/* y or dx = x or dz times a matrix, by tasks (batch, block of rows, some panels). The
 * panels vary fastest: a task's rows are in the cache when the next one begins. */
typedef struct locus_product {
    const locus_linear *f;
    locus_row_batch to, from, residual; /* residual.data NULL: none */
    int64_t inner, columns;             /* widths of `from` and `to` */
    int64_t task_rows, row_blocks;
    int64_t task_columns, column_blocks;
    int64_t from_column; /* floats between the columns of `from`; 1 between the rows if not 1 */
    int64_t first, past; /* forward: the inputs of this round; backward: the rows of right */
    const float *packed; /* forward: panels */
    const locus_row_batch *right; /* backward */
    int add;
} locus_product;

static inline locus_product new_product(const locus_linear *f, const locus_row_batch *to,
                                        int64_t columns, const locus_row_batch *from, int64_t inner,
                                        const locus_row_batch *residual, int64_t task_rows,
                                        int64_t task_columns)
{
    locus_product p = {.f = f, .to = *to, .from = *from, .inner = inner, .columns = columns};
    p.from_column = 1;
    if (residual != NULL) p.residual = *residual;
    if (is_one_batch(to) && is_one_batch(from) && (residual == NULL || is_one_batch(residual))) {
        p.to = as_one_batch(to);
        p.from = as_one_batch(from);
        if (residual != NULL) p.residual = as_one_batch(residual);
    }
    p.task_rows = task_rows;
    p.row_blocks = blocks_of(p.to.rows, task_rows);
    p.task_columns = task_columns;
    p.column_blocks = blocks_of(columns, task_columns);
    return p;
}

static inline void run_product(locus_product *p, locus_task task)
{
    const int64_t tasks = p->to.batches * p->row_blocks * p->column_blocks;
    locus_parallel_for(p->f->threads, (size_t)tasks, task, p);
}

/* The tile of task `index`: all but B and what becomes of the sums. */
static inline locus_linear_tile tile_of(const locus_product *p, size_t index, int64_t *column)
{
    const int64_t rows_at = (int64_t)index / p->column_blocks;
    const int64_t batch = rows_at / p->row_blocks, row = rows_at % p->row_blocks * p->task_rows;
    *column = (int64_t)index % p->column_blocks * p->task_columns;
    return (locus_linear_tile){
        .c = row_at(&p->to, batch, row) + *column,
        .c_row = p->to.row_stride,
        .a = row_at(&p->from, batch, row),
        .a_row = p->from.row_stride,
        .a_column = p->from_column,
        .rows = least(p->task_rows, p->to.rows - row),
        .inner = p->inner,
        .columns = least(p->task_columns, p->columns - *column),
        .residual = p->residual.data != NULL ? row_at(&p->residual, batch, row) + *column : NULL,
        .residual_row = p->residual.row_stride,
    };
}

#endif
