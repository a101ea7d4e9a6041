/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_OPERATORS_H
#define BENCH_OPERATORS_H

/* The operators of src/nn beside linear maps, each next to the loop that one writes down, compiled
 * with the flags of the library. */

#include <stddef.h>
#include <stdint.h>

/* Numbers that all operators share: rows of `width`. */
typedef struct operator_pool {
    int64_t rows, width;
    float *x, *gate, *dy, *to, *plain; /* [rows][width] */
    float *row, *parameters;           /* [4 width], [32][width] */
    int32_t *id;
    void *workspace;
} operator_pool;

/* 0: no memory; free it all the same. */
int operator_pool_new(operator_pool *pool, int64_t rows, int64_t width);
void operator_pool_free(operator_pool *pool);

/* The name of operator `which`, "layer norm"; NULL beyond the last one. */
const char *operator_name(size_t which);

/* Bytes of the rows that one call reads and writes. */
double operator_bytes(const operator_pool *pool, size_t which);

void operator_run(operator_pool *pool, size_t which, const char *isa, uint32_t threads);
void operator_run_plain(operator_pool *pool, size_t which);

/* The largest difference between what both wrote last, over the largest number or 1. */
double operator_difference(const operator_pool *pool);

#endif
