/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor.h"

#include <string.h>

/* In the order of the struct; the assertion below keeps the two in step. */
static const char *const names[] = {
    "q",     "k",    "v",      "rel_k", "rel_q", "rel_v",      "u",        "w",    "bias", "pos_q",
    "pos_k", "cls",  "slopes", "a",     "p",     "bias_dense", "key_mask", "mask", "x",    "memory",
    "w_q",   "w_k",  "w_v",    "b_q",   "b_k",   "b_v",        "w_o",      "b_o",  "pos",  "rel",
    "w_r",   "w_pq", "w_pk",   "b_pq",  "b_pk",  "w_rk",       "w_rq",     "b_rk", "b_rq",
};
_Static_assert(sizeof names / sizeof *names == LOCUS_TENSOR_COUNT, "one name per tensor");
_Static_assert(sizeof(locus_tensors) % sizeof(locus_tensor) == 0, "tensors only");
_Static_assert(offsetof(locus_tensors, x) == 18 * sizeof(locus_tensor), "order of names");

const char *locus_tensor_name(size_t index)
{
    return index < LOCUS_TENSOR_COUNT ? names[index] : NULL;
}

int locus_tensor_index(const char *name)
{
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++)
        if (strcmp(names[i], name) == 0) return (int)i;
    return -1;
}

locus_tensor *locus_tensor_at(locus_tensors *tensors, size_t index)
{
    if (index >= LOCUS_TENSOR_COUNT) return NULL;
    return (locus_tensor *)(void *)((char *)tensors + index * sizeof(locus_tensor));
}

const locus_tensor *locus_tensor_at_const(const locus_tensors *tensors, size_t index)
{
    if (index >= LOCUS_TENSOR_COUNT) return NULL;
    return (const locus_tensor *)(const void *)((const char *)tensors +
                                                index * sizeof(locus_tensor));
}

locus_tensor locus_view(void *data, locus_dtype dtype, uint32_t rank, const int64_t *shape)
{
    locus_tensor view = {.data = data, .dtype = dtype, .rank = rank};
    int64_t stride = 1;
    for (uint32_t i = rank; i-- > 0;) {
        view.shape[i] = shape[i];
        view.stride[i] = stride;
        stride *= shape[i];
    }
    return view;
}

locus_tensor locus_view_bhtd(float *data, int64_t B, int64_t H, int64_t T, int64_t D)
{
    return locus_view(data, LOCUS_F32, 4, (const int64_t[]){B, H, T, D});
}

locus_tensor locus_view_bthd(float *data, int64_t B, int64_t T, int64_t H, int64_t D)
{
    const locus_tensor view = {
        .data = data,
        .dtype = LOCUS_F32,
        .rank = 4,
        .shape = {B, H, T, D},
        .stride = {T * H * D, D, H * D, 1},
    };
    return view;
}

int64_t locus_tensor_elements(const locus_tensor *tensor)
{
    int64_t elements = tensor->rank == 0 ? 0 : 1;
    for (uint32_t i = 0; i < tensor->rank; i++) elements *= tensor->shape[i];
    return elements;
}

size_t locus_dtype_bytes(locus_dtype dtype)
{
    static const size_t bytes[] = {[LOCUS_F32] = 4, [LOCUS_F64] = 8, [LOCUS_U8] = 1};
    return bytes[dtype];
}

int locus_same_shape(const locus_tensor *a, const locus_tensor *b)
{
    if (a->rank != b->rank) return 0;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i]) return 0;
    return 1;
}

int locus_strides_fit(const locus_tensor *t)
{
    for (uint32_t i = 0; i < t->rank; i++)
        if (t->stride[i] < 0) return 0;
    return t->dtype == LOCUS_U8 || t->shape[t->rank - 1] <= 1 || t->stride[t->rank - 1] == 1;
}

int locus_overlaps_itself(const locus_tensor *t)
{
    uint32_t left = (1u << t->rank) - 1; /* axes, as bits */
    int64_t covered = 1;                 /* elements from the first to the last of the axes done */
    if (locus_tensor_elements(t) == 0) return 0;
    while (left != 0) {
        uint32_t least = LOCUS_MAX_RANK;
        for (uint32_t i = 0; i < t->rank; i++)
            if ((left >> i & 1) && (least == LOCUS_MAX_RANK || t->stride[i] < t->stride[least]))
                least = i;
        left &= ~(1u << least);
        if (t->shape[least] == 1) continue;
        if (t->stride[least] < covered) return 1;
        covered += (t->shape[least] - 1) * t->stride[least];
    }
    return 0;
}

/* Address of the first byte and one past the last byte that a view touches. */
static void address_range(const locus_tensor *t, uintptr_t *first, uintptr_t *past)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < t->rank; i++) last += (t->shape[i] - 1) * t->stride[i];
    *first = (uintptr_t)t->data;
    *past = *first + (uintptr_t)(last + 1) * locus_dtype_bytes(t->dtype);
}

int locus_tensors_overlap(const locus_tensor *a, const locus_tensor *b)
{
    if (locus_tensor_elements(a) == 0 || locus_tensor_elements(b) == 0) return 0;
    uintptr_t a_first, a_past, b_first, b_past;
    address_range(a, &a_first, &a_past);
    address_range(b, &b_first, &b_past);
    return a_first < b_past && b_first < a_past;
}
