/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/product.h"

/* A task is a block of rows and a block of columns of C. It packs its rows of A, as many inner
 * indices at a time (a round) as fit half of the second cache, and goes over its right panels:
 * each is packed or read once per round and stays in the first cache while the rows go by. */

enum {
    UNKNOWN_CACHE = 512 * 1024, /* bytes of a second cache that nobody told */
    LEAST_ROWS = 48,            /* a task of fewer rows or columns packs too much */
    LEAST_PANELS = 4,
    TASKS_PER_THREAD = 4, /* cores may be shared: the last task is not to be long */
    UNPACKED_ROWS = 24    /* of fewer, what is packed next is not prefetched */
};

/* ---- scratch ---- */

/* Floats of a block of A. */
static int64_t left_floats(const locus_linear *f)
{
    const int64_t cache = f->second_cache > 0 ? (int64_t)f->second_cache : UNKNOWN_CACHE;
    const int64_t least_floats = LEAST_ROWS * f->kernels->linear->inner;
    const int64_t half = cache / 2 / (int64_t)sizeof(float) / LOCUS_LANES * LOCUS_LANES;
    return half > least_floats ? half : least_floats;
}

int64_t product_scratch_floats(const locus_linear *f)
{
    return left_floats(f) + LOCUS_RIGHT_FLOATS;
}

float *product_scratch(const locus_linear *f, uint32_t worker)
{
    return line_start(f->workspace) + (int64_t)worker * product_scratch_floats(f);
}

uint64_t locus_linear_workspace(const locus_linear *f)
{
    return (uint64_t)product_scratch_floats(f) * sizeof(float) * f->threads + LOCUS_ALIGNMENT;
}

/* ---- the cut ---- */

typedef struct cut {
    const product *p;
    int64_t block_rows, row_blocks;
    int64_t block_columns, column_blocks;
} cut;

/* Blocks of rows that fit the second cache; for threads, both sides halved until there are tasks
 * enough, the longer one first, so that little is packed twice. */
static cut cut_product(const product *p)
{
    const locus_linear_kernels *kernels = p->f->kernels->linear;
    const int64_t rows = p->to.rows, panels = locus_blocks(p->columns, kernels->columns);
    const int64_t wanted = p->f->threads > 1 ? TASKS_PER_THREAD * (int64_t)p->f->threads : 1;
    /* Rows that are not packed share sets of the cache; nor need they be many, if B is packed. */
    const int64_t share = kernels->left_in_place && p->kind == RIGHT_PACKED ? 2 : 1;
    const int64_t most_rows = left_floats(p->f) / kernels->inner / share;
    int64_t row_blocks = locus_blocks(rows, most_rows), column_blocks = 1;
    while (p->to.batches * row_blocks * column_blocks < wanted) {
        const int64_t some_rows = rows / row_blocks, some_panels = panels / column_blocks;
        const int rows_split = some_rows >= 2 * LEAST_ROWS;
        const int columns_split = some_panels >= 2 * LEAST_PANELS;
        if (!rows_split && !columns_split) break;
        if (rows_split && (!columns_split || some_rows >= some_panels * kernels->columns))
            row_blocks *= 2;
        else
            column_blocks *= 2;
    }
    cut c = {.p = p};
    c.block_rows = locus_blocks(rows, row_blocks);
    c.row_blocks = locus_blocks(rows, c.block_rows);
    c.block_columns = locus_blocks(panels, column_blocks) * kernels->columns;
    c.column_blocks = locus_blocks(p->columns, c.block_columns);
    return c;
}

/* ---- one task ---- */

typedef struct task {
    const product *p;
    const locus_linear_kernels *kernels;
    int64_t batch, row, rows; /* of C */
    int64_t column, columns;  /* of C */
    int64_t first, past;      /* inner indices of the round */
    float *left, *right;      /* packed */
} task;

/* Where consecutive rows of a batch end, at most `past`. */
static int64_t batch_end(const locus_row_batch *r, int64_t index, int64_t past)
{
    const int64_t end = (index / r->rows + 1) * r->rows;
    return r->batch_stride == r->rows * r->row_stride ? past : locus_least(end, past);
}

/* Where the block from inner index `first` on is packed. Blocks are multiples of LOCUS_LANES. */
static float *left_at(const task *t, int64_t first)
{
    return t->left + t->rows * (first - t->first);
}

