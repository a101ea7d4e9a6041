/* SPDX-License-Identifier: Apache-2.0 */
/* Where results go: working memory, tokens as they are found, what is read at the end. */
#include "core/error.h"
#include "core/memory.h"
#include "text/tokenizer.h"

locus_status locus_encoding_new(locus_encoding **encoding, const locus_allocator *allocator,
                                locus_error *error)
{
    if (encoding == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_encoding_new: NULL argument");
    *encoding = NULL;
    locus_encoding *e = locus_allocate(allocator, 1, sizeof *e);
    if (e == NULL) return locus_text_no_memory(error);
    e->allocator = allocator;
    for (size_t i = 0; i < 2; i++) e->source[i].allocator = allocator;
    for (size_t i = 0; i < 4; i++) e->buffer[i].allocator = allocator;
    *encoding = e;
    return LOCUS_OK;
}

void locus_encoding_free(locus_encoding *encoding)
{
    if (encoding == NULL) return;
    locus_encoding *e = encoding;
    text_array *arrays[] = {&e->tokens[0], &e->tokens[1], &e->spans[0], &e->spans[1], &e->sets,
                            &e->matches,   &e->nodes,     &e->heap,     &e->pieces,   &e->ids,
                            &e->types,     &e->offsets,   &e->segments};
    for (size_t i = 0; i < 2; i++) locus_text_source_free(&e->source[i]);
    for (size_t i = 0; i < 4; i++) locus_text_buffer_free(&e->buffer[i]);
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        locus_text_array_free(arrays[i], e->allocator);
    locus_release(e->allocator, e);
}

int locus_text_emit(locus_encoding *e, const text_buffer *buffer, uint32_t id, size_t from,
                    size_t to)
{
    text_array *tokens = &e->tokens[e->segment];
    if (!locus_text_array_reserve(tokens, e->allocator, tokens->count + 1, sizeof(text_token)))
        return 0;
    const size_t last = text_origin(buffer, to - 1);
    const size_t end = last + utf8_length((unsigned char)e->source[e->segment].text[last]);
    ((text_token *)tokens->data)[tokens->count++] =
        (text_token){.id = id, .begin = (uint32_t)text_origin(buffer, from), .end = (uint32_t)end};
    return 1;
}

size_t locus_encoding_count(const locus_encoding *encoding)
{
    return encoding == NULL ? 0 : encoding->count;
}

const uint32_t *locus_encoding_ids(const locus_encoding *encoding)
{
    return encoding == NULL ? NULL : encoding->ids.data;
}

const uint32_t *locus_encoding_types(const locus_encoding *encoding)
{
    return encoding == NULL ? NULL : encoding->types.data;
}

const locus_offset *locus_encoding_offsets(const locus_encoding *encoding)
{
    return encoding == NULL ? NULL : encoding->offsets.data;
}

const uint8_t *locus_encoding_segments(const locus_encoding *encoding)
{
    return encoding == NULL ? NULL : encoding->segments.data;
}
