/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_BUFFER_H
#define LOCUS_TEXT_BUFFER_H

/* Text that remembers where it came from. Every byte of a buffer belongs to one character of
 * the source text; `origin` holds the offset of that character. While each character of the
 * buffer begins at the same distance from its source character, no array is kept. */

#include <locus/text.h>

#include "text/unicode.h"

locus_status locus_text_no_memory(locus_error *error);

/* Memory that grows, for items of any size: set `count` to 0 before it is used for others. */
typedef struct text_array {
    void *data;
    size_t count;    /* items */
    size_t capacity; /* bytes */
} text_array;

/* Room for `count` items in all. 0: no memory. Contents are kept. */
int locus_text_array_reserve(text_array *array, const locus_allocator *allocator, size_t count,
                             size_t item_bytes);
void locus_text_array_free(text_array *array, const locus_allocator *allocator);

typedef struct text_buffer {
    const locus_allocator *allocator;
    char *data;
    uint32_t *origin;   /* of each byte, if mapped                              */
    size_t bytes;       /* used                                                 */
    size_t capacity;    /* of both arrays                                       */
    size_t most;        /* bytes it may have, 0: LOCUS_TEXT_MAX_INPUT           */
    size_t shift;       /* not mapped: the source offset of byte 0              */
    int mapped, failed; /* failed: memory ran out, and what was added is lost   */
    int too_long;       /* ... or it would have more than `most`                */
} text_buffer;

/* A text may grow while it is rewritten: to so many bytes for each, and some more. */
#define TEXT_MAX_GROWTH ((size_t)256)
#define TEXT_MOST_GROWN ((size_t)1 << 20)

void locus_text_buffer_free(text_buffer *buffer);
/* Bytes that rewriting `bytes` of a text may give. */
void locus_text_buffer_limit(text_buffer *buffer, size_t bytes);
/* Why the buffer failed: it is too long, or there is no memory. */
locus_status locus_text_buffer_failure(const text_buffer *buffer, locus_error *error);
/* Empty it. Its first character will come from source offset `shift`, as a rule. */
void locus_text_buffer_clear(text_buffer *buffer, size_t shift);
int locus_text_buffer_reserve(text_buffer *buffer, size_t bytes);

/* Add one character that comes from the source character at `origin`. */
void locus_text_buffer_add(text_buffer *buffer, uint32_t code, size_t origin);
/* Add bytes [from, to) of `input` with their origins. */
void locus_text_buffer_copy(text_buffer *buffer, const text_buffer *input, size_t from, size_t to);

/* Source offset of the character that byte `at` belongs to. */
static inline size_t text_origin(const text_buffer *buffer, size_t at)
{
    if (buffer->mapped) return buffer->origin[at];
    while (at > 0 && utf8_continues(buffer->data[at])) at--;
    return buffer->shift + at;
}

/* A text as UTF-8 that is well formed: each maximal wrong part becomes U+FFFD, as Python's
 * decode(errors="replace") does it. */
typedef struct text_source {
    const locus_allocator *allocator;
    const char *text; /* the caller's text, or `owned` */
    size_t bytes;
    text_array owned;    /* char                                                        */
    text_array replaced; /* text_replacement, ascending                                 */
} text_source;

typedef struct text_replacement {
    uint32_t at;    /* of the U+FFFD in `text`             */
    uint32_t given; /* offset of what it replaces          */
    uint32_t bytes; /* of what it replaces                 */
} text_replacement;

locus_status locus_text_source_set(text_source *source, const char *text, size_t bytes,
                                   locus_error *error);
void locus_text_source_free(text_source *source);

/* The offset in the text as it was given. */
uint64_t locus_text_source_offset(const text_source *source, size_t at);

#endif
