/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_NN_PRODUCT_H
#define LOCUS_NN_PRODUCT_H

/* C = A B by tasks: how the products of linear maps are cut into blocks for the caches and
 * shared by threads. None of this shows in the bits. */

#include "core/memory.h"
#include "nn/linear.h"
#include "nn/rows.h"

/* The first address from `memory` on where a cache line starts. */
static inline float *line_start(void *memory)
{
    return (float *)(((uintptr_t)memory + LOCUS_ALIGNMENT - 1) / LOCUS_ALIGNMENT * LOCUS_ALIGNMENT);
}

/* Row `index`, counted over batches. */
static inline float *row_of(const locus_row_batch *r, int64_t index)
{
    return r->data + index / r->rows * r->batch_stride + index % r->rows * r->row_stride;
}

typedef enum product_right {
    RIGHT_PACKED, /* right panels of all inner indices                                       */
    RIGHT_ROWS,   /* row j of `right` holds B[j]                                             */
    RIGHT_TURNED, /* row c of `right` holds the column c of B; one batch                     */
} product_right;

typedef struct product {
    const locus_linear *f;
    locus_row_batch to;   /* rows of C                                                        */
    locus_row_batch left; /* rows of A as those of C; or, left_turned, row j holds A[..][j]   */
    int left_turned;
    product_right kind;
    const float *packed;
    locus_row_batch right;
    int64_t inner, columns;
    int add; /* to what C holds */
    const float *bias;
    locus_linear_end end;
} product;

/* Floats that a worker packs operands into; those of worker w start at product_scratch. */
int64_t product_scratch_floats(const locus_linear *f);
float *product_scratch(const locus_linear *f, uint32_t worker);

void product_run(const product *p);

#endif
