/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/size.h"
#include "nn/linear.h"
#include "nn/tiles.h"

/* Both gradients are products whose right operand lies row by row: W for dx, x for dW. The
 * kernel copies it to panels, the next one while it works on the last. The left operand of dW
 * is dz, whose rows become columns: LEFT_ROWS of them are copied, CHUNK long, so that they
 * stay in the second cache and do not share its sets. CHUNK is a multiple of
 * LOCUS_INNER_BLOCK, so that none of this shows in the bits. */
enum {
    CHUNK = LOCUS_INNER_BLOCK,
    LEFT_ROWS = 2 * TASK_ROWS,
    LEFT_FLOATS = CHUNK * LEFT_ROWS,
    BLOCK_FLOATS = 2 * LOCUS_INNER_BLOCK * LOCUS_PANEL, /* of a worker */
    COPY_ROWS = 32                                      /* of a copying task */
};
_Static_assert(LEFT_FLOATS * sizeof(float) % LOCUS_ALIGNMENT == 0, "what follows keeps its lines");

int locus_linear_workspace(uint64_t *bytes, int64_t inputs, int64_t outputs, uint32_t threads)
{
    uint64_t packed = 0, backward = 0;
    if (!locus_packed_bytes(&packed, inputs, outputs) ||
        !locus_mul_u64(&backward, BLOCK_FLOATS * sizeof(float), threads) ||
        !locus_add_u64(&backward, backward, LEFT_FLOATS * sizeof(float) + LOCUS_ALIGNMENT))
        return 0;
    *bytes = packed > backward ? packed : backward;
    return 1;
}

static float *left_of(const locus_linear *f) { return line_start(f->workspace); }
static float *block_of(const locus_linear *f, uint32_t worker)
{
    return left_of(f) + LEFT_FLOATS + (size_t)worker * BLOCK_FLOATS;
}

/* ---- copies ---- */

static const float *row_of(const locus_row_batch *r, int64_t index)
{
    return row_at(r, index / r->rows, index % r->rows);
}

/* Some columns of rows first .. first + count - 1, counted over batches, `row` floats apart. */
static void copy_rows(float *to, int64_t row, const locus_row_batch *from, int64_t first,
                      int64_t count, int64_t column, int64_t columns)
{
    for (int64_t j = 0; j < count; j++)
        memcpy(to + j * row, row_of(from, first + j) + column, (size_t)columns * sizeof *to);
}

typedef struct left_job {
    float *to;
    const locus_row_batch *dz;
    int64_t first, count, column, columns;
} left_job;

static void copy_left(void *context, size_t index, uint32_t worker)
{
    const left_job *c = context;
    const int64_t at = (int64_t)index * COPY_ROWS;
    (void)worker;
    copy_rows(c->to + at * LEFT_ROWS, LEFT_ROWS, c->dz, c->first + at,
              least(COPY_ROWS, c->count - at), c->column, c->columns);
}

/* ---- products ---- */

/* One thread takes large tasks, which copy the right operand less often; many want many. */
static locus_product grad_product(const locus_linear *f, const locus_row_batch *to, int64_t columns,
                                  const locus_row_batch *from, int64_t inner)
{
    return f->threads > 1
               ? new_product(f, to, columns, from, inner, NULL, TASK_ROWS, 2 * LOCUS_PANEL)
               : new_product(f, to, columns, from, inner, NULL, LEFT_ROWS, 16 * LOCUS_PANEL);
}

/* Rows with gaps between batches are gathered here, not by the kernel: a product has CHUNK of them
 * at most, which fit a block. */
static void gathered_tile(const locus_product *p, const locus_linear_tile *all, int64_t column,
                          float *block)
{
    locus_linear_tile t = *all;
    t.b = block;
    t.b_row = LOCUS_PANEL;
    for (int64_t c = 0; c < all->columns; c += LOCUS_PANEL) {
        t.c = all->c + c;
        t.columns = least(LOCUS_PANEL, all->columns - c);
        copy_rows(block, LOCUS_PANEL, p->right, p->first, p->inner, column + c, t.columns);
        p->f->kernels->linear(&t);
    }
}

static void grad_tile(void *context, size_t index, uint32_t worker)
{
    const locus_product *p = context;
    const locus_row_batch *right = p->right;
    int64_t column;
    locus_linear_tile t = tile_of(p, index, &column);
    t.resume = p->add;
    if (p->inner > 0 && !is_one_batch(right)) {
        gathered_tile(p, &t, column, block_of(p->f, worker));
        return;
    }
    t.copy = block_of(p->f, worker);
    t.b = p->inner > 0 ? right->data + p->first * right->row_stride + column : t.copy;
    t.b_row = right->row_stride;
    p->f->kernels->linear(&t);
}