static const float *left_row(const task *t)
{
    return row_of(&t->p->left, t->batch * t->p->to.rows + t->row);
}

static int is_in_place(const task *t) { return t->kernels->left_in_place && !t->p->left_turned; }

/* The left panels of inner indices first .. past - 1. */
static void pack_left(const task *t, int64_t first, int64_t past)
{
    const product *p = t->p;
    float *to = left_at(t, first);
    const int64_t inner = past - first;
    if (is_in_place(t)) return;
    if (!p->left_turned) {
        t->kernels->pack_left_rows(to, left_row(t) + first, p->left.row_stride, t->rows, inner);
        return;
    }
    for (int64_t j = first, end; j < past; j = end) {
        end = batch_end(&p->left, j, past);
        t->kernels->pack_left_columns(to, row_of(&p->left, j) + t->row, p->left.row_stride, t->rows,
                                      inner, j - first, end - j);
    }
}

/* The right panels of `columns` columns from `column` on and the same inner indices. */
static const float *pack_right(const task *t, int64_t column, int64_t columns, int64_t first,
                               int64_t past)
{
    const product *p = t->p;
    const int64_t width = t->kernels->columns, stride = (past - first) * width;
    if (p->kind == RIGHT_PACKED) return p->packed + column * p->inner + first * width;
    if (p->kind == RIGHT_TURNED) {
        t->kernels->pack_right(t->right, stride,
                               p->right.data + column * p->right.row_stride + first, 1,
                               p->right.row_stride, past - first, columns);
        return t->right;
    }
    for (int64_t j = first, end; j < past; j = end) {
        end = batch_end(&p->right, j, past);
        t->kernels->pack_right(t->right + (j - first) * width, stride,
                               row_of(&p->right, j) + column, p->right.row_stride, 1, end - j,
                               columns);
    }
    return t->right;
}

/* Columns that are multiplied one after the other before the inner index goes on: a packed panel,
 * or as many as are packed together; of few inner indices, as many as there is room for. */
static int64_t group_columns(const task *t)
{
    const int64_t inner = t->p->inner > 0 ? t->p->inner : 1;
    if (t->p->kind != RIGHT_PACKED && inner <= LOCUS_SHORT_INNER)
        return LOCUS_RIGHT_FLOATS / inner / LOCUS_RIGHT_COLUMNS * LOCUS_RIGHT_COLUMNS;
    const int one = t->p->kind == RIGHT_PACKED && t->rows > t->kernels->few_rows;
    return one ? t->kernels->columns : LOCUS_RIGHT_COLUMNS;
}

/* What the next panels are read from: of the same columns, or of the next ones. */
static void prefetch_next(const task *t, locus_linear_tile *tile, int64_t column, int64_t past)
{
    const product *p = t->p;
    const int64_t group = group_columns(t);
    int64_t first = past;
    if (t->rows < (p->kind == RIGHT_PACKED ? t->kernels->few_rows + 1 : UNPACKED_ROWS)) return;
    if (past == t->past) {
        first = t->first;
        column += group;
    }
    if (column >= t->column + t->columns) return;
    const int64_t columns = locus_least(group, p->columns - column);
    const int64_t count = locus_least(t->kernels->inner, t->past - first);
    if (count == 0) return;
    if (p->kind == RIGHT_PACKED) {
        tile->next = p->packed + column * p->inner + first * group;
        tile->next_row = tile->next_width = group;
        tile->next_count = count;
    } else if (p->kind == RIGHT_TURNED) {
        tile->next = p->right.data + column * p->right.row_stride + first;
        tile->next_row = p->right.row_stride;
        tile->next_width = count;
        tile->next_count = columns;
    } else {
        tile->next = row_of(&p->right, first) + column;
        tile->next_row = p->right.row_stride;
        tile->next_width = columns;
        tile->next_count = batch_end(&p->right, first, first + count) - first;
    }
}

static const float *row_or_null(const locus_row_batch *r, const task *t, int64_t column)
{
    return r != NULL ? row_of(r, t->batch * t->p->to.rows + t->row) + column : NULL;
}

