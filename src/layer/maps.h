/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAYER_MAPS_H
#define LOCUS_LAYER_MAPS_H

/* The linear maps of a layer, y = x W^T + b, whose tensors may each be F32, F16 or BF16.
 *
 * Floats are multiplied where they are, by nn/linear.h. Where a tensor is of half precision, the
 * product is cut into blocks of LOCUS_LAYER_BLOCK rows of x and of W, whose halves become floats in
 * a room of that size; results that are halves are summed there and rounded once. A block is a
 * multiple of what the products sum at a time, so every result has the bits of the same product on
 * floats, rounded. No tensor is copied as a whole. */

#include <locus/tensor.h>

#include "core/carve.h"
#include "nn/linear.h"

/* A multiple of the `inner` of every kernel table, and of the rows that gradients of biases are
 * summed by. */
#define LOCUS_LAYER_BLOCK 512

/* Row t of batch b begins b * batch_stride + t * row_stride numbers behind `data`. */
typedef struct layer_matrix {
    void *data;
    locus_dtype type;
    int64_t batches, rows, width;
    int64_t batch_stride, row_stride;
} layer_matrix;

/* Backward, y stands for its gradient. */
typedef struct layer_map {
    const locus_tensor *weight; /* [outputs, inputs]       */
    const locus_tensor *bias;   /* [outputs]; NULL: none   */
    layer_matrix x, y;          /* as many rows            */
} layer_map;

/* Who multiplies, and where blocks of x, W, y and b, or of their gradients, are floats. */
typedef struct layer_multiplier {
    const locus_kernels *kernels;
    uint32_t threads;
    size_t second_cache;
    void *workspace; /* of linear maps */
    float *x, *w, *y, *b;
} layer_multiplier;

/* The greatest extents of the maps. Without `halves`, y alone may be of half precision, forward or
 * backward, and then x and its gradient are rows side by side. */
typedef struct layer_extents {
    int64_t rows, width; /* width: of inputs and of outputs */
    int halves;
} layer_extents;

/* Lay the rooms and the workspace out; kernels, threads and second_cache are set. */
void locus_layer_carve_multiplier(locus_carver *c, const layer_extents *extents,
                                  layer_multiplier *m);

/* Rows of any type side by side as floats, and back. `width` floats from one to the next. */
void locus_layer_load(const locus_kernels *kernels, float *to, const layer_matrix *from,
                      int64_t row, int64_t count);
void locus_layer_store(const locus_kernels *kernels, const layer_matrix *to, const float *from,
                       int64_t row, int64_t count);

void locus_layer_map_forward(const layer_multiplier *m, const layer_map *map);

/* Gradients that several maps have a part in, added in their order; `add`: to what is there. */
void locus_layer_source_gradient(const layer_multiplier *m, const layer_map *maps, size_t count,
                                 const layer_matrix *dx, int add);
void locus_layer_weight_gradient(const layer_multiplier *m, const layer_map *maps, size_t count,
                                 const locus_tensor *dw, int add);
void locus_layer_bias_gradient(const layer_multiplier *m, const layer_map *maps, size_t count,
                               const locus_tensor *db, int add);

#endif
