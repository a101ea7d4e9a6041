/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_SIZE_H
#define LOCUS_CORE_SIZE_H

/* Checked arithmetic on sizes. Numbers that come from a file or a caller are
 * added, multiplied and padded here and nowhere else: each function returns 0
 * and leaves *out alone when the result does not fit, 1 otherwise. */

#include <stddef.h>
#include <stdint.h>

static inline int locus_add_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    if (a > UINT64_MAX - b) return 0;
    *out = a + b;
    return 1;
}

static inline int locus_mul_u64(uint64_t *out, uint64_t a, uint64_t b)
{
    if (b != 0 && a > UINT64_MAX / b) return 0;
    *out = a * b;
    return 1;
}

/* The least multiple of `step` (a power of two) that is not below a. */
static inline int locus_pad_u64(uint64_t *out, uint64_t a, uint64_t step)
{
    if (a > UINT64_MAX - (step - 1)) return 0;
    *out = (a + (step - 1)) & ~(step - 1);
    return 1;
}

/* Product of `count` extents. An overflow anywhere fails, even beside a zero. */
static inline int locus_product_u64(uint64_t *out, const uint64_t *extents, size_t count)
{
    uint64_t product = 1, partial = 1;
    for (size_t i = 0; i < count; i++) {
        if (extents[i] != 0 && !locus_mul_u64(&partial, partial, extents[i])) return 0;
        product = extents[i] == 0 ? 0 : product;
    }
    *out = product == 0 ? 0 : partial;
    return 1;
}

/* As a size_t of this machine. SIZE_LIMIT is lowered by the tests' 32-bit build. */
#ifndef LOCUS_SIZE_LIMIT
#define LOCUS_SIZE_LIMIT SIZE_MAX
#endif
static inline int locus_to_size(size_t *out, uint64_t a)
{
    if (a > LOCUS_SIZE_LIMIT) return 0;
    *out = (size_t)a;
    return 1;
}

#endif
