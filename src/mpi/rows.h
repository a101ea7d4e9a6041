/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MPI_ROWS_H
#define LOCUS_MPI_ROWS_H

/* Some rows of a tensor: as a view, as a dense copy, added back. Absent tensors stay absent. */

#include <locus/tensor.h>

/* The view of indices [first, first + count) of axis `axis`. */
locus_tensor ring_rows_of(const locus_tensor *t, uint32_t axis, int64_t first, int64_t count);

/* A dense tensor of the shape of t, but with `count` on axis `axis`, in `memory`. */
locus_tensor ring_dense_like(const locus_tensor *t, locus_dtype dtype, uint32_t axis, int64_t count,
                             void *memory);
size_t ring_dense_bytes(const locus_tensor *t, locus_dtype dtype, uint32_t axis, int64_t count);

/* Element by element, all of one shape: to = from (one dtype), to += from, to = 0 (both F32). */
void ring_copy(const locus_tensor *to, const locus_tensor *from);
void ring_add(const locus_tensor *to, const locus_tensor *from);
void ring_zero(const locus_tensor *to);

#endif
