/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/crc32.h"
#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "core/utf8.h"
#include "io/bytes.h"
#include "io/dtype.h"
#include "io/system.h"
#include "io/tensorfile.h"

/* Declarations are collected first, because the header comes before the data and
 * its length before the header; everything is written by locus_file_commit. */

#define BUFFER_BYTES ((size_t)65536) /* a multiple of every word */
#define DATA_ALIGNMENT 8             /* of the data section in the file */

typedef struct item {
    const char *name;
    const locus_file_dtype *dtype;
    uint32_t rank;
    const uint64_t *shape;
    uint64_t begin, end;
    const void *data; /* the caller's */
} item;

struct locus_file_writer {
    const locus_allocator *allocator;
    const char *path;
    locus_system_output output;
    unsigned char *buffer; /* BUFFER_BYTES */
    uint64_t data_bytes;
    locus_arena arena;
    locus_list items, metadata; /* item, locus_file_entry */
    locus_names item_names, metadata_names;
    char *sum; /* the digits of metadata "sum"; NULL: none */
};

static const char *item_name(const void *owner, size_t index)
{
    const item *named = locus_list_at(owner, index);
    return named->name;
}

static const char *metadata_key(const void *owner, size_t index)
{
    const locus_file_entry *entry = locus_list_at(owner, index);
    return entry->key;
}

/* ---- life ---- */

static locus_status open_writer(locus_file_writer *w, const char *path,
                                const locus_allocator *allocator, locus_error *error)
{
    w->allocator = w->arena.allocator = allocator;
    w->output.folder = w->output.file = -1;
    w->items.item_bytes = sizeof(item);
    w->metadata.item_bytes = sizeof(locus_file_entry);
    locus_names_init(&w->item_names, item_name, &w->items);
    locus_names_init(&w->metadata_names, metadata_key, &w->metadata);
    w->path = locus_arena_copy(&w->arena, path, strlen(path));
    w->buffer = locus_allocate(allocator, BUFFER_BYTES, 1);
    if (w->path == NULL || w->buffer == NULL)
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory to write the file");
    return locus_system_output_open(&w->output, path, error);
}

