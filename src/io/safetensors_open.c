/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"
#include "io/bytes.h"
#include "io/sniff.h"
#include "io/sources.h"
#include "io/system.h"
#include "io/tensorfile.h"

locus_status locus_file_fail_in(locus_error *error, locus_status status, const char *path)
{
    char text[LOCUS_FILE_PATH_TEXT];
    locus_escape(text, sizeof text, path, strlen(path));
    return locus_fail_in(error, status, text);
}

/* ---- the first bytes ---- */

/* What is on disk before anything is allocated. */
typedef struct start {
    int descriptor;
    uint64_t bytes, header_bytes;
    unsigned char prefix[LOCUS_SNIFF_BYTES];
    size_t prefix_bytes;
} start;

/* The rules about the length field, told with the format's name if it is another. */
static locus_status judge_length(const start *s, locus_error *error)
{
    const uint64_t rest = s->bytes - LOCUS_FILE_LENGTH_BYTES;
    if (s->header_bytes < LOCUS_FILE_MIN_HEADER)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "byte 0: found a header length of %" PRIu64 ", expected at least 2 [S04]",
                          s->header_bytes);
    if (s->header_bytes > LOCUS_FILE_MAX_HEADER)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "byte 0: found a header length of %" PRIu64 ", expected at most %u [S04]",
                          s->header_bytes, LOCUS_FILE_MAX_HEADER);
    if (s->header_bytes > rest)
        return locus_fail(error, LOCUS_ERR_FORMAT,
                          "byte 8: found %" PRIu64 " bytes, expected a header of %" PRIu64
                          ": %" PRIu64 " bytes are missing [S05]",
                          rest, s->header_bytes, s->header_bytes - rest);
    return LOCUS_OK;
}

static int header_begins(const start *s)
{
    return memchr(" \t\r\n{", s->prefix[LOCUS_FILE_LENGTH_BYTES], 5) != NULL;
}

static locus_status judge_start(start *s, locus_error *error)
{
    locus_status status = LOCUS_OK;
    if (s->prefix_bytes < LOCUS_FILE_LENGTH_BYTES) {
        status = locus_fail(error, LOCUS_ERR_FORMAT,
                            "found %" PRIu64 " bytes, expected at least 8 [S03]", s->bytes);
    } else {
        s->header_bytes = locus_load_u64(s->prefix);
        status = judge_length(s, error);
        if (status == LOCUS_OK && header_begins(s)) return LOCUS_OK;
    }
    /* A wrong first byte of JSON is the scanner's to report, with its offset. */
    const char *found = locus_sniff(s->prefix, s->prefix_bytes);
    if (found == NULL) return status;
    return locus_fail(error, LOCUS_ERR_FORMAT, "found %s, expected a safetensors file [S02]",
                      found);
}

static locus_status read_start(start *s, const char *path, locus_error *error)
{
    LOCUS_TRY(locus_system_open(&s->descriptor, &s->bytes, path, error));
    s->prefix_bytes = s->bytes < sizeof s->prefix ? (size_t)s->bytes : sizeof s->prefix;
    LOCUS_TRY(locus_system_read(s->descriptor, 0, s->prefix, s->prefix_bytes, error));
    return judge_start(s, error);
}

/* ---- open and close ---- */

static const char *tensor_name(const void *owner, size_t index)
{
    const locus_file_tensor *tensor = locus_list_at(owner, index);
    return tensor->name;
}

static const char *metadata_key(const void *owner, size_t index)
{
    const locus_file_entry *entry = locus_list_at(owner, index);
    return entry->key;
}

locus_file *locus_file_new(int descriptor, uint64_t bytes, const char *path,
                           const locus_allocator *allocator)
{
    locus_file *file = locus_allocate(allocator, 1, sizeof *file);
    if (file == NULL) return NULL;
    file->allocator = file->arena.allocator = allocator;
    file->path = locus_arena_copy(&file->arena, path, strlen(path));
    if (file->path == NULL) {
        locus_release(allocator, file);
        return NULL;
    }
    file->descriptor = descriptor;
    file->bytes = bytes;
    file->tensors.item_bytes = sizeof(locus_file_tensor);
    file->metadata.item_bytes = sizeof(locus_file_entry);
    file->sources.item_bytes = sizeof(locus_file_source);
    locus_names_init(&file->tensor_names, tensor_name, &file->tensors);
    locus_names_init(&file->metadata_names, metadata_key, &file->metadata);
    return file;
}

