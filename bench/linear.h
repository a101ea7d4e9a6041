/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LINEAR_H
#define BENCH_LINEAR_H

/* The linear maps of src/nn beside sgemm: y = x W^T with W packed once, dx = dz W,
 * dW = dz^T x, on `rows` rows of x [rows, inputs] and W [outputs, inputs]. No bias and no
 * activation, since sgemm has none; ours would be free, its would be a pass over y. */

#include <stddef.h>
#include <stdint.h>

#include "bench/blas.h"

typedef enum linear_pass { LINEAR_FORWARD, LINEAR_INPUT_GRAD, LINEAR_WEIGHT_GRAD } linear_pass;
enum { LINEAR_PASSES = 3 };

typedef struct linear_case {
    linear_pass pass;
    int64_t rows, inputs, outputs;
    const char *isa;
    uint32_t threads;
    size_t second_cache; /* bytes */
} linear_case;

/* Numbers that all cases share, as large as the largest: they run one after the other. */
typedef struct linear_pool {
    float *x, *dz, *weight;
    float *packed, *to, *peer_to; /* to: y, dx or dW */
    void *workspace;
    linear_case packed_for;
} linear_pool;

/* 0: no memory; free it all the same. */
int linear_pool_new(linear_pool *pool, const linear_case *cases, size_t count);
void linear_pool_free(linear_pool *pool);

/* Bytes of the second cache of a core; 0: not known. */
size_t linear_second_cache(void);

double linear_flops(const linear_case *c);

/* Bytes beside the operands: workspace and packed weights. */
size_t linear_bytes(const linear_case *c);

void linear_prepare(linear_pool *pool, const linear_case *c); /* packs, where need be */
void linear_run(linear_pool *pool, const linear_case *c);
void linear_run_peer(linear_pool *pool, const linear_case *c, const blas *b);

/* The largest error of sampled entries of what ran last, against double: over the largest of
 * them, or over 1 if that is larger. */
double linear_error(const linear_pool *pool, const linear_case *c, int peer);

#endif
