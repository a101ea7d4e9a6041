/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/size.h"
#include "nn/linear.h"
#include "nn/tiles.h"

/* Operands that lie row by row are copied block by block into the worker's scratch, so that
 * a block is contiguous: right operands as [LOCUS_INNER_BLOCK][LOCUS_PANEL], the left one of
 * dW as [LOCUS_INNER_BLOCK][TASK_ROWS]. A task of dW is GRAD_PANELS panels wide: the copy of
 * its left operand is used so often. */
enum {
    GRAD_PANELS = 4,
    BLOCK_FLOATS = LOCUS_INNER_BLOCK * LOCUS_PANEL,
    LEFT_FLOATS = LOCUS_INNER_BLOCK * TASK_ROWS,
    SCRATCH_FLOATS = BLOCK_FLOATS + LEFT_FLOATS
};
_Static_assert(SCRATCH_FLOATS * sizeof(float) % LOCUS_ALIGNMENT == 0, "scratch keeps its lines");

int locus_linear_workspace(uint64_t *bytes, int64_t inputs, int64_t outputs, uint32_t threads)
{
    uint64_t packed = 0, scratch = 0;
    if (!locus_packed_bytes(&packed, inputs, outputs) ||
        !locus_mul_u64(&scratch, SCRATCH_FLOATS * sizeof(float), threads) ||
        !locus_add_u64(&scratch, scratch, LOCUS_ALIGNMENT))
        return 0;
    *bytes = packed > scratch ? packed : scratch;
    return 1;
}

static float *scratch_of(const locus_linear *f, uint32_t worker)
{
    return line_start(f->workspace) + (size_t)worker * SCRATCH_FLOATS;
}

/* ---- dx = dz W ---- */

static void input_grad_tile(void *context, size_t index, uint32_t worker)
{
    const locus_product *p = context;
    const locus_tensor *w = p->f->weight;
    float *block = scratch_of(p->f, worker);
    int64_t column, first = 0;
    locus_linear_tile t = tile_of(p, index, &column);
    const float *from = (const float *)w->data + column;
    t.b = block;
    t.resume = p->add;
    do {
        t.inner = least(LOCUS_INNER_BLOCK, p->inner - first);
        for (int64_t j = 0; j < t.inner; j++)
            memcpy(block + j * LOCUS_PANEL, from + (first + j) * w->stride[0],
                   (size_t)t.columns * sizeof(float));
        first += t.inner;
        t.next = first + LOCUS_INNER_BLOCK <= p->inner ? from + first * w->stride[0] : NULL;
        t.next_row = w->stride[0];
        p->f->kernels->linear(&t);
        t.a += t.inner;
        t.resume = 1;
    } while (first < p->inner);
}

/* ---- dW = dz^T x, db ---- */

typedef struct grad_job {
    const locus_linear *f;
    const locus_row_batch *dz, *x;
    const locus_linear_grad *grad;
    int64_t rows;       /* of all batches: blocks are counted over them */
    int64_t row_blocks; /* of dW */
} grad_job;

static const float *row_of(const locus_row_batch *r, int64_t index)
{
    return row_at(r, index / r->rows, index % r->rows);
}

/* Columns of rows first .. first + count - 1, `stride` apart. */
static void copy_columns(float *to, int64_t stride, const locus_row_batch *from, int64_t first,
                         int64_t count, int64_t column, int64_t columns)
{
    for (int64_t j = 0; j < count; j++)
        memcpy(to + j * stride, row_of(from, first + j) + column, (size_t)columns * sizeof(float));
}