static locus_status open_file(locus_file **file, const char *path, const locus_allocator *allocator,
                              locus_error *error)
{
    start s = {.descriptor = -1};
    locus_status status = read_start(&s, path, error);
    locus_file *opened =
        status == LOCUS_OK ? locus_file_new(s.descriptor, s.bytes, path, allocator) : NULL;
    if (opened == NULL) {
        locus_system_close(s.descriptor);
        if (status != LOCUS_OK) return status;
        return locus_fail(error, LOCUS_ERR_MEMORY, "no memory to open the file");
    }
    opened->header_bytes = s.header_bytes;
    status = locus_file_parse(opened, error);
    if (status == LOCUS_OK) status = locus_file_check_layout(opened, error);
    if (status != LOCUS_OK) {
        locus_file_close(opened);
        return status;
    }
    *file = opened;
    return LOCUS_OK;
}

locus_status locus_file_open(locus_file **file, const char *path, const locus_allocator *allocator,
                             locus_error *error)
{
    if (file == NULL || path == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_file_open: NULL argument");
    *file = NULL;
    const locus_status status = open_file(file, path, allocator, error);
    return status == LOCUS_OK ? status : locus_file_fail_in(error, status, path);
}

void locus_file_close(locus_file *file)
{
    if (file == NULL) return;
    const locus_allocator *allocator = file->allocator;
    locus_system_close(file->descriptor);
    locus_names_clear(&file->tensor_names, allocator);
    locus_names_clear(&file->metadata_names, allocator);
    locus_list_clear(&file->tensors, allocator);
    locus_list_clear(&file->metadata, allocator);
    locus_list_clear(&file->sources, allocator);
    locus_arena_clear(&file->arena);
    locus_release(allocator, file);
}

/* ---- what is in it ---- */

size_t locus_file_count(const locus_file *file) { return file == NULL ? 0 : file->tensors.count; }

const locus_file_tensor *locus_file_tensor_at(const locus_file *file, size_t index)
{
    return index < locus_file_count(file) ? locus_list_at(&file->tensors, index) : NULL;
}

const locus_file_tensor *locus_file_find(const locus_file *file, const char *name)
{
    if (file == NULL || name == NULL) return NULL;
    return locus_file_tensor_at(file, locus_names_find(&file->tensor_names, name));
}

size_t locus_file_metadata_count(const locus_file *file)
{
    return file == NULL ? 0 : file->metadata.count;
}

void locus_file_metadata_at(const locus_file *file, size_t index, const char **key,
                            const char **value)
{
    const int inside = index < locus_file_metadata_count(file);
    const char *found = inside ? metadata_key(&file->metadata, index) : NULL;
    if (key != NULL) *key = found;
    if (value != NULL) *value = found == NULL ? NULL : found + strlen(found) + 1;
}

const char *locus_file_metadata(const locus_file *file, const char *key)
{
    const char *value = NULL;
    if (file == NULL || key == NULL) return NULL;
    locus_file_metadata_at(file, locus_names_find(&file->metadata_names, key), NULL, &value);
    return value;
}

uint64_t locus_file_bytes(const locus_file *file) { return file == NULL ? 0 : file->bytes; }

uint64_t locus_file_header_bytes(const locus_file *file)
{
    return file == NULL ? 0 : file->header_bytes;
}

/* ---- data ---- */

static locus_status read_tensor(const locus_file *file, size_t index, uint64_t from, uint64_t count,
                                void *out, locus_error *error)
{
    const locus_file_tensor *tensor = locus_list_at(&file->tensors, index);
    const uint64_t bytes = tensor->end - tensor->begin;
    size_t size = 0;
    if (from > bytes || count > bytes - from)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "found a read of %" PRIu64 " bytes from byte %" PRIu64
                          ", expected a part of its %" PRIu64 " bytes",
                          count, from, bytes);
    if (!locus_to_size(&size, count))
        return locus_fail(error, LOCUS_ERR_MEMORY,
                          "found a read of %" PRIu64 " bytes, more than this machine can address",
                          count);
    if (size > 0 && out == NULL) return locus_fail(error, LOCUS_ERR_ARGUMENT, "the output is NULL");
    if (file->sources.count > 0) return locus_source_read(file, index, from, size, out, error);
    /* Cannot overflow: opening proved that 8 + header + end is the file's size. */
    const uint64_t at = LOCUS_FILE_LENGTH_BYTES + file->header_bytes + tensor->begin + from;
    return locus_system_read(file->descriptor, at, out, size, error);
}

locus_status locus_file_read(const locus_file *file, size_t index, uint64_t from, uint64_t count,
                             void *out, locus_error *error)
{
    const locus_file_tensor *tensor = locus_file_tensor_at(file, index);
    char name[LOCUS_FILE_NAME_TEXT];
    if (tensor == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "locus_file_read: no file or no such tensor");
    locus_status status = read_tensor(file, index, from, count, out, error);
    if (status == LOCUS_OK) return LOCUS_OK;
    locus_escape(name, sizeof name, tensor->name, strlen(tensor->name));
    status = locus_fail_in(error, status, name);
    return locus_file_fail_in(error, status, file->path);
}
