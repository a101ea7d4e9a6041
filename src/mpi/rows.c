/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/rows.h"

#include <string.h>

#include "core/tensor.h"

locus_tensor ring_rows_of(const locus_tensor *t, uint32_t axis, int64_t first, int64_t count)
{
    locus_tensor some = *t;
    if (!locus_present(t)) return some;
    if (t->data != NULL)
        some.data =
            (char *)t->data + (size_t)(first * t->stride[axis]) * locus_dtype_bytes(t->dtype);
    some.shape[axis] = count;
    return some;
}

locus_tensor ring_dense_like(const locus_tensor *t, locus_dtype dtype, uint32_t axis, int64_t count,
                             void *memory)
{
    int64_t shape[LOCUS_MAX_RANK];
    if (!locus_present(t)) return *t;
    memcpy(shape, t->shape, sizeof shape);
    shape[axis] = count;
    return locus_view(memory, dtype, t->rank, shape);
}

size_t ring_dense_bytes(const locus_tensor *t, locus_dtype dtype, uint32_t axis, int64_t count)
{
    const locus_tensor dense = ring_dense_like(t, dtype, axis, count, NULL);
    return (size_t)locus_tensor_elements(&dense) * locus_dtype_bytes(dtype);
}

/* A line of `count` elements; strides in elements. */
typedef void (*line_operation)(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                               int64_t count, size_t bytes);

static void copy_line(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                      int64_t count, size_t bytes)
{
    if (to_stride == 1 && from_stride == 1) {
        memcpy(to, from, (size_t)count * bytes);
        return;
    }
    for (int64_t i = 0; i < count; i++)
        memcpy(to + (size_t)(i * to_stride) * bytes, from + (size_t)(i * from_stride) * bytes,
               bytes);
}

static void add_line(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                     int64_t count, size_t bytes)
{
    float *y = (float *)(void *)to;
    const float *x = (const float *)(const void *)from;
    (void)bytes;
    for (int64_t i = 0; i < count; i++) y[i * to_stride] += x[i * from_stride];
}

static void zero_line(char *to, int64_t to_stride, const char *from, int64_t from_stride,
                      int64_t count, size_t bytes)
{
    (void)from;
    (void)from_stride;
    for (int64_t i = 0; i < count; i++) memset(to + (size_t)(i * to_stride) * bytes, 0, bytes);
}

static void walk(const locus_tensor *to, const locus_tensor *from, line_operation operation)
{
    const uint32_t last = to->rank - 1;
    const size_t bytes = locus_dtype_bytes(to->dtype);
    int64_t extent[LOCUS_MAX_RANK - 1] = {1, 1, 1}, at[LOCUS_MAX_RANK] = {0};
    if (!locus_present(to) || locus_tensor_elements(to) == 0) return;
    for (uint32_t axis = 0; axis < last; axis++) extent[axis] = to->shape[axis];
    for (at[0] = 0; at[0] < extent[0]; at[0]++)
        for (at[1] = 0; at[1] < extent[1]; at[1]++)
            for (at[2] = 0; at[2] < extent[2]; at[2]++) {
                size_t to_at = 0, from_at = 0;
                for (uint32_t axis = 0; axis < last; axis++) {
                    to_at += (size_t)(at[axis] * to->stride[axis]);
                    from_at += (size_t)(at[axis] * from->stride[axis]);
                }
                operation((char *)to->data + to_at * bytes, to->stride[last],
                          (const char *)from->data + from_at * bytes, from->stride[last],
                          to->shape[last], bytes);
            }
}

void ring_copy(const locus_tensor *to, const locus_tensor *from) { walk(to, from, copy_line); }
void ring_add(const locus_tensor *to, const locus_tensor *from) { walk(to, from, add_line); }
void ring_zero(const locus_tensor *to) { walk(to, to, zero_line); }