/* Adds the rows of one block to a tile of dW: all of its panels, or starts them. */
static void weight_grad_block(const grad_job *g, locus_linear_tile t, int64_t first, int64_t in,
                              int64_t width, float *block)
{
    t.b = block;
    t.next_row = g->x->row_stride;
    for (int64_t c = 0; c < width; c += LOCUS_PANEL) {
        t.columns = least(LOCUS_PANEL, width - c);
        copy_columns(block, LOCUS_PANEL, g->x, first, t.inner, in + c, t.columns);
        t.next = c + 2 * LOCUS_PANEL <= width ? row_of(g->x, first) + in + c + LOCUS_PANEL : NULL;
        g->f->kernels->linear(&t);
        t.c += LOCUS_PANEL;
    }
}

static void weight_grad_tile(void *context, size_t index, uint32_t worker)
{
    const grad_job *g = context;
    const locus_tensor *dw = g->grad->weight;
    const int64_t out = (int64_t)index % g->row_blocks * TASK_ROWS;
    const int64_t in = (int64_t)index / g->row_blocks * GRAD_PANELS * LOCUS_PANEL;
    const int64_t width = least(GRAD_PANELS * LOCUS_PANEL, dw->shape[1] - in);
    float *scratch = scratch_of(g->f, worker), *left = scratch + BLOCK_FLOATS;
    locus_linear_tile t = {
        .c = (float *)dw->data + out * dw->stride[0] + in,
        .c_row = dw->stride[0],
        .a = left,
        .a_stride = TASK_ROWS,
        .transposed = 1,
        .rows = least(TASK_ROWS, dw->shape[0] - out),
        .resume = g->grad->add_parameters,
    };
    int64_t first = 0;
    do {
        t.inner = least(LOCUS_INNER_BLOCK, g->rows - first);
        copy_columns(left, TASK_ROWS, g->dz, first, t.inner, out, t.rows);
        weight_grad_block(g, t, first, in, width, scratch);
        first += t.inner;
        t.resume = 1;
    } while (first < g->rows);
}

/* db of one panel of columns: partial sums, as in the products. */
static void bias_grad_panel(void *context, size_t index, uint32_t worker)
{
    const grad_job *g = context;
    const locus_tensor *db = g->grad->bias;
    const locus_kernels *kernels = g->f->kernels;
    const int64_t column = (int64_t)index * LOCUS_PANEL;
    const int64_t columns = least(LOCUS_PANEL, db->shape[0] - column);
    const size_t bytes = (size_t)columns * sizeof(float);
    float *sum = (float *)db->data + column, *part = scratch_of(g->f, worker);
    if (!g->grad->add_parameters) memset(sum, 0, bytes);
    for (int64_t first = 0; first < g->rows; first += LOCUS_INNER_BLOCK) {
        const int64_t past = least(first + LOCUS_INNER_BLOCK, g->rows);
        memset(part, 0, bytes);
        for (int64_t r = first; r < past; r++)
            kernels->add(part, row_of(g->dz, r) + column, columns);
        kernels->add(sum, part, columns);
    }
}

void locus_linear_backward(const locus_linear *f, const locus_row_batch *dz,
                           const locus_row_batch *x, const locus_linear_grad *grad)
{
    const int64_t outputs = f->weight->shape[0], inputs = f->weight->shape[1];
    if (grad->x != NULL && dz->rows > 0 && dz->batches > 0) {
        locus_product p = new_product(f, grad->x, inputs, dz, outputs, NULL, 2 * TASK_ROWS);
        p.add = grad->add_x;
        run_product(&p, input_grad_tile);
    }
    grad_job g = {.f = f, .dz = dz, .x = x, .grad = grad, .rows = dz->batches * dz->rows};
    if (grad->weight != NULL) {
        g.row_blocks = blocks_of(outputs, TASK_ROWS);
        const int64_t tiles = g.row_blocks * blocks_of(inputs, GRAD_PANELS * LOCUS_PANEL);
        locus_parallel_for(f->threads, (size_t)tiles, weight_grad_tile, &g);
    }
    if (grad->bias != NULL)
        locus_parallel_for(f->threads, (size_t)blocks_of(outputs, LOCUS_PANEL), bias_grad_panel,
                           &g);
}
