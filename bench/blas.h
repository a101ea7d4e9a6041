/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_BLAS_H
#define BENCH_BLAS_H

/* OpenBLAS, looked for when the benchmark runs: nothing of ours is linked against it. */

typedef struct blas {
    void *library;
    void (*gemm)(int order, int turn_a, int turn_b, int m, int n, int k, float alpha,
                 const float *a, int lda, const float *b, int ldb, float beta, float *c, int ldc);
    char version[32]; /* "OpenBLAS 0.3.21"                                        */
    char core[32];    /* the kernels it uses                                      */
    char chosen[32];  /* those it would have used had we not set OPENBLAS_CORETYPE */
} blas;

/* Load it for one thread. Where it does not know this CPU and falls back to kernels of an
 * older one, it is told better: `isa` is the best kernel table of ours. 0: it is not here. */
int blas_open(blas *b, const char *isa);
void blas_close(blas *b);

/* c = alpha a b + beta c, row-major: a [m,k], b [k,n], or turned: a [k,m], b [n,k]. */
enum { BLAS_AS_IS = 111, BLAS_TURNED = 112, BLAS_ROWS = 101 };

#endif