/* dx = dz W */
static void input_grad(const locus_linear *f, const locus_row_batch *dz,
                       const locus_linear_grad *grad)
{
    const locus_tensor *w = f->weight;
    const int64_t outputs = w->shape[0];
    const locus_row_batch right = {
        .data = w->data, .batches = 1, .rows = outputs, .row_stride = w->stride[0]};
    locus_row_batch left = *dz;
    int64_t first = 0;
    do { /* once even without outputs */
        const int64_t count = least(CHUNK, outputs - first);
        locus_product p = grad_product(f, grad->x, w->shape[1], &left, count);
        p.right = &right;
        p.first = first;
        p.add = grad->add_x || first > 0;
        run_product(&p, grad_tile);
        left.data += count;
        first += count;
    } while (first < outputs);
}

/* The rows c->column .. of dW (+)= columns of dz times x, over the rows of the chunk. */
static void add_weight_rows(const locus_linear *f, left_job *c, const locus_row_batch *x,
                            const locus_linear_grad *grad)
{
    const locus_tensor *dw = grad->weight;
    const locus_row_batch to = {.data = (float *)dw->data + c->column * dw->stride[0],
                                .batches = 1,
                                .rows = c->columns,
                                .row_stride = dw->stride[0]};
    const locus_row_batch left = {.data = c->to, .batches = 1, .rows = c->columns, .row_stride = 1};
    locus_parallel_for(f->threads, (size_t)blocks_of(c->count, COPY_ROWS), copy_left, c);
    locus_product p = grad_product(f, &to, dw->shape[1], &left, c->count);
    p.from_column = LEFT_ROWS;
    p.right = x;
    p.first = c->first;
    p.add = grad->add_parameters || c->first > 0;
    run_product(&p, grad_tile);
}

/* dW = dz^T x */
static void weight_grad(const locus_linear *f, const locus_row_batch *dz, const locus_row_batch *x,
                        const locus_linear_grad *grad)
{
    const int64_t outputs = grad->weight->shape[0], rows = dz->batches * dz->rows;
    left_job c = {.to = left_of(f), .dz = dz};
    do { /* once even without rows */
        c.count = least(CHUNK, rows - c.first);
        for (c.column = 0; c.column < outputs; c.column += LEFT_ROWS) {
            c.columns = least(LEFT_ROWS, outputs - c.column);
            add_weight_rows(f, &c, x, grad);
        }
        c.first += c.count;
    } while (c.first < rows);
}

/* ---- db ---- */

typedef struct sum_job {
    const locus_linear *f;
    const locus_row_batch *dz;
    const locus_linear_grad *grad;
} sum_job;

/* db of one panel of columns: partial sums, as in the products. */
static void bias_grad_panel(void *context, size_t index, uint32_t worker)
{
    const sum_job *s = context;
    const locus_tensor *db = s->grad->bias;
    const locus_kernels *kernels = s->f->kernels;
    const int64_t column = (int64_t)index * LOCUS_PANEL, rows = s->dz->batches * s->dz->rows;
    const int64_t columns = least(LOCUS_PANEL, db->shape[0] - column);
    const size_t bytes = (size_t)columns * sizeof(float);
    float *sum = (float *)db->data + column;
    float *part = block_of(s->f, worker);
    if (!s->grad->add_parameters) memset(sum, 0, bytes);
    for (int64_t first = 0; first < rows; first += LOCUS_INNER_BLOCK) {
        const int64_t past = least(first + LOCUS_INNER_BLOCK, rows);
        memset(part, 0, bytes);
        for (int64_t r = first; r < past; r++)
            kernels->add(part, row_of(s->dz, r) + column, columns);
        kernels->add(sum, part, columns);
    }
}

void locus_linear_backward(const locus_linear *f, const locus_row_batch *dz,
                           const locus_row_batch *x, const locus_linear_grad *grad)
{
    if (grad->x != NULL && dz->rows > 0 && dz->batches > 0) input_grad(f, dz, grad);
    if (grad->weight != NULL) weight_grad(f, dz, x, grad);
    if (grad->bias != NULL) {
        sum_job s = {.f = f, .dz = dz, .grad = grad};
        locus_parallel_for(f->threads, (size_t)blocks_of(f->weight->shape[0], LOCUS_PANEL),
                           bias_grad_panel, &s);
    }
}
