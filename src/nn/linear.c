/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/linear.h"

#include "core/size.h"
#include "nn/tiles.h"

/* ---- packed weights ---- */

int locus_packed_bytes(uint64_t *bytes, int64_t inputs, int64_t outputs)
{
    uint64_t rows = 0, total = 0;
    if (!locus_pad_u64(&rows, (uint64_t)outputs, LOCUS_PANEL) ||
        !locus_product_u64(&total, (const uint64_t[]){rows, (uint64_t)inputs, sizeof(float)}, 3) ||
        !locus_add_u64(&total, total, LOCUS_ALIGNMENT))
        return 0;
    *bytes = total;
    return 1;
}

typedef struct pack_job {
    const locus_kernels *kernels;
    const locus_tensor *weight;
    float *panels;
} pack_job;

static void pack_panel(void *context, size_t index, uint32_t worker)
{
    const pack_job *j = context;
    const locus_tensor *w = j->weight;
    const int64_t first = (int64_t)index * LOCUS_PANEL, inputs = w->shape[1];
    (void)worker;
    j->kernels->pack(j->panels + locus_panel_at(first, inputs),
                     (const float *)w->data + first * w->stride[0], w->stride[0],
                     least(LOCUS_PANEL, w->shape[0] - first), inputs, 1.0f);
}

locus_packed locus_pack_weight(const locus_kernels *kernels, const locus_tensor *weight,
                               void *memory, uint32_t threads)
{
    pack_job j = {.kernels = kernels, .weight = weight, .panels = line_start(memory)};
    locus_parallel_for(threads, (size_t)blocks_of(weight->shape[0], LOCUS_PANEL), pack_panel, &j);
    return (locus_packed){.kernels = kernels,
                          .inputs = weight->shape[1],
                          .outputs = weight->shape[0],
                          .panels = j.panels};
}

/* ---- forward ---- */

static void forward_tile(void *context, size_t index, uint32_t worker)
{
    const locus_product *p = context;
    const locus_linear *f = p->f;
    int64_t column;
    locus_linear_tile t = tile_of(p, index, &column);
    (void)worker;
    t.a += p->first;
    t.panels = p->packed + locus_panel_at(column, p->inner);
    t.width = p->inner;
    t.first = p->first;
    t.inner = p->past - p->first;
    t.resume = p->first > 0;
    t.bias = f->bias != NULL ? (const float *)f->bias->data + column : NULL;
    if (p->past == p->inner)
        t.activation = f->activation;
    else
        t.residual = NULL;
    f->kernels->linear(&t);
}

void locus_linear_forward(const locus_linear *f, const locus_row_batch *y, const locus_row_batch *x,
                          const locus_row_batch *residual)
{
    if (y->rows == 0 || y->batches == 0) return;
    const locus_packed w = f->packed != NULL
                               ? *f->packed
                               : locus_pack_weight(f->kernels, f->weight, f->workspace, f->threads);
    locus_product p = new_product(f, y, w.outputs, x, w.inputs, residual, TASK_ROWS, LOCUS_PANEL);
    p.packed = w.panels;
    do {
        p.first = p.past;
        p.past = least(p.first + ROUND_INPUTS, p.inner);
        run_product(&p, forward_tile);
    } while (p.past < p.inner);
}
