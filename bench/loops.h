/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_LOOPS_H
#define BENCH_LOOPS_H

/* Vector loops of the benchmark, once per instruction set (bench/isa): the limits of the
 * machine, and the row work of the yardsticks. They use the vector vocabulary of the
 * kernels, so a yardstick never loses for want of a good loop. */

#include <stdint.h>

/* Which columns form a pair, and which way it turns. */
typedef struct bench_pairs {
    int64_t count;
    int interleaved; /* 1: columns 2t, 2t + 1; 0: t, t + count */
    int back;
} bench_pairs;

typedef struct bench_loops {
    const char *isa;
    double turn_flops; /* of one turn of fma */

    /* Multiply and add in registers, in enough independent chains. */
    float (*fma)(int64_t turns);
    float (*sum)(const float *x, int64_t n);

    void (*add)(float *y, const float *x, int64_t n);           /* y += x           */
    void (*axpy)(float *y, const float *x, float a, int64_t n); /* y += a x         */
    void (*shift)(float *y, float a, int64_t n);                /* y += a           */
    void (*scale)(float *y, float a, int64_t n);                /* y *= a           */
    float (*dot)(const float *x, const float *y, int64_t n);
    float (*greatest)(const float *x, int64_t n);
    /* y = e^(y - top); their sum. */
    float (*exps)(float *y, float top, int64_t n);
    /* dp = p (dp - delta): from the gradient of the weights to that of the scores. */
    void (*unsoftmax)(float *dp, const float *p, float delta, int64_t n);
    /* y[j] += x[map[j]] */
    void (*gather)(float *y, const float *x, const int32_t *map, int64_t n);
    /* y[map[j]] += x[j] */
    void (*scatter)(float *y, const float *x, const int32_t *map, int64_t n);
    /* Every pair (x0, x1) to (x0 c - x1 s, x1 c + x0 s), c and s by pair; back: with -s. */
    void (*turn)(float *y, const float *x, const float *c, const float *s, const bench_pairs *how);
} bench_loops;

/* The loops for a kernel table; NULL for a name without any. */
const bench_loops *bench_loops_find(const char *isa);

#endif
