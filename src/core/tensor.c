/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor.h"

#include <string.h>

#include "core/adopt.h"
#include "core/error.h"

/* The field's number among the tensors of the struct. */
#define NUMBER(field)                                                                              \
    ((offsetof(locus_tensors, field) - offsetof(locus_tensors, q)) / sizeof(locus_tensor))
#define FIELD(field) [NUMBER(field)] = #field
static const char *const names[] = {
    FIELD(q),          FIELD(k),        FIELD(v),           FIELD(rel_k),       FIELD(rel_q),
    FIELD(rel_v),      FIELD(u),        FIELD(w),           FIELD(bias),        FIELD(pos_q),
    FIELD(pos_k),      FIELD(cls),      FIELD(slopes),      FIELD(a),           FIELD(p),
    FIELD(bias_dense), FIELD(key_mask), FIELD(mask),        FIELD(sink),        FIELD(q_offsets),
    FIELD(k_offsets),  FIELD(rows),     FIELD(frequencies), FIELD(q_positions), FIELD(k_positions),
    FIELD(x),          FIELD(memory),   FIELD(w_q),         FIELD(w_k),         FIELD(w_v),
    FIELD(b_q),        FIELD(b_k),      FIELD(b_v),         FIELD(w_o),         FIELD(b_o),
    FIELD(pos),        FIELD(rel),      FIELD(w_r),         FIELD(w_pq),        FIELD(w_pk),
    FIELD(b_pq),       FIELD(b_pk),     FIELD(w_rk),        FIELD(w_rq),        FIELD(b_rk),
    FIELD(b_rq),
};
static const char *const later_names[] = {"pos_query", "gate", "b_r",
                                          "log_gate",  "w_f",  "b_f"}; /* fields behind `own` */
enum {
    NAMES = sizeof names / sizeof *names,
    LATER_NAMES = sizeof later_names / sizeof *later_names,
    FIRST_LATER = NUMBER(own) + LOCUS_OWN_TENSORS
};
_Static_assert(NAMES == NUMBER(own) && FIRST_LATER == NUMBER(pos_query) &&
                   FIRST_LATER + LATER_NAMES == LOCUS_TENSOR_COUNT,
               "one name per field");
_Static_assert(sizeof(locus_tensors) ==
                   offsetof(locus_tensors, q) + LOCUS_TENSOR_COUNT * sizeof(locus_tensor),
               "tensors only");

const char *locus_field_name(size_t index)
{
    if (index < NAMES) return names[index];
    const int is_later = index >= FIRST_LATER && index < LOCUS_TENSOR_COUNT;
    return is_later ? later_names[index - FIRST_LATER] : NULL;
}

/* 1 when a struct of `size` bytes holds tensor `index`. */
static int holds(uint32_t size, size_t index)
{
    return index < LOCUS_TENSOR_COUNT &&
           offsetof(locus_tensors, q) + (index + 1) * sizeof(locus_tensor) <= size;
}

locus_tensor *locus_tensor_at(locus_tensors *tensors, size_t index)
{
    return holds(tensors->size, index) ? &tensors->q + index : NULL;
}

const locus_tensor *locus_tensor_at_const(const locus_tensors *tensors, size_t index)
{
    return holds(tensors->size, index) ? &tensors->q + index : NULL;
}

/* Whole tensors only: one that is cut would be read as garbage. */
static locus_status check_whole(uint32_t size, const char *name, locus_error *error)
{
    const size_t first = offsetof(locus_tensors, q);
    if (size >= first && (size - first) % sizeof(locus_tensor) == 0) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_ARGUMENT,
                      "%s: found size %u, expected the sizeof of the struct", name, (unsigned)size);
}

locus_status locus_adopt_tensors(const locus_tensors **tensors, locus_tensors *copy,
                                 const char *name, locus_error *error)
{
    if ((*tensors)->size == sizeof *copy) return LOCUS_OK;
    LOCUS_TRY(check_whole((*tensors)->size, name, error));
    memset(copy, 0, sizeof *copy);
    LOCUS_ADOPT(*tensors, *copy, name, error);
    return LOCUS_OK;
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

static const struct {
    const char *name;
    size_t bytes;
} types[] = {
    [LOCUS_F32] = {"F32", 4}, [LOCUS_F64] = {"F64", 8}, [LOCUS_U8] = {"U8", 1},
    [LOCUS_I64] = {"I64", 8}, [LOCUS_F16] = {"F16", 2}, [LOCUS_BF16] = {"BF16", 2},
};
enum { TYPES = sizeof types / sizeof *types };

const char *locus_dtype_name(locus_dtype dtype)
{
    return (size_t)dtype < TYPES ? types[dtype].name : NULL;
}

size_t locus_dtype_bytes(locus_dtype dtype)
{
    return (size_t)dtype < TYPES ? types[dtype].bytes : 0;
}

const char *locus_types_text(uint32_t set)
{
    switch (set) {
    case LOCUS_TYPES_FLOAT: return "F32";
    case LOCUS_TYPES_ANY_FLOAT: return "F32, F16 or BF16";
    case 1u << LOCUS_F16: return "F16";
    case 1u << LOCUS_BF16: return "BF16";
    case 1u << LOCUS_U8: return "U8";
    default: return "I64";
    }
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
