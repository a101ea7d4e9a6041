/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_CARVE_H
#define LOCUS_CORE_CARVE_H

/* Lays pieces into one block, each a multiple of 64 bytes from its start, or only counts
 * where base is NULL, so that size and layout cannot disagree. Extents come from a caller's shapes, hence
 * the checked arithmetic: `failed` stays 1 once a size did not fit. */

#include "core/memory.h"
#include "core/size.h"

typedef struct locus_carver {
    char *base;
    uint64_t used;
    int failed;
} locus_carver;

static inline void *locus_carve(locus_carver *c, uint64_t bytes)
{
    const uint64_t at = c->used;
    uint64_t padded = 0;
    if (!locus_pad_u64(&padded, bytes, LOCUS_ALIGNMENT) || !locus_add_u64(&c->used, at, padded))
        c->failed = 1;
    return c->base != NULL && !c->failed ? c->base + at : NULL;
}

/* batches * rows * columns floats. */
static inline float *locus_carve_floats(locus_carver *c, int64_t batches, int64_t rows,
                                        int64_t columns)
{
    const uint64_t extents[] = {(uint64_t)batches, (uint64_t)rows, (uint64_t)columns,
                                sizeof(float)};
    uint64_t bytes = 0;
    if (!locus_product_u64(&bytes, extents, 4)) c->failed = 1;
    return locus_carve(c, bytes);
}

/* The size of the block. Returns 0 when it does not fit. */
static inline int locus_carved_bytes(const locus_carver *c, size_t *bytes)
{
    return !c->failed && locus_to_size(bytes, c->used);
}

#endif
