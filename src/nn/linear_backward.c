/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "nn/linear.h"
#include "nn/product.h"

static locus_row_batch tensor_rows(const locus_tensor *t)
{
    return (locus_row_batch){
        .data = t->data, .batches = 1, .rows = t->shape[0], .row_stride = t->stride[0]};
}

/* dx = dz W */
static void input_grad(const locus_linear *f, const locus_row_batch *dz,
                       const locus_linear_grad *grad)
{
    const product p = {.f = f,
                       .to = *grad->x,
                       .left = *dz,
                       .kind = RIGHT_ROWS,
                       .right = tensor_rows(f->weight),
                       .inner = f->weight->shape[0],
                       .columns = f->weight->shape[1],
                       .add = grad->add_x};
    product_run(&p);
}

/* dW = dz^T x */
static void weight_grad(const locus_linear *f, const locus_row_batch *dz, const locus_row_batch *x,
                        const locus_linear_grad *grad)
{
    const product p = {.f = f,
                       .to = tensor_rows(grad->weight),
                       .left = *dz,
                       .left_turned = 1,
                       .kind = RIGHT_ROWS,
                       .right = *x,
                       .inner = dz->batches * dz->rows,
                       .columns = grad->weight->shape[1],
                       .add = grad->add_parameters};
    product_run(&p);
}

/* ---- db ---- */

typedef struct sum_job {
    const locus_linear *f;
    const locus_row_batch *dz;
    const locus_linear_grad *grad;
} sum_job;

/* db of some columns. Partial sums of LOCUS_ROW_BLOCK rows, as in the products: a long sum loses fewer
 * bits so. */
enum { SUM_COLUMNS = 64 };
static void bias_grad_columns(void *context, size_t index, uint32_t worker)
{
    const sum_job *s = context;
    const locus_tensor *db = s->grad->bias;
    const locus_kernels *kernels = s->f->kernels;
    const int64_t column = (int64_t)index * SUM_COLUMNS, rows = s->dz->batches * s->dz->rows;
    const int64_t columns = locus_least(SUM_COLUMNS, db->shape[0] - column);
    const size_t bytes = (size_t)columns * sizeof(float);
    float *sum = (float *)db->data + column;
    float *part = product_scratch(s->f, worker);
    if (!s->grad->add_parameters) memset(sum, 0, bytes);
    for (int64_t first = 0; first < rows; first += LOCUS_ROW_BLOCK) {
        const int64_t past = locus_least(first + LOCUS_ROW_BLOCK, rows);
        memset(part, 0, bytes);
        for (int64_t r = first; r < past; r++)
            kernels->add(part, row_of(s->dz, r) + column, columns);
        kernels->add(sum, part, columns);
    }
}

void locus_linear_backward(const locus_linear *f, const locus_row_batch *dz,
                           const locus_row_batch *x, const locus_linear_grad *grad)
{
    if (grad->x != NULL) input_grad(f, dz, grad);
    if (grad->weight != NULL) weight_grad(f, dz, x, grad);
    if (grad->bias != NULL) {
        sum_job s = {.f = f, .dz = dz, .grad = grad};
        locus_parallel_for(f->threads, (size_t)locus_blocks(grad->bias->shape[0], SUM_COLUMNS),
                           bias_grad_columns, &s);
    }
}
