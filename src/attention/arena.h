/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_ARENA_H
#define LOCUS_ATTENTION_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "core/memory.h"

/* Carves a workspace into pieces of 64-byte alignment. With base NULL it only counts,
 * so one function both measures and lays out, and the two cannot disagree. */
typedef struct locus_arena {
    char *base;
    size_t used;
} locus_arena;

static inline void *locus_take(locus_arena *arena, int64_t count, size_t bytes)
{
    const size_t at = arena->used;
    arena->used += ((size_t)count * bytes + 63) / 64 * 64;
    return arena->base != NULL ? arena->base + at : NULL;
}

static inline float *locus_take_floats(locus_arena *arena, int64_t count)
{
    return locus_take(arena, count, sizeof(float));
}

/* NULL where the piece is not wanted. */
static inline float *locus_take_optional(locus_arena *arena, int wanted, int64_t count)
{
    return wanted ? locus_take_floats(arena, count) : NULL;
}
static inline uint8_t *locus_take_flags(locus_arena *arena, int wanted, int64_t count)
{
    return wanted ? (uint8_t *)locus_take(arena, count, 1) : NULL;
}

/* The first 64-byte boundary in a caller's workspace, which is LOCUS_ALIGN_ROOM bytes longer than
 * what is carved from it. */
#define LOCUS_ALIGN_ROOM (LOCUS_ALIGNMENT - LOCUS_CALLER_ALIGNMENT)
static inline char *locus_align(void *workspace)
{
    return (char *)workspace + (64 - (uintptr_t)workspace % 64) % 64;
}

#endif
