/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_TENSORFILE_H
#define LOCUS_IO_TENSORFILE_H

/* What the parts of the readers and of the safetensors writer share. */

#include <locus/tensorfile.h>

#include "io/names.h"
#include "io/store.h"

#define LOCUS_FILE_LENGTH_BYTES 8u /* the header's length, little-endian */
#define LOCUS_FILE_MIN_HEADER 2u   /* {}                                 */
#define LOCUS_FILE_MAX_METADATA 1000000u
#define LOCUS_FILE_METADATA "__metadata__"

/* The escaped form of a path or a name in a message; longer text is cut. */
#define LOCUS_FILE_PATH_TEXT 200
#define LOCUS_FILE_NAME_TEXT 100

_Static_assert(LOCUS_FILE_MAX_TENSORS <= LOCUS_LIST_MAX, "a list holds every tensor");
_Static_assert(LOCUS_FILE_MAX_METADATA <= LOCUS_LIST_MAX, "a list holds every metadata entry");
_Static_assert(LOCUS_LIST_MAX <= (size_t)1 << LOCUS_NAMES_INDEX_BITS, "a slot holds every index");

/* Key and value of one metadata entry are one string each, back to back: the value
 * begins after the key's NUL. One pointer per entry keeps within the memory bound. */
typedef struct locus_file_entry {
    const char *key;
} locus_file_entry;

struct locus_file {
    const locus_allocator *allocator;
    const char *path;
    int descriptor;
    uint64_t bytes, header_bytes;
    locus_arena arena;            /* path, names, shapes, metadata       */
    locus_list tensors, metadata; /* locus_file_tensor, locus_file_entry */
    locus_list sources;           /* locus_file_source of each tensor; none: safetensors */
    locus_names tensor_names, metadata_names;
};

/* An empty file, which owns the descriptor; NULL: no memory. */
locus_file *locus_file_new(int descriptor, uint64_t bytes, const char *path,
                           const locus_allocator *allocator);

/* What torch.save writes (torch_open.c); GGUF (gguf_open.c). */
locus_status locus_file_parse_torch(locus_file *file, locus_error *error);
locus_status locus_file_parse_gguf(locus_file *file, locus_error *error);

/* Parse the JSON at byte 8 into file->tensors and file->metadata. */
locus_status locus_file_parse(locus_file *file, locus_error *error);

/* Sorted by offset, the tensors must tile the data section, and that must end where
 * the file ends. */
locus_status locus_file_check_layout(const locus_file *file, locus_error *error);

/* Why a name cannot be used, or NULL: empty, too long, not UTF-8. Text with a NUL is
 * refused before it becomes a C string. */
const char *locus_file_name_fault(const char *name, size_t bytes);

/* Metadata "sum": the CRC-32 of the whole file with these eight digits as zeros, in lower-case
 * hexadecimal. The writer fills them in; a reader asks for the check. Declared once, before any
 * other metadata. */
#define LOCUS_FILE_SUM "sum"
#define LOCUS_FILE_NO_SUM "00000000"
locus_status locus_file_put_sum(locus_file_writer *writer, locus_error *error);
locus_status locus_file_check_sum(const locus_file *file, locus_error *error);

/* Put "PATH: " in front of a message, the path escaped. Returns `status`. */
locus_status locus_file_fail_in(locus_error *error, locus_status status, const char *path);

#endif
