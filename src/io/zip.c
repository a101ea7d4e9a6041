/* SPDX-License-Identifier: Apache-2.0 */
#include "io/zip.h"

#include <inttypes.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "io/bytes.h"
#include "io/system.h"
#include "io/tensorfile.h"

enum {
    END_BYTES = 22,     /* end of the directory, without a comment     */
    LOCATOR_BYTES = 20, /* ZIP64: where the long end of the directory is */
    LONG_END_BYTES = 56,
    CENTRAL_BYTES = 46, /* an entry of the directory, before its name  */
    LOCAL_BYTES = 30,   /* in front of an entry's bytes                */
};

typedef struct directory {
    uint64_t at, bytes, count;
} directory;

static uint32_t u16_at(const unsigned char *b) { return (uint32_t)(b[0] | b[1] << 8); }
static uint32_t u32_at(const unsigned char *b) { return u16_at(b) | u16_at(b + 2) << 16; }

static locus_status refuse(locus_error *error, const char *fault)
{
    return locus_fail(error, LOCUS_ERR_FORMAT, "ZIP: %s", fault);
}

/* The last 22 bytes; ones in all bits of a field: ZIP64 has it. */
static locus_status find_directory(const locus_zip *z, directory *d, locus_error *error)
{
    unsigned char end[END_BYTES], locator[LOCATOR_BYTES], whole[LONG_END_BYTES];
    if (z->file_bytes < END_BYTES)
        return refuse(error, "found no directory, expected one at the end");
    const uint64_t at = z->file_bytes - END_BYTES;
    LOCUS_TRY(locus_system_read(z->descriptor, at, end, sizeof end, error));
    if (memcmp(end, "PK\5\6", 4) != 0 || u16_at(end + 20) != 0)
        return refuse(error, "found no directory at the end, expected one without a comment (a "
                             "download that broke off?)");
    *d = (directory){u32_at(end + 16), u32_at(end + 12), u16_at(end + 10)};
    if (d->at != UINT32_MAX && d->bytes != UINT32_MAX && d->count != UINT16_MAX) return LOCUS_OK;
    if (at < LOCATOR_BYTES) return refuse(error, "found no ZIP64 locator, expected one");
    LOCUS_TRY(locus_system_read(z->descriptor, at - LOCATOR_BYTES, locator, sizeof locator, error));
    const uint64_t long_at = locus_load_u64(locator + 8);
    if (memcmp(locator, "PK\6\7", 4) != 0 || at < LONG_END_BYTES || long_at > at - LONG_END_BYTES)
        return refuse(error, "found no ZIP64 locator, expected one");
    LOCUS_TRY(locus_system_read(z->descriptor, long_at, whole, sizeof whole, error));
    if (memcmp(whole, "PK\6\6", 4) != 0)
        return refuse(error, "found no ZIP64 directory, expected one");
    *d = (directory){locus_load_u64(whole + 48), locus_load_u64(whole + 40),
                     locus_load_u64(whole + 32)};
    return LOCUS_OK;
}

/* ---- entries ---- */

/* The next field of 8 bytes of the ZIP64 extra, for a short one that is all ones. */
static int widen(uint64_t *value, const unsigned char **at, const unsigned char *end)
{
    if (*value != UINT32_MAX) return 1;
    if (*at == NULL || end - *at < 8) return 0;
    *value = locus_load_u64(*at);
    *at += 8;
    return 1;
}

/* The body of the extra field with this tag, or NULL. */
static const unsigned char *extra_field(const unsigned char *extra, size_t bytes, uint32_t tag,
                                        const unsigned char **end)
{
    for (size_t at = 0; bytes - at >= 4;) {
        const size_t size = u16_at(extra + at + 2);
        if (size > bytes - at - 4) return NULL;
        *end = extra + at + 4 + size;
        if (u16_at(extra + at) == tag) return extra + at + 4;
        at += 4 + size;
    }
    return NULL;
}

/* Why an entry cannot be read as it lies, or NULL. */
static const char *entry_fault(const unsigned char *c, uint64_t packed, uint64_t bytes)
{
    if ((u16_at(c + 8) & 1) != 0) return "found an encrypted entry, expected a plain one";
    if (u16_at(c + 10) != 0) return "found a compressed entry, expected stored ones";
    return packed != bytes ? "found two sizes of a stored entry, expected one" : NULL;
}

