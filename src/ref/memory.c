/* SPDX-License-Identifier: Apache-2.0 */
#include "core/memory.h"

#include <stddef.h>

#include "core/size.h"
#include "core/tensor.h"
#include "ref/ref.h"

void *locus_ref_take(ref_memory *memory, int64_t a, int64_t b, size_t bytes)
{
    const uint64_t extents[] = {(uint64_t)a, (uint64_t)b, bytes};
    uint64_t total = 0;
    size_t size = 0;
    char *block = NULL;
    if (locus_product_u64(&total, extents, 3) && locus_add_u64(&total, total, LOCUS_ALIGNMENT) &&
        locus_to_size(&size, total))
        block = locus_allocate(memory->allocator, size, 1);
    if (block == NULL) {
        memory->failed = 1;
        return NULL;
    }
    *(void **)(void *)block = memory->newest;
    memory->newest = block;
    return block + LOCUS_ALIGNMENT;
}

void locus_ref_release(ref_memory *memory)
{
    while (memory->newest != NULL) {
        void *block = memory->newest;
        memory->newest = *(void **)block;
        locus_release(memory->allocator, block);
    }
}

double *locus_ref_at(const locus_tensor *t, int64_t i, int64_t j, int64_t k)
{
    return locus_present(t) ? (double *)t->data + locus_offset(t, i, j, k, 0) : NULL;
}

locus_tensor locus_ref_widen(ref_memory *memory, const locus_tensor *from)
{
    if (!locus_present(from) || !locus_is_floating(from->dtype) || from->dtype == LOCUS_F64)
        return *from;
    const int64_t extent[4] = {
        from->shape[0],
        from->rank > 1 ? from->shape[1] : 1,
        from->rank > 2 ? from->shape[2] : 1,
        from->rank > 3 ? from->shape[3] : 1,
    };
    double *copy =
        locus_ref_take(memory, extent[0] * extent[1], extent[2] * extent[3], sizeof(double));
    double *next = copy;
    for (int64_t i = 0; copy != NULL && i < extent[0]; i++)
        for (int64_t j = 0; j < extent[1]; j++)
            for (int64_t k = 0; k < extent[2]; k++)
                for (int64_t l = 0; l < extent[3]; l++) *next++ = locus_get(from, i, j, k, l);
    return locus_view(copy, LOCUS_F64, from->rank, from->shape);
}

/* Four sums side by side: one alone would wait for its own last addition. */
double locus_ref_dot(const double *a, const double *b, int64_t count)
{
    double sum[4] = {0.0, 0.0, 0.0, 0.0};
    int64_t d = 0;
    for (; d + 4 <= count; d += 4)
        for (int lane = 0; lane < 4; lane++) sum[lane] += a[d + lane] * b[d + lane];
    for (; d < count; d++) sum[0] += a[d] * b[d];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

void locus_ref_add(double *to, double factor, const double *from, int64_t count)
{
    if (to == NULL) return;
    for (int64_t d = 0; d < count; d++) to[d] += factor * from[d];
}
