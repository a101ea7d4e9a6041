/* SPDX-License-Identifier: Apache-2.0 */
#include "text/buffer.h"

#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"

locus_status locus_text_no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory to encode the text");
}

int locus_text_array_reserve(text_array *array, const locus_allocator *allocator, size_t count,
                             size_t item_bytes)
{
    uint64_t needed = 0;
    size_t bytes = 0;
    if (!locus_mul_u64(&needed, count, item_bytes) || !locus_to_size(&bytes, needed)) return 0;
    if (bytes <= array->capacity && array->data != NULL) return 1;
    size_t capacity = array->capacity + array->capacity / 2 + 1024;
    if (capacity < bytes) capacity = bytes;
    void *data = locus_allocate(allocator, capacity, 1);
    if (data == NULL) return 0;
    if (array->count > 0) memcpy(data, array->data, array->count * item_bytes);
    locus_release(allocator, array->data);
    array->data = data;
    array->capacity = capacity;
    return 1;
}

void locus_text_array_free(text_array *array, const locus_allocator *allocator)
{
    locus_release(allocator, array->data);
    *array = (text_array){.data = NULL};
}

/* ---- buffers ---- */

void locus_text_buffer_free(text_buffer *buffer)
{
    locus_release(buffer->allocator, buffer->data);
    locus_release(buffer->allocator, buffer->origin);
    *buffer = (text_buffer){.allocator = buffer->allocator};
}

void locus_text_buffer_clear(text_buffer *buffer, size_t shift)
{
    buffer->bytes = 0;
    buffer->shift = shift;
    buffer->mapped = 0;
    buffer->failed = buffer->too_long = 0;
}

static size_t most_of(const text_buffer *buffer)
{
    const size_t most = (size_t)LOCUS_TEXT_MAX_INPUT;
    return buffer->most == 0 || buffer->most > most ? most : buffer->most;
}

void locus_text_buffer_limit(text_buffer *buffer, size_t bytes)
{
    const size_t most = (size_t)LOCUS_TEXT_MAX_INPUT;
    buffer->most =
        bytes < most / TEXT_MAX_GROWTH ? bytes * TEXT_MAX_GROWTH + TEXT_MOST_GROWN : most;
}

locus_status locus_text_buffer_failure(const text_buffer *buffer, locus_error *error)
{
    if (!buffer->too_long) return locus_text_no_memory(error);
    return locus_fail(error, LOCUS_ERR_RANGE,
                      "found a text that becomes longer than %zu bytes when it is normalized",
                      most_of(buffer));
}

int locus_text_buffer_reserve(text_buffer *buffer, size_t bytes)
{
    if (bytes > most_of(buffer)) {
        buffer->failed = buffer->too_long = 1;
        return 0;
    }
    if (bytes <= buffer->capacity) return 1;
    size_t capacity = buffer->capacity + buffer->capacity / 2 + 256;
    if (capacity < bytes) capacity = bytes;
    if (capacity > most_of(buffer)) capacity = most_of(buffer);
    char *data = locus_allocate(buffer->allocator, capacity, 1);
    uint32_t *origin =
        buffer->mapped ? locus_allocate(buffer->allocator, capacity, sizeof *origin) : NULL;
    if (data == NULL || (buffer->mapped && origin == NULL)) {
        locus_release(buffer->allocator, data);
        locus_release(buffer->allocator, origin);
        buffer->failed = 1;
        return 0;
    }
    if (buffer->bytes > 0) memcpy(data, buffer->data, buffer->bytes);
    if (buffer->bytes > 0 && buffer->mapped)
        memcpy(origin, buffer->origin, buffer->bytes * sizeof *origin);
    locus_release(buffer->allocator, buffer->data);
    locus_release(buffer->allocator, buffer->origin);
    buffer->data = data;
    buffer->origin = origin;
    buffer->capacity = capacity;
    return 1;
}

/* Begin to keep origins. */
static int map(text_buffer *buffer)
{
    if (buffer->origin == NULL) {
        buffer->origin =
            locus_allocate(buffer->allocator, buffer->capacity, sizeof *buffer->origin);
        if (buffer->origin == NULL) {
            buffer->failed = 1;
            return 0;
        }
    }
    for (size_t i = 0; i < buffer->bytes; i++)
        buffer->origin[i] = utf8_continues(buffer->data[i]) && i > 0
                                ? buffer->origin[i - 1]
                                : (uint32_t)(buffer->shift + i);
    buffer->mapped = 1;
    return 1;
}

void locus_text_buffer_add(text_buffer *buffer, uint32_t code, size_t origin)
{
    if (buffer->failed) return;
    if (buffer->bytes + 4 > buffer->capacity &&
        !locus_text_buffer_reserve(buffer, buffer->bytes + 4))
        return;
    if (!buffer->mapped && origin != buffer->shift + buffer->bytes && !map(buffer)) return;
    const size_t length =
        code < 0x80 ? (buffer->data[buffer->bytes] = (char)code, (size_t)1)
                    : locus_utf8_encode((unsigned char *)buffer->data + buffer->bytes, code);
    if (buffer->mapped)
        for (size_t i = 0; i < length; i++) buffer->origin[buffer->bytes + i] = (uint32_t)origin;
    buffer->bytes += length;
}

