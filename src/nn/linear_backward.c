/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "core/size.h"
#include "nn/linear.h"
#include "nn/tiles.h"

/* Both gradients are products whose right operand lies row by row: W for dx, x for dW. It is
 * copied to panels a piece at a time, CHUNK inner indices of GROUP columns, which stays in
 * the second cache while all rows of the result go by. The left operand of dW, dz turned
 * around, is copied a chunk at a time too. CHUNK is a multiple of LOCUS_INNER_BLOCK, so that
 * none of this shows in the bits. */
enum {
    CHUNK = 4 * LOCUS_INNER_BLOCK,
    GROUP = 8 * LOCUS_PANEL,
    PIECE_FLOATS = CHUNK * GROUP,
    LEFT_STRIDE = CHUNK + LOCUS_LANES, /* no power of two: rows must not share cache sets */
    COPY_ROWS = 32                     /* of a copying task */
};
_Static_assert(PIECE_FLOATS * sizeof(float) % LOCUS_ALIGNMENT == 0, "what follows keeps its lines");

int locus_linear_workspace(uint64_t *bytes, int64_t inputs, int64_t outputs, uint32_t threads)
{
    uint64_t packed = 0, left = 0, sums = 0;
    const uint64_t piece = PIECE_FLOATS * sizeof(float) + LOCUS_ALIGNMENT;
    if (!locus_packed_bytes(&packed, inputs, outputs) ||
        !locus_mul_u64(&left, LEFT_STRIDE * sizeof(float), (uint64_t)outputs) ||
        !locus_add_u64(&left, left, piece) ||
        !locus_mul_u64(&sums, LOCUS_PANEL * sizeof(float), threads) ||
        !locus_add_u64(&sums, sums, LOCUS_ALIGNMENT))
        return 0;
    *bytes = packed > left ? packed : left;
    if (sums > *bytes) *bytes = sums;
    return 1;
}

static float *piece_of(const locus_linear *f) { return line_start(f->workspace); }
static float *left_of(const locus_linear *f) { return piece_of(f) + PIECE_FLOATS; }

/* ---- copies ---- */

/* Rows first .. first + count - 1, counted over batches, and some of their columns. */
typedef struct copy_job {
    const locus_kernels *kernels;
    const locus_row_batch *rows;
    int64_t first, count;
    int64_t column, columns;
    float *to;
} copy_job;

static const float *row_of(const locus_row_batch *r, int64_t index)
{
    return row_at(r, index / r->rows, index % r->rows);
}

/* To panels [count][LOCUS_PANEL], one behind the other. */
static void copy_rows(void *context, size_t index, uint32_t worker)
{
    const copy_job *c = context;
    const int64_t past = least((int64_t)(index + 1) * COPY_ROWS, c->count);
    (void)worker;
    for (int64_t j = (int64_t)index * COPY_ROWS; j < past; j++) {
        const float *from = row_of(c->rows, c->first + j) + c->column;
        float *to = c->to + j * LOCUS_PANEL;
        for (int64_t at = 0; at < c->columns; at += LOCUS_PANEL, to += c->count * LOCUS_PANEL)
            memcpy(to, from + at, (size_t)least(LOCUS_PANEL, c->columns - at) * sizeof *to);
    }
}

/* To [columns][LEFT_STRIDE], a panel of columns each time; rows of a batch are one matrix. */
static void turn_columns(void *context, size_t index, uint32_t worker)
{
    const copy_job *c = context;
    const int64_t column = (int64_t)index * LOCUS_PANEL;
    float *to = c->to + column * LEFT_STRIDE;
    (void)worker;
    for (int64_t done = 0, some; done < c->count; done += some) {
        some = least(c->count - done, c->rows->rows - (c->first + done) % c->rows->rows);
        c->kernels->transpose(to + done, LEFT_STRIDE, row_of(c->rows, c->first + done) + column,
                              c->rows->row_stride, some, least(LOCUS_PANEL, c->columns - column));
    }
}

/* ---- products ---- */

static void grad_tile(void *context, size_t index, uint32_t worker)
{
    const locus_product *p = context;
    int64_t column;
    locus_linear_tile t = tile_of(p, index, &column);
    (void)worker;
    t.b = p->packed + column * p->inner;
    t.resume = p->add;
    p->f->kernels->linear(&t);
}

/* to [rows, columns] (+)= from [rows, count] times rows first .. first + count - 1 of right. */
static void add_product(const locus_linear *f, const locus_row_batch *to, int64_t columns,
                        const locus_row_batch *from, const locus_row_batch *right, int64_t first,
                        int64_t count, int add)
{
    for (int64_t column = 0; column < columns; column += GROUP) {
        copy_job c = {.rows = right, .first = first, .count = count, .to = piece_of(f)};
        c.column = column;
        c.columns = least(GROUP, columns - column);
        locus_parallel_for(f->threads, (size_t)blocks_of(count, COPY_ROWS), copy_rows, &c);
        locus_product p = new_product(f, to, c.columns, from, count, NULL, TASK_ROWS);
        p.to.data += column;
        p.packed = c.to;
        p.add = add;
        run_product(&p, grad_tile);
    }
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
        add_product(f, grad->x, w->shape[1], &left, &right, first, count, grad->add_x || first > 0);
        left.data += count;
        first += count;
    } while (first < outputs);
}

/* dW = dz^T x */
static void weight_grad(const locus_linear *f, const locus_row_batch *dz, const locus_row_batch *x,
                        const locus_linear_grad *grad)
{
    const locus_tensor *dw = grad->weight;
    const int64_t outputs = dw->shape[0], rows = dz->batches * dz->rows;
    const locus_row_batch to = {
        .data = dw->data, .batches = 1, .rows = outputs, .row_stride = dw->stride[0]};
    const locus_row_batch left = {
        .data = left_of(f), .batches = 1, .rows = outputs, .row_stride = LEFT_STRIDE};
    copy_job c = {.kernels = f->kernels, .rows = dz, .columns = outputs, .to = left.data};
    do { /* once even without rows */
        c.count = least(CHUNK, rows - c.first);
        locus_parallel_for(f->threads, (size_t)blocks_of(outputs, LOCUS_PANEL), turn_columns, &c);
        add_product(f, &to, dw->shape[1], &left, x, c.first, c.count,
                    grad->add_parameters || c.first > 0);
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
    float *part = line_start(s->f->workspace) + (size_t)worker * LOCUS_PANEL;
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
