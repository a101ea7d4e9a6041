/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BENCH_HALVES_H
#define BENCH_HALVES_H

/* Numbers of half precision, for lines that are measured on them. */

#include <locus/tensor.h>

/* Turn a dense F32 tensor into one of F16 or BF16, in the same memory. */
void bench_narrow(locus_tensor *tensor, locus_dtype dtype);

/* Element `at` of an F32, F16 or BF16 tensor. */
double bench_number(const locus_tensor *tensor, int64_t at);

#endif