static locus_status add_entry(locus_zip *z, const unsigned char *c, size_t name_bytes,
                              size_t extra_bytes, locus_error *error)
{
    uint64_t packed = u32_at(c + 20), bytes = u32_at(c + 24), header = u32_at(c + 42);
    const unsigned char *name = c + CENTRAL_BYTES, *extra_end = NULL;
    const unsigned char *extra =
        extra_field(name + name_bytes, extra_bytes, 1, &extra_end); /* ZIP64 */
    if (!widen(&bytes, &extra, extra_end) || !widen(&packed, &extra, extra_end) ||
        !widen(&header, &extra, extra_end))
        return refuse(error, "found no ZIP64 sizes of an entry, expected them");
    const char *fault = locus_file_name_fault((const char *)name, name_bytes);
    if (fault == NULL && memchr(name, '\0', name_bytes) != NULL) fault = "found a NUL in a name";
    if (fault == NULL) fault = entry_fault(c, packed, bytes);
    if (fault != NULL) return refuse(error, fault);
    const char *kept = locus_arena_copy(&z->arena, (const char *)name, name_bytes);
    if (kept != NULL && locus_names_find(&z->names, kept) != LOCUS_NAMES_NONE)
        return refuse(error, "found the name of an entry twice, expected once");
    locus_zip_entry *entry = kept == NULL ? NULL : locus_list_push(&z->entries, z->allocator);
    if (entry == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the directory");
    *entry = (locus_zip_entry){kept, header, bytes};
    return locus_names_add(&z->names, z->allocator)
               ? LOCUS_OK
               : locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the directory");
}

static locus_status read_entries(locus_zip *z, const directory *d, const unsigned char *bytes,
                                 locus_error *error)
{
    size_t at = 0;
    for (uint64_t i = 0; i < d->count; i++) {
        const size_t left = (size_t)d->bytes - at;
        const unsigned char *c = bytes + at;
        if (left < CENTRAL_BYTES || memcmp(c, "PK\1\2", 4) != 0)
            return refuse(error, "found a broken directory, expected one more entry");
        const size_t name = u16_at(c + 28), extra = u16_at(c + 30), comment = u16_at(c + 32);
        if (name + extra + comment > left - CENTRAL_BYTES)
            return refuse(error, "found an entry that ends behind the directory");
        LOCUS_TRY(add_entry(z, c, name, extra, error));
        at += CENTRAL_BYTES + name + extra + comment;
    }
    return at == d->bytes ? LOCUS_OK : refuse(error, "found bytes behind the directory's entries");
}

static const char *entry_name(const void *owner, size_t index)
{
    const locus_zip_entry *entry = locus_list_at(owner, index);
    return entry->name;
}

locus_status locus_zip_open(locus_zip *z, int descriptor, uint64_t file_bytes,
                            const locus_allocator *allocator, locus_error *error)
{
    directory d = {0};
    *z = (locus_zip){.allocator = allocator,
                     .descriptor = descriptor,
                     .file_bytes = file_bytes,
                     .arena = {.allocator = allocator},
                     .entries = {.item_bytes = sizeof(locus_zip_entry)}};
    locus_names_init(&z->names, entry_name, &z->entries);
    LOCUS_TRY(find_directory(z, &d, error));
    if (d.at > file_bytes || d.bytes > file_bytes - d.at)
        return refuse(error, "found a directory that ends behind the file");
    if (d.bytes > LOCUS_ZIP_MAX_DIRECTORY || d.count > LOCUS_ZIP_MAX_ENTRIES)
        return refuse(error, "found too large a directory, expected at most 1000000 entries in "
                             "200000000 bytes");
    unsigned char *bytes = locus_allocate(allocator, (size_t)d.bytes, 1);
    if (bytes == NULL) return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for the directory");
    locus_status status = locus_system_read(descriptor, d.at, bytes, (size_t)d.bytes, error);
    if (status == LOCUS_OK) status = read_entries(z, &d, bytes, error);
    locus_release(allocator, bytes);
    return status;
}

void locus_zip_close(locus_zip *z)
{
    locus_names_clear(&z->names, z->allocator);
    locus_list_clear(&z->entries, z->allocator);
    locus_arena_clear(&z->arena);
}

const locus_zip_entry *locus_zip_find(const locus_zip *z, const char *name)
{
    const size_t i = locus_names_find(&z->names, name);
    return i == LOCUS_NAMES_NONE ? NULL : locus_list_at(&z->entries, i);
}

locus_status locus_zip_place(const locus_zip *z, const locus_zip_entry *e, uint64_t *at,
                             locus_error *error)
{
    unsigned char local[LOCAL_BYTES];
    char name[LOCUS_FILE_NAME_TEXT];
    int inside = z->file_bytes >= LOCAL_BYTES && e->header <= z->file_bytes - LOCAL_BYTES;
    if (inside) {
        LOCUS_TRY(locus_system_read(z->descriptor, e->header, local, sizeof local, error));
        *at = e->header + LOCAL_BYTES + u16_at(local + 26) + u16_at(local + 28);
        inside = memcmp(local, "PK\3\4", 4) == 0 && *at <= z->file_bytes &&
                 e->bytes <= z->file_bytes - *at;
    }
    if (inside) return LOCUS_OK;
    locus_escape(name, sizeof name, e->name, strlen(e->name));
    return locus_fail(error, LOCUS_ERR_FORMAT,
                      "ZIP entry \"%s\": found it outside of the file, expected %" PRIu64 " bytes",
                      name, e->bytes);
}
