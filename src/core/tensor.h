/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_TENSOR_H
#define LOCUS_CORE_TENSOR_H

#include <locus/tensor.h>

static inline int locus_present(const locus_tensor *t) { return t->rank != 0; }

/* Element offset of [i][j][k][l]; unused trailing indices are 0. */
static inline int64_t locus_offset(const locus_tensor *t, int64_t i, int64_t j, int64_t k,
                                   int64_t l)
{
    return i * t->stride[0] + (t->rank > 1 ? j * t->stride[1] : 0) +
           (t->rank > 2 ? k * t->stride[2] : 0) + (t->rank > 3 ? l * t->stride[3] : 0);
}

/* One element as a double, whatever the type. */
static inline double locus_get(const locus_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l)
{
    const int64_t at = locus_offset(t, i, j, k, l);
    if (t->dtype == LOCUS_F32) return (double)((const float *)t->data)[at];
    if (t->dtype == LOCUS_F64) return ((const double *)t->data)[at];
    return (double)((const uint8_t *)t->data)[at];
}

/* Pointer to the F32 element [i][j][k][0]. */
static inline float *locus_f32(const locus_tensor *t, int64_t i, int64_t j, int64_t k)
{
    return (float *)t->data + locus_offset(t, i, j, k, 0);
}

/* Stride of axis `axis` for reading with broadcasting: 0 where the extent is 1. */
static inline int64_t locus_broadcast_stride(const locus_tensor *t, uint32_t axis)
{
    return t->shape[axis] == 1 ? 0 : t->stride[axis];
}

size_t locus_dtype_bytes(locus_dtype dtype);

int locus_same_shape(const locus_tensor *a, const locus_tensor *b);

/* 1 where no stride is negative and the last axis of numbers is dense (masks may have any). */
int locus_strides_fit(const locus_tensor *t);

/* 1 when the memory of two views may share a byte (by address range). */
int locus_tensors_overlap(const locus_tensor *a, const locus_tensor *b);

/* 1 when elements of one view may share memory: an axis with a stride of 0, or rows that are wider
 * than the step from one to the next. Axes must nest: each step reaches past everything that the axes
 * with smaller steps cover. */
int locus_overlaps_itself(const locus_tensor *t);

#endif
