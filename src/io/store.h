/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_STORE_H
#define LOCUS_IO_STORE_H

/* Where the parts of a header are kept. Nothing here is ever copied to grow, so the
 * peak is what is stored plus one unfinished chunk: the reader's bound of 4 x header
 * bytes + 256 KiB rests on that. All memory is zeroed. */

#include <locus/status.h>

/* Bytes that live as long as the arena. */
typedef struct locus_arena {
    const locus_allocator *allocator;
    struct locus_arena_chunk *chunks; /* the newest small one first */
} locus_arena;

/* `align` is a power of two, at most 16. NULL: no memory. */
void *locus_arena_take(locus_arena *arena, size_t bytes, size_t align);
char *locus_arena_copy(locus_arena *arena, const char *text, size_t bytes); /* adds a NUL */
void locus_arena_clear(locus_arena *arena);

#define LOCUS_LIST_CHUNK ((size_t)1024)
#define LOCUS_LIST_MAX ((size_t)1024 * LOCUS_LIST_CHUNK)

/* A list of equal items that do not move. */
typedef struct locus_list {
    size_t item_bytes, count;
    unsigned char *chunk[LOCUS_LIST_MAX / LOCUS_LIST_CHUNK];
} locus_list;

/* Room for one more, or NULL: no memory, or LOCUS_LIST_MAX items are there. */
void *locus_list_push(locus_list *list, const locus_allocator *allocator);
void *locus_list_at(const locus_list *list, size_t index); /* index < count */
void locus_list_clear(locus_list *list, const locus_allocator *allocator);

#endif