/* C of some columns (+)= the product over one block of inner indices. */
static void multiply_block(const task *t, int64_t column, int64_t columns, int64_t first,
                           int64_t past)
{
    const product *p = t->p;
    const locus_row_batch *gate = p->end.gate, *residual = p->end.residual;
    locus_linear_tile tile = {
        .c = row_of(&p->to, t->batch * p->to.rows + t->row) + column,
        .c_row = p->to.row_stride,
        .left = is_in_place(t) ? left_row(t) + first : left_at(t, first),
        .left_row = p->left.row_stride,
        .left_columns = p->left_turned,
        .right = pack_right(t, column, columns, first, past),
        .right_stride = t->kernels->columns * (p->kind == RIGHT_PACKED ? p->inner : past - first),
        .rows = t->rows,
        .inner = past - first,
        .columns = columns,
        .resume = first > 0 || p->add,
        .bias = p->bias != NULL ? p->bias + column : NULL,
        .finish = past == p->inner &&
                  (p->end.activation != LOCUS_IDENTITY || gate != NULL || residual != NULL),
        .activation = p->end.activation,
        .gate = row_or_null(gate, t, column),
        .gate_row = gate != NULL ? gate->row_stride : 0,
        .residual = row_or_null(residual, t, column),
        .residual_row = residual != NULL ? residual->row_stride : 0,
    };
    prefetch_next(t, &tile, column, past);
    t->kernels->multiply(&tile);
}

static void run_round(const task *t)
{
    const int64_t block = t->kernels->inner, group = group_columns(t);
    for (int64_t j = t->first; j < t->past; j += block)
        pack_left(t, j, locus_least(j + block, t->past));
    for (int64_t c = 0; c < t->columns; c += group) {
        int64_t j = t->first;
        do { /* once even where there is nothing to sum */
            multiply_block(t, t->column + c, locus_least(group, t->columns - c), j,
                           locus_least(j + block, t->past));
            j += block;
        } while (j < t->past);
    }
}

static void run_task(void *context, size_t index, uint32_t worker)
{
    const cut *c = context;
    const product *p = c->p;
    const int64_t block = (int64_t)index / c->column_blocks;
    task t = {.p = p, .kernels = p->f->kernels->linear};
    t.batch = block / c->row_blocks;
    t.row = block % c->row_blocks * c->block_rows;
    t.rows = locus_least(c->block_rows, p->to.rows - t.row);
    t.column = (int64_t)index % c->column_blocks * c->block_columns;
    t.columns = locus_least(c->block_columns, p->columns - t.column);
    t.left = product_scratch(p->f, worker);
    t.right = t.left + left_floats(p->f);
    const int64_t blocks = left_floats(p->f) / (t.rows * t.kernels->inner);
    do { /* once even where there is nothing to sum */
        t.first = t.past;
        t.past = locus_least(p->inner, t.first + (blocks > 0 ? blocks : 1) * t.kernels->inner);
        run_round(&t);
    } while (t.past < p->inner);
}

/* ---- the product ---- */

/* Rows that follow one another without a gap are one batch: better tasks. */
static int is_one_batch(const locus_row_batch *r)
{
    return r == NULL || r->batches == 1 || r->batch_stride == r->rows * r->row_stride;
}

static void make_one_batch(locus_row_batch *r)
{
    r->rows *= r->batches;
    r->batches = 1;
}

/* *r, as one batch, in `copy`; NULL for NULL. */
static const locus_row_batch *one_batch(const locus_row_batch *r, locus_row_batch *copy)
{
    if (r == NULL) return NULL;
    *copy = *r;
    make_one_batch(copy);
    return copy;
}

void product_run(const product *given)
{
    product p = *given;
    locus_row_batch gate, residual;
    if (p.to.rows == 0 || p.to.batches == 0 || p.columns == 0) return;
    if (!p.left_turned && is_one_batch(&p.to) && is_one_batch(&p.left) &&
        is_one_batch(p.end.gate) && is_one_batch(p.end.residual)) {
        make_one_batch(&p.to);
        make_one_batch(&p.left);
        p.end.gate = one_batch(p.end.gate, &gate);
        p.end.residual = one_batch(p.end.residual, &residual);
    }
    cut c = cut_product(&p);
    locus_parallel_for(p.f->threads, (size_t)(p.to.batches * c.row_blocks * c.column_blocks),
                       run_task, &c);
}
