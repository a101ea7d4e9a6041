/* SPDX-License-Identifier: Apache-2.0 */
#include "io/store.h"

#include <string.h>

#include "core/memory.h"

/* ---- arena ---- */

struct locus_arena_chunk {
    struct locus_arena_chunk *next;
    size_t used, size; /* bytes, this header included */
};

/* Requests above LARGE get a chunk of their own, so at most LARGE bytes of a chunk
 * are wasted when the next request does not fit. */
enum { CHUNK = 32768, LARGE = 4608 };

static struct locus_arena_chunk *new_chunk(locus_arena *arena, size_t size)
{
    struct locus_arena_chunk *chunk = locus_allocate(arena->allocator, size, 1);
    if (chunk == NULL) return NULL;
    chunk->used = sizeof *chunk;
    chunk->size = size;
    return chunk;
}

static void *take_large(locus_arena *arena, size_t bytes)
{
    if (bytes > SIZE_MAX - sizeof(struct locus_arena_chunk)) return NULL;
    struct locus_arena_chunk *chunk = new_chunk(arena, sizeof *chunk + bytes);
    if (chunk == NULL) return NULL;
    chunk->used = chunk->size;
    if (arena->chunks == NULL) {
        arena->chunks = chunk;
    } else { /* behind the one that is still being filled */
        chunk->next = arena->chunks->next;
        arena->chunks->next = chunk;
    }
    return chunk + 1;
}

void *locus_arena_take(locus_arena *arena, size_t bytes, size_t align)
{
    if (bytes > LARGE) return take_large(arena, bytes);
    struct locus_arena_chunk *chunk = arena->chunks;
    size_t at = chunk == NULL ? 0 : (chunk->used + align - 1) & ~(align - 1);
    if (chunk == NULL || at > chunk->size || bytes > chunk->size - at) {
        chunk = new_chunk(arena, CHUNK);
        if (chunk == NULL) return NULL;
        chunk->next = arena->chunks;
        arena->chunks = chunk;
        at = (chunk->used + align - 1) & ~(align - 1);
    }
    chunk->used = at + bytes;
    return (unsigned char *)chunk + at;
}

char *locus_arena_copy(locus_arena *arena, const char *text, size_t bytes)
{
    if (bytes == SIZE_MAX) return NULL;
    char *copy = locus_arena_take(arena, bytes + 1, 1);
    if (copy != NULL && bytes > 0) memcpy(copy, text, bytes);
    return copy;
}

void locus_arena_clear(locus_arena *arena)
{
    for (struct locus_arena_chunk *chunk = arena->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        locus_release(arena->allocator, chunk);
    }
    arena->chunks = NULL;
}

/* ---- list ---- */

void *locus_list_push(locus_list *list, const locus_allocator *allocator)
{
    const size_t chunk = list->count / LOCUS_LIST_CHUNK;
    if (list->count == LOCUS_LIST_MAX) return NULL;
    if (list->chunk[chunk] == NULL) {
        list->chunk[chunk] = locus_allocate(allocator, LOCUS_LIST_CHUNK, list->item_bytes);
        if (list->chunk[chunk] == NULL) return NULL;
    }
    return locus_list_at(list, list->count++);
}

void *locus_list_at(const locus_list *list, size_t index)
{
    return list->chunk[index / LOCUS_LIST_CHUNK] + index % LOCUS_LIST_CHUNK * list->item_bytes;
}

void locus_list_clear(locus_list *list, const locus_allocator *allocator)
{
    for (size_t i = 0; i < LOCUS_LIST_MAX / LOCUS_LIST_CHUNK; i++) {
        locus_release(allocator, list->chunk[i]);
        list->chunk[i] = NULL;
    }
    list->count = 0;
}
