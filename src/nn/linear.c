/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/linear.h"

#include <string.h>

#include "core/parallel.h"
#include "core/size.h"

/* Output tiles, and the length of the partial sums. A partial sum starts at 0 and is
 * added to the output when it is complete: long sums lose fewer bits than one chain. */
enum { TILE_ROWS = 64, TILE_COLUMNS = 64, INNER_BLOCK = 256 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t blocks_of(int64_t extent, int64_t block) { return (extent + block - 1) / block; }

/* ---- one output tile ---- */

/* C (+)= A B, with the meanings that LOCUS_GEMM gives them. */
typedef struct product {
    float *c;
    int64_t c_row;
    const float *a;
    int64_t a_row, a_column;
    const float *b;
    int64_t b_row;
    int64_t rows, inner, columns;
} product;

static void clear_tile(const product *p)
{
    for (int64_t i = 0; i < p->rows; i++)
        memset(p->c + i * p->c_row, 0, (size_t)p->columns * sizeof(float));
}

static void multiply_tile(const locus_kernels *kernels, const product *p, int add, float *scratch)
{
    for (int64_t first = 0; first < p->inner; first += INNER_BLOCK) {
        const int64_t inner = least(INNER_BLOCK, p->inner - first);
        const float *a = p->a + first * p->a_column, *b = p->b + first * p->b_row;
        if (!add && first == 0) {
            kernels->gemm(p->c, p->c_row, a, p->a_row, p->a_column, b, p->b_row, p->rows, inner,
                          p->columns, 0);
            continue;
        }
        kernels->gemm(scratch, TILE_COLUMNS, a, p->a_row, p->a_column, b, p->b_row, p->rows, inner,
                      p->columns, 0);
        for (int64_t i = 0; i < p->rows; i++)
            kernels->add(p->c + i * p->c_row, scratch + i * TILE_COLUMNS, p->columns);
    }
}

/* ---- workspace: a tile per worker, then the packed weights ---- */

static float *tile_of(const locus_linear *f, uint32_t worker)
{
    return (float *)f->workspace + (size_t)worker * TILE_ROWS * TILE_COLUMNS;
}

/* Panel p holds W^T of outputs [p * TILE_COLUMNS, ...): inputs rows of TILE_COLUMNS. */
static float *panel_of(const locus_linear *f, int64_t panel)
{
    return tile_of(f, f->threads) + panel * f->weight->shape[1] * TILE_COLUMNS;
}

int locus_linear_workspace(uint64_t *bytes, int64_t inputs, int64_t outputs, uint32_t threads)
{
    const uint64_t panels = (uint64_t)blocks_of(outputs, TILE_COLUMNS);
    const uint64_t tile = (uint64_t)TILE_ROWS * TILE_COLUMNS * sizeof(float);
    uint64_t packed = 0, tiles = 0, total = 0;
    if (!locus_mul_u64(&packed, panels, TILE_COLUMNS * sizeof(float)) ||
        !locus_mul_u64(&packed, packed, (uint64_t)inputs) ||
        !locus_mul_u64(&tiles, tile, threads) || !locus_add_u64(&total, packed, tiles))
        return 0;
    *bytes = total;
    return 1;
}

/* ---- tasks: tile (batch, row block, column block) of a batch of matrices ---- */

typedef struct job {
    const locus_linear *f;
    locus_rows to;   /* y or dx: the rows that are written  */
    locus_rows from; /* x or dy: the rows that are read     */
    int64_t inner;   /* width of `from`                     */
    int64_t columns; /* width of `to`                       */
    int64_t row_blocks, column_blocks;
    const locus_linear_grad *grad;
} job;

/* Rows that follow one another without a gap are one batch: better tiles, same bits. */
static locus_rows merged(const locus_rows *r)
{
    locus_rows one = *r;
    if (r->batch_stride != r->rows * r->row_stride) return one;
    one.rows = r->batches * r->rows;
    one.batches = 1;
    return one;
}

static job new_job(const locus_linear *f, const locus_rows *to, int64_t columns,
                   const locus_rows *from, int64_t inner)
{
    job j = {.f = f, .to = merged(to), .from = merged(from), .inner = inner, .columns = columns};
    if (j.to.batches != j.from.batches) j.to = *to, j.from = *from;
    j.row_blocks = blocks_of(j.to.rows, TILE_ROWS);
    j.column_blocks = blocks_of(columns, TILE_COLUMNS);
    return j;
}

static void run_job(job *j, locus_task task)
{
    const int64_t tasks = j->to.batches * j->row_blocks * j->column_blocks;
    locus_parallel_for(j->f->threads, (size_t)tasks, task, j);
}

/* The tile of task `index`, all but B. Column blocks vary slowest: a panel of B stays
 * in the cache while the rows go by. */
static product tile_of_task(const job *j, size_t index, int64_t *first_column)
{
    const int64_t row_tiles = j->to.batches * j->row_blocks;
    const int64_t at = (int64_t)index % row_tiles;
    const int64_t batch = at / j->row_blocks, row = at % j->row_blocks * TILE_ROWS;
    const int64_t column = (int64_t)index / row_tiles * TILE_COLUMNS;
    *first_column = column;
    return (product){
        .c = j->to.data + batch * j->to.batch_stride + row * j->to.row_stride + column,
        .c_row = j->to.row_stride,
        .a = j->from.data + batch * j->from.batch_stride + row * j->from.row_stride,
        .a_row = j->from.row_stride,
        .a_column = 1,
        .rows = least(TILE_ROWS, j->to.rows - row),
        .inner = j->inner,
        .columns = least(TILE_COLUMNS, j->columns - column),
    };
}

/* ---- forward ---- */

static void pack_panel(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    const locus_tensor *weight = j->f->weight;
    const int64_t first = (int64_t)index * TILE_COLUMNS, inputs = weight->shape[1];
    const int64_t columns = least(TILE_COLUMNS, weight->shape[0] - first);
    const float *from = (const float *)weight->data + first * weight->stride[0];
    float *panel = panel_of(j->f, (int64_t)index);
    (void)worker;
    for (int64_t i = 0; i < inputs; i++)
        for (int64_t c = 0; c < columns; c++)
            panel[i * TILE_COLUMNS + c] = from[c * weight->stride[0] + i];
}

static void forward_tile(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    const locus_kernels *kernels = j->f->kernels;
    int64_t column;
    product p = tile_of_task(j, index, &column);
    p.b = panel_of(j->f, column / TILE_COLUMNS);
    p.b_row = TILE_COLUMNS;
    if (p.inner == 0) clear_tile(&p);
    multiply_tile(kernels, &p, 0, tile_of(j->f, worker));
    if (j->f->bias == NULL) return;
    for (int64_t i = 0; i < p.rows; i++)
        kernels->add(p.c + i * p.c_row, (const float *)j->f->bias->data + column, p.columns);
}

void locus_linear_forward(const locus_linear *f, const locus_rows *y, const locus_rows *x)
{
    job j = new_job(f, y, f->weight->shape[0], x, f->weight->shape[1]);
    if (j.to.rows == 0 || j.to.batches == 0) return;
    locus_parallel_for(f->threads, (size_t)j.column_blocks, pack_panel, &j);
    run_job(&j, forward_tile);
}

/* ---- backward ---- */

static void input_grad_tile(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    int64_t column;
    product p = tile_of_task(j, index, &column);
    p.b = (const float *)j->f->weight->data + column;
    p.b_row = j->f->weight->stride[0];
    if (p.inner == 0 && !j->grad->add_x) clear_tile(&p);
    multiply_tile(j->f->kernels, &p, j->grad->add_x, tile_of(j->f, worker));
}

/* dW tile = sum over the batches of dy^T x. Here to = dy and from = x. */
static void weight_grad_tile(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    const locus_tensor *dw = j->grad->weight;
    const int64_t out = (int64_t)index % j->row_blocks * TILE_ROWS;
    const int64_t in = (int64_t)index / j->row_blocks * TILE_COLUMNS;
    product p = {
        .c = (float *)dw->data + out * dw->stride[0] + in,
        .c_row = dw->stride[0],
        .a_row = 1,
        .a_column = j->to.row_stride,
        .b_row = j->from.row_stride,
        .rows = least(TILE_ROWS, dw->shape[0] - out),
        .inner = j->to.rows,
        .columns = least(TILE_COLUMNS, dw->shape[1] - in),
    };
    int add = j->grad->add_parameters;
    if (!add && (j->to.rows == 0 || j->to.batches == 0)) clear_tile(&p);
    for (int64_t b = 0; b < j->to.batches; b++, add = 1) {
        p.a = j->to.data + b * j->to.batch_stride + out;
        p.b = j->from.data + b * j->from.batch_stride + in;
        multiply_tile(j->f->kernels, &p, add, tile_of(j->f, worker));
    }
}

/* db of one block of columns: partial sums of INNER_BLOCK rows, as in the products. */
static void bias_grad_block(void *context, size_t index, uint32_t worker)
{
    const job *j = context;
    const locus_tensor *db = j->grad->bias;
    const locus_kernels *kernels = j->f->kernels;
    const int64_t column = (int64_t)index * TILE_COLUMNS;
    const int64_t columns = least(TILE_COLUMNS, db->shape[0] - column);
    float *sum = (float *)db->data + column, *part = tile_of(j->f, worker);
    if (!j->grad->add_parameters) memset(sum, 0, (size_t)columns * sizeof(float));
    for (int64_t b = 0; b < j->to.batches; b++) {
        for (int64_t first = 0; first < j->to.rows; first += INNER_BLOCK) {
            const int64_t past = least(first + INNER_BLOCK, j->to.rows);
            memset(part, 0, (size_t)columns * sizeof(float));
            for (int64_t t = first; t < past; t++)
                kernels->add(part,
                             j->to.data + b * j->to.batch_stride + t * j->to.row_stride + column,
                             columns);
            kernels->add(sum, part, columns);
        }
    }
}

void locus_linear_backward(const locus_linear *f, const locus_rows *dy, const locus_rows *x,
                           const locus_linear_grad *grad)
{
    const int64_t outputs = f->weight->shape[0], inputs = f->weight->shape[1];
    if (grad->x != NULL) {
        job j = new_job(f, grad->x, inputs, dy, outputs);
        j.grad = grad;
        run_job(&j, input_grad_tile);
    }
    /* Not merged: the partial sums follow the batches, whatever their strides. */
    job j = {.f = f, .to = *dy, .from = *x, .grad = grad};
    if (grad->weight != NULL) {
        j.row_blocks = blocks_of(outputs, TILE_ROWS);
        const int64_t tiles = j.row_blocks * blocks_of(inputs, TILE_COLUMNS);
        locus_parallel_for(f->threads, (size_t)tiles, weight_grad_tile, &j);
    }
    if (grad->bias != NULL)
        locus_parallel_for(f->threads, (size_t)blocks_of(outputs, TILE_COLUMNS), bias_grad_block,
                           &j);
}
