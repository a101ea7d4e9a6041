/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_TENSOR_H
#define LOCUS_CORE_TENSOR_H

#include <locus/tensor.h>

#include "core/half.h"

static inline int locus_present(const locus_tensor *t) { return t->rank != 0; }

/* Element offset of [i][j][k][l]; unused trailing indices are 0. */
static inline int64_t locus_offset(const locus_tensor *t, int64_t i, int64_t j, int64_t k,
                                   int64_t l)
{
    return i * t->stride[0] + (t->rank > 1 ? j * t->stride[1] : 0) +
           (t->rank > 2 ? k * t->stride[2] : 0) + (t->rank > 3 ? l * t->stride[3] : 0);
}

/* One element as a double, whatever the type: exact, but for integers beyond 2^53. */
static inline double locus_get(const locus_tensor *t, int64_t i, int64_t j, int64_t k, int64_t l)
{
    const int64_t at = locus_offset(t, i, j, k, l);
    switch (t->dtype) {
    case LOCUS_F32: return (double)((const float *)t->data)[at];
    case LOCUS_F64: return ((const double *)t->data)[at];
    case LOCUS_U8: return (double)((const uint8_t *)t->data)[at];
    case LOCUS_I64: return (double)((const int64_t *)t->data)[at];
    case LOCUS_F16: return (double)locus_f16_to_float(((const uint16_t *)t->data)[at]);
    case LOCUS_BF16: return (double)locus_bf16_to_float(((const uint16_t *)t->data)[at]);
    }
    return 0.0;
}

/* Element i of a dense I64 tensor. */
static inline int64_t locus_whole(const locus_tensor *t, int64_t i)
{
    return ((const int64_t *)t->data)[i];
}

/* Set element `at` of an F32, F16 or BF16 tensor, rounded once. */
static inline void locus_put(const locus_tensor *t, int64_t at, float value)
{
    if (t->dtype == LOCUS_F16)
        ((uint16_t *)t->data)[at] = locus_float_to_f16(value);
    else if (t->dtype == LOCUS_BF16)
        ((uint16_t *)t->data)[at] = locus_float_to_bf16(value);
    else
        ((float *)t->data)[at] = value;
}

static inline int locus_is_half(const locus_tensor *t)
{
    return t->dtype == LOCUS_F16 || t->dtype == LOCUS_BF16;
}

/* Rows of an F32, F16 or BF16 tensor, strides in numbers. */
typedef struct locus_rows {
    void *data;
    int64_t stride;
    locus_dtype type;
} locus_rows;

/* From [i][j][k][0] on, along the last axis but one. */
static inline locus_rows locus_rows_at(const locus_tensor *t, int64_t i, int64_t j, int64_t k)
{
    const int64_t bytes = locus_is_half(t) ? 2 : 4;
    return (locus_rows){(char *)t->data + locus_offset(t, i, j, k, 0) * bytes,
                        t->stride[t->rank - 2], t->dtype};
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

/* 1 for the types that real numbers are stored in. */
static inline int locus_is_floating(locus_dtype dtype)
{
    return dtype == LOCUS_F32 || dtype == LOCUS_F64 || dtype == LOCUS_F16 || dtype == LOCUS_BF16;
}

/* Sets of types, 1 << each. */
enum {
    LOCUS_TYPES_FLOAT = 1u << LOCUS_F32,
    LOCUS_TYPES_ANY_FLOAT = 1u << LOCUS_F32 | 1u << LOCUS_F16 | 1u << LOCUS_BF16
};

/* "F32, F16 or BF16": a set as messages name it; of those that calls ask for. */
const char *locus_types_text(uint32_t set);

/* The types of a tensor of a call whose plan or layer was made for `wanted`: the same; shapes of
 * doubles stand for floats. */
static inline uint32_t locus_input_types(const locus_tensor *wanted)
{
    return 1u << (wanted->dtype == LOCUS_F64 ? LOCUS_F32 : wanted->dtype);
}

/* The types of its gradient: floats, and halves for what is of half precision. */
static inline uint32_t locus_gradient_types(const locus_tensor *wanted)
{
    return locus_is_half(wanted) ? LOCUS_TYPES_ANY_FLOAT : LOCUS_TYPES_FLOAT;
}

/* The name of field `index` of locus_tensors; NULL for those of `own`, which schemes name. */
const char *locus_field_name(size_t index);

/* Let *tensors point to `copy` where the caller's struct has another size; `name` is for the
 * message. */
locus_status locus_adopt_tensors(const locus_tensors **tensors, locus_tensors *copy,
                                 const char *name, locus_error *error);

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
