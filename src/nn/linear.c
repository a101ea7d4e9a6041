/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/linear.h"

#include "core/size.h"
#include "nn/product.h"
#include "nn/quantized.h"

/* ---- packed weights ---- */

int locus_packed_bytes(uint64_t *bytes, int64_t inputs, int64_t outputs)
{
    uint64_t rows = 0, total = 0;
    if (!locus_pad_u64(&rows, (uint64_t)outputs, LOCUS_RIGHT_COLUMNS) ||
        !locus_product_u64(&total, (const uint64_t[]){rows, (uint64_t)inputs, sizeof(float)}, 3) ||
        !locus_add_u64(&total, total, LOCUS_ALIGNMENT))
        return 0;
    *bytes = total;
    return 1;
}

typedef struct pack_job {
    const locus_linear_kernels *kernels;
    const locus_tensor *weight;
    float *panels;
} pack_job;

static void pack_panel(void *context, size_t index, uint32_t worker)
{
    const pack_job *j = context;
    const locus_tensor *w = j->weight;
    const int64_t first = (int64_t)index * j->kernels->columns, inputs = w->shape[1];
    (void)worker;
    j->kernels->pack_right(j->panels + first * inputs, 0,
                           (const float *)w->data + first * w->stride[0], 1, w->stride[0], inputs,
                           locus_least(j->kernels->columns, w->shape[0] - first));
}

locus_packed locus_pack_weight(const locus_kernels *kernels, const locus_tensor *weight,
                               void *memory, uint32_t threads)
{
    pack_job j = {.kernels = kernels->linear, .weight = weight, .panels = line_start(memory)};
    locus_parallel_for(threads, (size_t)locus_blocks(weight->shape[0], j.kernels->columns),
                       pack_panel, &j);
    return (locus_packed){.kernels = kernels,
                          .inputs = weight->shape[1],
                          .outputs = weight->shape[0],
                          .panels = j.panels};
}

/* ---- forward ---- */

void locus_linear_forward(const locus_linear *f, const locus_row_batch *y, const locus_row_batch *x,
                          const locus_linear_end *end)
{
    product p = {.f = f, .to = *y, .left = *x};
    if (f->quantized != NULL) {
        locus_quantized_forward(f, y, x, end);
        return;
    }
    if (f->packed != NULL) {
        p.kind = RIGHT_PACKED;
        p.packed = f->packed->panels;
        p.inner = f->packed->inputs;
        p.columns = f->packed->outputs;
    } else {
        const locus_tensor *w = f->weight;
        p.kind = RIGHT_TURNED;
        p.right = (locus_row_batch){
            .data = w->data, .batches = 1, .rows = w->shape[0], .row_stride = w->stride[0]};
        p.inner = w->shape[1];
        p.columns = w->shape[0];
    }
    if (f->bias != NULL) p.bias = f->bias->data;
    if (end != NULL) p.end = *end;
    product_run(&p);
}