locus_status locus_file_create(locus_file_writer **writer, const char *path,
                               const locus_allocator *allocator, locus_error *error)
{
    if (writer == NULL || path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_file_create: NULL argument");
    *writer = NULL;
    locus_file_writer *w = locus_allocate(allocator, 1, sizeof *w);
    if (w == NULL) {
        locus_fail(error, LOCUS_ERR_MEMORY, "no memory to write the file");
        return locus_file_fail_in(error, LOCUS_ERR_MEMORY, path);
    }
    const locus_status status = open_writer(w, path, allocator, error);
    if (status != LOCUS_OK) {
        locus_file_abandon(w);
        return locus_file_fail_in(error, status, path);
    }
    *writer = w;
    return LOCUS_OK;
}

void locus_file_abandon(locus_file_writer *w)
{
    if (w == NULL) return;
    const locus_allocator *allocator = w->allocator;
    locus_system_output_close(&w->output);
    locus_names_clear(&w->item_names, allocator);
    locus_names_clear(&w->metadata_names, allocator);
    locus_list_clear(&w->items, allocator);
    locus_list_clear(&w->metadata, allocator);
    locus_arena_clear(&w->arena);
    locus_release(allocator, w->buffer);
    locus_release(allocator, w);
}

/* ---- declarations: a refused one leaves the writer as it was ---- */

static locus_status refuse(const locus_file_writer *w, locus_status status, const char *what,
                           const char *name, const char *fault, locus_error *error)
{
    char text[LOCUS_FILE_NAME_TEXT];
    locus_escape(text, sizeof text, name, strlen(name));
    locus_fail(error, status, "%s \"%s\": %s", what, text, fault);
    return locus_file_fail_in(error, status, w->path);
}

static const char *name_fault(const locus_names *names, const char *name, size_t most)
{
    const char *fault = locus_file_name_fault(name, strlen(name));
    if (fault != NULL) return fault;
    if (locus_names_find(names, name) != LOCUS_NAMES_NONE)
        return "found the name twice, expected once [S10]";
    return names->count >= most ? "found one more, expected at most 1000000 [S21]" : NULL;
}

/* Make the item that was pushed last findable, or take it back. */
static int register_last(locus_names *names, locus_list *list, const locus_allocator *allocator)
{
    const int good = locus_names_add(names, allocator);
    if (!good) list->count--;
    return good;
}

static int add_metadata(locus_file_writer *w, const char *key, const char *value)
{
    const size_t key_bytes = strlen(key) + 1, value_bytes = strlen(value) + 1;
    char *pair = locus_arena_take(&w->arena, key_bytes + value_bytes, 1);
    if (pair == NULL) return 0;
    memcpy(pair, key, key_bytes);
    memcpy(pair + key_bytes, value, value_bytes);
    locus_file_entry *entry = locus_list_push(&w->metadata, w->allocator);
    if (entry == NULL) return 0;
    entry->key = pair;
    return register_last(&w->metadata_names, &w->metadata, w->allocator);
}

locus_status locus_file_put_metadata(locus_file_writer *w, const char *key, const char *value,
                                     locus_error *error)
{
    if (w == NULL || key == NULL || value == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_file_put_metadata: NULL argument");
    const char *fault = name_fault(&w->metadata_names, key, LOCUS_FILE_MAX_METADATA);
    if (fault == NULL && locus_utf8_check(value, strlen(value)) != strlen(value))
        fault = "found a value that is not UTF-8, expected UTF-8 [S06]";
    if (fault != NULL) return refuse(w, LOCUS_ERR_ARGUMENT, "metadata", key, fault, error);
    if (add_metadata(w, key, value)) return LOCUS_OK;
    return refuse(w, LOCUS_ERR_MEMORY, "metadata", key, "no memory", error);
}

locus_status locus_file_put_sum(locus_file_writer *w, locus_error *error)
{
    LOCUS_TRY(locus_file_put_metadata(w, LOCUS_FILE_SUM, LOCUS_FILE_NO_SUM, error));
    const locus_file_entry *entry = locus_list_at(&w->metadata, w->metadata.count - 1);
    w->sum = (char *)(uintptr_t)entry->key + sizeof LOCUS_FILE_SUM;
    return LOCUS_OK;
}

/* Fill in dtype, size and place; NULL or what is wrong, in `detail` where it is long. */
static const char *measure(const locus_file_writer *w, item *put, const char *dtype,
                           locus_error *detail)
{
    uint64_t bytes = 0;
    size_t size = 0;
    put->dtype = locus_file_dtype_find(dtype);
    if (put->dtype == NULL) return "found an unknown dtype, expected one such as F32 [S14]";
    if (put->rank > LOCUS_FILE_MAX_RANK) return "found a rank above 16, expected at most 16 [S16]";
    if (put->rank > 0 && put->shape == NULL) return "found no shape, expected one [S16]";
    if (locus_file_dtype_bytes(&bytes, put->dtype, put->rank, put->shape, detail) != LOCUS_OK)
        return detail->text;
    if (!locus_to_size(&size, bytes)) return "found more bytes than this machine can address [S17]";
    if (size > 0 && put->data == NULL) return "found no data, expected some";
    put->begin = w->data_bytes;
    if (!locus_add_u64(&put->end, w->data_bytes, bytes) || put->end > INT64_MAX / 2)
        return "found more than 2^62 bytes in all, expected fewer [S20]";
    return NULL;
}

static int add_item(locus_file_writer *w, const item *put)
{
    uint64_t *shape = locus_arena_take(&w->arena, put->rank * sizeof *shape, sizeof *shape);
    const char *name = locus_arena_copy(&w->arena, put->name, strlen(put->name));
    if (shape == NULL || name == NULL) return 0;
    for (uint32_t i = 0; i < put->rank; i++) shape[i] = put->shape[i];
    item *kept = locus_list_push(&w->items, w->allocator);
    if (kept == NULL) return 0;
    *kept = *put;
    kept->name = name;
    kept->shape = shape;
    if (!register_last(&w->item_names, &w->items, w->allocator)) return 0;
    w->data_bytes = put->end;
    return 1;
}

locus_status locus_file_put(locus_file_writer *w, const char *name, const char *dtype,
                            uint32_t rank, const uint64_t *shape, const void *data,
                            locus_error *error)
{
    locus_error detail = {{0}};
    if (w == NULL || name == NULL || dtype == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_file_put: NULL argument");
    item put = {.name = name, .rank = rank, .shape = shape, .data = data};
    const char *fault = name_fault(&w->item_names, name, LOCUS_FILE_MAX_TENSORS);
    if (fault == NULL && strcmp(name, LOCUS_FILE_METADATA) == 0)
        fault = "found the name of the metadata, expected another [S10]";
    if (fault == NULL) fault = measure(w, &put, dtype, &detail);
    if (fault != NULL) return refuse(w, LOCUS_ERR_ARGUMENT, "tensor", name, fault, error);
    if (add_item(w, &put)) return LOCUS_OK;
    return refuse(w, LOCUS_ERR_MEMORY, "tensor", name, "no memory", error);
}

/* ---- the sink: counts, or writes through the buffer; the first failure sticks ---- */

typedef struct sink {
    locus_system_output *output; /* NULL: only count, or sum up */
    int sums;                    /* 1: `crc` is that of everything so far */
    uint32_t crc;
    unsigned char *buffer;
    size_t used;
    uint64_t total;
    locus_status status;
    locus_error *error;
} sink;

static void flush(sink *s)
{
    if (s->status == LOCUS_OK && s->output != NULL && s->used > 0)
        s->status = locus_system_output_write(s->output, s->buffer, s->used, s->error);
    s->used = 0;
}

static void emit(sink *s, const void *data, size_t bytes)
{
    s->total += bytes;
    if (s->sums) s->crc = locus_crc32(s->crc, data, bytes);
    if (s->output == NULL || bytes == 0) return;
    if (bytes > BUFFER_BYTES - s->used) flush(s);
    if (bytes > BUFFER_BYTES) {
        if (s->status == LOCUS_OK)
            s->status = locus_system_output_write(s->output, data, bytes, s->error);
        return;
    }
    memcpy(s->buffer + s->used, data, bytes);
    s->used += bytes;
}

static void emit_text(sink *s, const char *text) { emit(s, text, strlen(text)); }

static void emit_number(sink *s, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do digits[--at] = (char)('0' + value % 10);
    while ((value /= 10) > 0);
    emit(s, digits + at, sizeof digits - at);
}

static void emit_string(sink *s, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    emit(s, "\"", 1);
    for (size_t plain; *text != '\0'; text += plain) {
        for (plain = 0; (unsigned char)text[plain] >= 0x20; plain++)
            if (text[plain] == '"' || text[plain] == '\\') break;
        emit(s, text, plain);
        const unsigned char byte = (unsigned char)text[plain];
        if (byte == '\0') break;
        if (byte >= 0x20)
            emit(s, (const char[]){'\\', (char)byte}, 2);
        else
            emit(s, (const char[]){'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]}, 6);
        plain++;
    }
    emit(s, "\"", 1);
}

/* ---- the file ---- */

static void emit_metadata(sink *s, const locus_file_writer *w)
{
    emit_string(s, LOCUS_FILE_METADATA);
    emit_text(s, ":{");
    for (size_t i = 0; i < w->metadata.count; i++) {
        const char *key = metadata_key(&w->metadata, i);
        if (i > 0) emit_text(s, ",");
        emit_string(s, key);
        emit_text(s, ":");
        emit_string(s, key + strlen(key) + 1);
    }
    emit_text(s, "}");
}

static void emit_entry(sink *s, const item *put)
{
    emit_string(s, put->name);
    emit_text(s, ":{\"dtype\":");
    emit_string(s, put->dtype->name);
    emit_text(s, ",\"shape\":[");
    for (uint32_t i = 0; i < put->rank; i++) {
        if (i > 0) emit_text(s, ",");
        emit_number(s, put->shape[i]);
    }
    emit_text(s, "],\"data_offsets\":[");
    emit_number(s, put->begin);
    emit_text(s, ",");
    emit_number(s, put->end);
    emit_text(s, "]}");
}

/* The same function measures the header and writes it, so the two cannot disagree. */
static void emit_header(sink *s, const locus_file_writer *w)
{
    emit_text(s, "{");
    if (w->metadata.count > 0) emit_metadata(s, w);
    for (size_t i = 0; i < w->items.count; i++) {
        if (i > 0 || w->metadata.count > 0) emit_text(s, ",");
        emit_entry(s, locus_list_at(&w->items, i));
    }
    emit_text(s, "}");
    while (s->total % DATA_ALIGNMENT != 0) emit_text(s, " ");
}

static void emit_data(sink *s, const item *put)
{
    const unsigned char *data = put->data;
    const size_t bytes = (size_t)(put->end - put->begin); /* locus_file_put saw that it fits */
    if (LOCUS_FILE_ORDER_IS_NATIVE || put->dtype->word == 1) {
        emit(s, data, bytes);
        return;
    }
    flush(s);
    for (size_t at = 0; at < bytes; at += BUFFER_BYTES) {
        const size_t part = bytes - at < BUFFER_BYTES ? bytes - at : BUFFER_BYTES;
        memcpy(s->buffer, data + at, part);
        locus_swap_words(s->buffer, part, put->dtype->word);
        if (s->sums) s->crc = locus_crc32(s->crc, s->buffer, part);
        s->used = part;
        s->total += part;
        flush(s);
    }
}

static void emit_file(sink *s, const locus_file_writer *w, uint64_t header)
{
    unsigned char length[LOCUS_FILE_LENGTH_BYTES];
    locus_store_u64(length, header);
    emit(s, length, sizeof length);
    emit_header(s, w); /* 8 bytes are out already: padding comes out the same */
    for (size_t i = 0; i < w->items.count; i++) emit_data(s, locus_list_at(&w->items, i));
    flush(s);
}

/* The digits of the sum count as zeros, which is what stands there until now. */
static void make_sum(locus_file_writer *w, uint64_t header)
{
    sink s = {.sums = 1, .buffer = w->buffer};
    emit_file(&s, w, header);
    snprintf(w->sum, sizeof LOCUS_FILE_NO_SUM, "%08" PRIx32, s.crc);
}

static locus_status write_file(locus_file_writer *w, locus_error *error)
{
    sink counter = {.status = LOCUS_OK};
    emit_header(&counter, w);
    if (counter.total > LOCUS_FILE_MAX_HEADER)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "found a header of %" PRIu64 " bytes, expected at most %u [S04]",
                          counter.total, LOCUS_FILE_MAX_HEADER);
    if (w->sum != NULL) make_sum(w, counter.total);
    LOCUS_TRY(locus_system_output_begin(&w->output, error));
    sink s = {.output = &w->output, .buffer = w->buffer, .error = error};
    emit_file(&s, w, counter.total);
    LOCUS_TRY(s.status);
    return locus_system_output_finish(&w->output, error);
}

locus_status locus_file_commit(locus_file_writer *w, locus_error *error)
{
    if (w == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_file_commit: NULL argument");
    locus_status status = write_file(w, error);
    if (status != LOCUS_OK) status = locus_file_fail_in(error, status, w->path);
    locus_file_abandon(w);
    return status;
}