void locus_text_buffer_copy(text_buffer *buffer, const text_buffer *input, size_t from, size_t to)
{
    const size_t bytes = to - from;
    if (bytes == 0 || buffer->failed || !locus_text_buffer_reserve(buffer, buffer->bytes + bytes))
        return;
    const int straight = !input->mapped && input->shift + from == buffer->shift + buffer->bytes;
    if (!buffer->mapped && !straight && !map(buffer)) return;
    memcpy(buffer->data + buffer->bytes, input->data + from, bytes);
    if (buffer->mapped && input->mapped) {
        memcpy(buffer->origin + buffer->bytes, input->origin + from, bytes * sizeof(uint32_t));
    } else if (buffer->mapped) {
        uint32_t *origin = buffer->origin + buffer->bytes;
        for (size_t i = 0; i < bytes; i++)
            origin[i] = i > 0 && utf8_continues(input->data[from + i])
                            ? origin[i - 1]
                            : (uint32_t)text_origin(input, from + i);
    }
    buffer->bytes += bytes;
}

/* ---- well-formed UTF-8 ---- */

/* Bytes of the sequence at s, which is whole and well formed if *good; else of the longest
 * part that could begin one, at least 1. */
static size_t sequence(const char *s, size_t left, int *good)
{
    locus_utf8 state = {0, 0, 0};
    *good = 0;
    if (!locus_utf8_begin(&state, (unsigned char)s[0])) return 1;
    size_t length = 1;
    for (; state.left > 0; length++)
        if (length == left || !locus_utf8_continue(&state, (unsigned char)s[length])) return length;
    *good = 1;
    return length;
}

static locus_status repair(text_source *source, const char *text, size_t bytes, size_t from,
                           locus_error *error)
{
    uint64_t most = 0;
    size_t capacity = 0;
    source->owned.count = 0;
    if (!locus_mul_u64(&most, bytes, 3) || !locus_to_size(&capacity, most) ||
        !locus_text_array_reserve(&source->owned, source->allocator, capacity, 1))
        return locus_text_no_memory(error);
    char *out = source->owned.data;
    memcpy(out, text, from);
    size_t used = from;
    for (size_t at = from; at < bytes;) {
        int good = 0;
        const size_t length = sequence(text + at, bytes - at, &good);
        if (good) {
            memcpy(out + used, text + at, length);
            used += length;
        } else {
            text_array *list = &source->replaced;
            if (!locus_text_array_reserve(list, source->allocator, list->count + 1,
                                          sizeof(text_replacement)))
                return locus_text_no_memory(error);
            ((text_replacement *)list->data)[list->count++] =
                (text_replacement){(uint32_t)used, (uint32_t)at, (uint32_t)length};
            used += locus_utf8_encode((unsigned char *)out + used, UNICODE_REPLACEMENT);
        }
        at += length;
    }
    source->text = out;
    source->bytes = used;
    return LOCUS_OK;
}

locus_status locus_text_source_set(text_source *source, const char *text, size_t bytes,
                                   locus_error *error)
{
    source->replaced.count = 0;
    source->text = text;
    source->bytes = bytes;
    if (bytes > LOCUS_TEXT_MAX_INPUT / 3)
        return locus_fail(error, LOCUS_ERR_RANGE, "found a text of %zu bytes, expected at most %zu",
                          bytes, (size_t)(LOCUS_TEXT_MAX_INPUT / 3));
    size_t wrong = bytes == 0 ? 0 : locus_utf8_check(text, bytes);
    if (wrong == bytes) return LOCUS_OK;
    if (wrong > 0) wrong--; /* back to the beginning of a character */
    while (wrong > 0 && utf8_continues(text[wrong])) wrong--;
    return repair(source, text, bytes, wrong, error);
}

void locus_text_source_free(text_source *source)
{
    locus_text_array_free(&source->owned, source->allocator);
    locus_text_array_free(&source->replaced, source->allocator);
}

uint64_t locus_text_source_offset(const text_source *source, size_t at)
{
    const text_replacement *list = source->replaced.data;
    size_t low = 0, high = source->replaced.count;
    while (low < high) { /* the last replacement that ends at or before `at` */
        const size_t middle = low + (high - low) / 2;
        if ((size_t)list[middle].at + 3 <= at)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < source->replaced.count && list[low].at < at) { /* inside one */
        const size_t into = at - list[low].at;
        return (uint64_t)list[low].given + (into < list[low].bytes ? into : list[low].bytes);
    }
    if (low == 0) return at;
    const text_replacement *last = list + (low - 1);
    return (uint64_t)last->given + last->bytes + (at - last->at - 3);
}
