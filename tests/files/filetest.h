/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_FILETEST_H
#define LOCUS_TESTS_FILETEST_H

/* Making bad files and holding the reader to its verdict. Every case is generated
 * here. F-numbers are the rows of the project's bad-file set; the rules in brackets,
 * [S01] to [S21], are those of docs/formats.md. */

#include <stddef.h>
#include <stdint.h>

#include <locus/tensorfile.h>

#include "support/allocator.h"
#include "support/check.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

/* Bytes that grow. Zeroed = empty; blob_clear gives the memory back. */
typedef struct blob {
    unsigned char *bytes;
    size_t count, capacity;
} blob;

void blob_add(blob *b, const void *bytes, size_t count);
void blob_fill(blob *b, unsigned char byte, size_t count);
void blob_text(blob *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void blob_u64(blob *b, uint64_t value); /* little-endian */
void blob_clear(blob *b);

/* length, header, `data_bytes` bytes 0, 1, 2, ... */
void blob_file(blob *b, const void *header, size_t header_bytes, size_t data_bytes);

/* The one temporary folder; removed with everything in it by folder_remove. */
void folder_make(void);
void folder_remove(void);
const char *folder_path(const char *name); /* "FOLDER/name", valid until the next call */
size_t folder_count(void);                 /* entries in it                            */
void folder_empty(void);                   /* remove them                              */
void write_path(const char *path, const blob *b);
void read_path(const char *path, blob *b);

/* What opening did. `heap` is the peak of the reader's allocations. */
typedef struct verdict {
    locus_status status;
    char text[512];
    size_t heap, calls;
} verdict;

/* Open and close, with every manner checked: no leak, NULL on failure, one line that
 * begins with the path, heap within 4 x header + 256 KiB. */
verdict judge_path(const char *path);
verdict judge(const blob *file);

/* The same, and CHECK the answer. Up to three words must be in the message. */
typedef struct words {
    const char *text[3];
} words;
#define WORDS(...) ((words){{__VA_ARGS__}})
verdict expect_refused(const blob *file, words expected);
verdict expect_refused_path(const char *path, words expected);
verdict expect_accepted(const blob *file);

/* A header as a C string, then data_bytes of data. */
verdict expect_header_refused(const char *header, size_t data_bytes, words expected);
verdict expect_header_accepted(const char *header, size_t data_bytes);

#define HEAP_CONSTANT ((size_t)256 * 1024)

/* Tables of refused headers: one case per F-number, one row per variant. */
typedef struct bad_header {
    int number; /* of the F-case; rows of one case are neighbours */
    const char *header;
    size_t data_bytes;
    const char *words[3];
} bad_header;
void expect_table_refused(const bad_header *rows, size_t count);

void test_scanner(void);
void test_container(void);
void test_entries(void);
void test_layout(void);
void test_large(void);
void test_foreign(void);
void test_torch(void);
void test_gguf(void);
void test_writer(void);
void test_allocations(void);

#endif
