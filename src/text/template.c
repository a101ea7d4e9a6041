/* SPDX-License-Identifier: Apache-2.0 */
/* From the tokens of the segments to the result: offsets trimmed, truncated, special tokens put
 * around them. */
#include <string.h>

#include "core/error.h"
#include "text/tokenizer.h"

/* ---- offsets without the spaces of byte-level tokens ---- */

#define BYTE_SPACE "\xC4\xA0" /* U+0120, the byte-level letter of a space */

static size_t leading_spaces(const locus_tokenizer *t, const char *text, size_t bytes)
{
    size_t count = 0, length = 0;
    for (size_t at = 0; at < bytes; at += length, count++) {
        const uint32_t code = utf8_read(text + at, &length);
        if (code != 0x120 && (unicode_class(&t->unicode, code) & UNICODE_SPACE) == 0) break;
    }
    return count;
}

static size_t trailing_spaces(const locus_tokenizer *t, const char *text, size_t bytes)
{
    size_t count = 0, length = 0;
    for (; bytes > 0; bytes -= length, count++) {
        const uint32_t code = utf8_read_back(text, bytes, &length);
        if (code != 0x120 && (unicode_class(&t->unicode, code) & UNICODE_SPACE) == 0) break;
    }
    return count;
}

void locus_text_trim(const locus_tokenizer *t, const text_source *source, text_token *token,
                     text_string value, int is_first)
{
    size_t leading = leading_spaces(t, value.text, value.bytes);
    size_t trailing = trailing_spaces(t, value.text, value.bytes);
    if (is_first && t->trim_prefix && leading == 1) leading = 0;
    for (; leading > 0 && token->begin < token->end; leading--)
        token->begin += (uint32_t)utf8_length((unsigned char)source->text[token->begin]);
    size_t length = 0;
    for (; trailing > 0 && token->end > token->begin; trailing--) {
        utf8_read_back(source->text, token->end, &length);
        token->end -= (uint32_t)length;
    }
}

static void trim(const locus_tokenizer *t, locus_encoding *e, size_t segment)
{
    text_token *list = e->tokens[segment].data;
    for (size_t i = 0; i < e->tokens[segment].count; i++)
        if (!list[i].added) /* those were trimmed when they were found */
            locus_text_trim(t, &e->source[segment], list + i, t->tokens[list[i].id],
                            i == 0 || list[i].begin == 0);
}

/* ---- truncation ---- */

static size_t minimum(size_t a, size_t b) { return a < b ? a : b; }

/* The longer segment is shortened first, then both. Of an odd number `tokenizers` gives the one
 * more to the segment that was longer (the second, if both were equal), transformers' own classes
 * give it to the first. */
static void share(const locus_tokenizer *t, size_t room, size_t *first, size_t *second)
{
    if (*first + *second <= room) return;
    const int swapped = *first > *second;
    size_t less = swapped ? *second : *first, more = room - minimum(less, room);
    int first_has_more = swapped;
    if (less > more) {
        less = room / 2;
        more = room - less;
        if (t->slow) first_has_more = 1;
    }
    *first = first_has_more ? more : less;
    *second = first_has_more ? less : more;
}

static locus_status truncate(const locus_tokenizer *t, const locus_text_input *input,
                             const text_template *shape, locus_encoding *e, locus_error *error)
{
    size_t added = 0;
    if (input->truncate == 0) return LOCUS_OK;
    for (size_t i = 0; i < shape->count; i++) added += shape->items[i].kind == ITEM_TOKEN;
    if (input->truncate < added)
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "found a limit of %u ids, expected at least the %zu special ones",
                          input->truncate, added);
    const size_t room = input->truncate - added;
    if (input->pair == NULL)
        e->tokens[0].count = minimum(e->tokens[0].count, room);
    else
        share(t, room, &e->tokens[0].count, &e->tokens[1].count);
    return LOCUS_OK;
}

/* ---- the result ---- */

static void add_result(locus_encoding *e, uint32_t id, uint32_t type, locus_offset offset,
                       uint8_t segment)
{
    ((uint32_t *)e->ids.data)[e->count] = id;
    ((uint32_t *)e->types.data)[e->count] = type;
    ((locus_offset *)e->offsets.data)[e->count] = offset;
    ((uint8_t *)e->segments.data)[e->count] = segment;
    e->count++;
}

static void add_segment(locus_encoding *e, size_t segment, uint32_t type)
{
    const text_token *list = e->tokens[segment].data;
    const text_source *source = &e->source[segment];
    for (size_t i = 0; i < e->tokens[segment].count; i++) {
        locus_offset offset = {list[i].begin, list[i].end};
        if (source->replaced.count > 0) {
            offset.begin = locus_text_source_offset(source, list[i].begin);
            offset.end = locus_text_source_offset(source, list[i].end);
        }
        add_result(e, list[i].id, type, offset, (uint8_t)segment);
    }
}

static int reserve_results(locus_encoding *e, size_t count)
{
    return locus_text_array_reserve(&e->ids, e->allocator, count, sizeof(uint32_t)) &&
           locus_text_array_reserve(&e->types, e->allocator, count, sizeof(uint32_t)) &&
           locus_text_array_reserve(&e->offsets, e->allocator, count, sizeof(locus_offset)) &&
           locus_text_array_reserve(&e->segments, e->allocator, count, sizeof(uint8_t));
}

static int ends_with_id(const locus_encoding *e, size_t segment, uint32_t id)
{
    const text_array *tokens = &e->tokens[segment];
    return tokens->count > 0 && ((text_token *)tokens->data)[tokens->count - 1].id == id;
}

/* The segments one after the other. */
static const text_template plain_template = {
    .items = {{.kind = ITEM_FIRST}, {.kind = ITEM_SECOND, .type = 1}}, .count = 2};

locus_status locus_text_finish(const locus_tokenizer *t, const locus_text_input *input,
                               locus_encoding *e, locus_error *error)
{
    const text_template *shape = input->plain          ? &plain_template
                                 : input->pair != NULL ? &t->pair
                                                       : &t->single;
    const int pair = input->pair != NULL;
    e->count = 0;
    if (!pair) e->tokens[1].count = 0;
    LOCUS_TRY(truncate(t, input, shape, e, error));
    if (!reserve_results(e, e->tokens[0].count + e->tokens[1].count + TEXT_MAX_TEMPLATE))
        return locus_text_no_memory(error);
    for (size_t i = 0; t->trim_offsets && i < 2; i++) trim(t, e, i);
    for (size_t i = 0; i < shape->count; i++) {
        const template_item *item = shape->items + i;
        if (item->kind != ITEM_TOKEN) {
            const size_t segment = item->kind == ITEM_SECOND;
            if (segment == 0 || pair) add_segment(e, segment, item->type);
            continue;
        }
        if (item->unless_last &&
            ends_with_id(e, i > 0 && shape->items[i - 1].kind == ITEM_SECOND, item->id))
            continue;
        add_result(e, item->id, item->type, (locus_offset){0, 0}, 2);
    }
    return LOCUS_OK;
}
