/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include "files/filetest.h"

#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- blobs ---- */

static void stop(const char *what)
{
    perror(what);
    exit(2);
}

static void reserve(blob *b, size_t more)
{
    if (b->capacity - b->count >= more) return;
    size_t capacity = b->capacity == 0 ? 1024 : b->capacity;
    while (capacity - b->count < more) capacity *= 2;
    b->bytes = realloc(b->bytes, capacity);
    if (b->bytes == NULL) stop("realloc");
    b->capacity = capacity;
}

void blob_add(blob *b, const void *bytes, size_t count)
{
    reserve(b, count);
    if (count > 0) memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}

void blob_fill(blob *b, unsigned char byte, size_t count)
{
    reserve(b, count);
    if (count > 0) memset(b->bytes + b->count, byte, count);
    b->count += count;
}

void blob_text(blob *b, const char *format, ...)
{
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    const int count = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    if (count < 0 || (size_t)count >= sizeof text) stop("blob_text: too long");
    blob_add(b, text, (size_t)count);
}

void blob_u64(blob *b, uint64_t value)
{
    for (int i = 0; i < 8; i++) blob_fill(b, (unsigned char)(value >> (8 * i)), 1);
}

void blob_clear(blob *b)
{
    free(b->bytes);
    *b = (blob){NULL, 0, 0};
}

void blob_file(blob *b, const void *header, size_t header_bytes, size_t data_bytes)
{
    blob_u64(b, header_bytes);
    blob_add(b, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++) blob_fill(b, (unsigned char)i, 1);
}

/* ---- the folder ---- */

static char folder[512];

void folder_make(void)
{
    const char *base = getenv("TMPDIR");
    snprintf(folder, sizeof folder, "%s/locus-XXXXXX",
             base != NULL && base[0] != '\0' ? base : "/tmp");
    if (mkdtemp(folder) == NULL) stop(folder);
}

const char *folder_path(const char *name)
{
    static char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static size_t walk(int remove_them)
{
    size_t count = 0;
    DIR *directory = opendir(folder);
    if (directory == NULL) stop(folder);
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        count++;
        if (remove_them && remove(folder_path(entry->d_name)) != 0) stop(entry->d_name);
    }
    closedir(directory);
    return count;
}

size_t folder_count(void) { return walk(0); }

void folder_empty(void) { walk(1); }

void folder_remove(void)
{
    folder_empty();
    if (rmdir(folder) != 0) stop(folder);
}

void write_path(const char *path, const blob *b)
{
    FILE *file = fopen(path, "wb");
    if (file == NULL) stop(path);
    if (b->count > 0 && fwrite(b->bytes, 1, b->count, file) != b->count) stop(path);
    if (fclose(file) != 0) stop(path);
}

void read_path(const char *path, blob *b)
{
    char part[4096];
    FILE *file = fopen(path, "rb");
    b->count = 0;
    if (file == NULL) return;
    for (size_t got; (got = fread(part, 1, sizeof part, file)) > 0;) blob_add(b, part, got);
    if (fclose(file) != 0) stop(path);
}

/* ---- verdicts ---- */

/* Bytes of the header that are really there: what the heap bound is measured by. */
static uint64_t header_bytes(const char *path)
{
    unsigned char length[8] = {0};
    FILE *file = fopen(path, "rb");
    if (file == NULL) return 0;
    uint64_t value = 0;
    const size_t got = fread(length, 1, sizeof length, file);
    for (size_t i = sizeof length; i-- > 0;) value = value << 8 | length[i];
    fclose(file);
    return got == sizeof length && value <= LOCUS_FILE_MAX_HEADER ? value : 0;
}

static int is_regular_here(const char *path) { return strncmp(path, folder, strlen(folder)) == 0; }

verdict judge_path(const char *path)
{
    verdict v = {.status = LOCUS_OK};
    test_allocator memory;
    locus_error error = {{0}};
    locus_file *file = (locus_file *)(void *)&v; /* must be overwritten */
    test_allocator_init(&memory);
    v.status = locus_file_open(&file, path, &memory.interface, &error);
    memcpy(v.text, error.text, sizeof v.text);
    CHECK((file == NULL) == (v.status != LOCUS_OK), "status %d, file %p", v.status, (void *)file);
    if (v.status == LOCUS_OK) {
        CHECK(error.text[0] == '\0', "success wrote a message: %s", error.text);
        locus_file_close(file);
    } else {
        CHECK(strncmp(v.text, path, strlen(path)) == 0, "no path in: %s", v.text);
        CHECK(strpbrk(v.text, "\n\r\033") == NULL, "not one clean line: %s", v.text);
        CHECK(strlen(v.text) < sizeof v.text - 1, "the message was cut: %s", v.text);
    }
    v.heap = memory.peak_bytes;
    v.calls = memory.calls;
    CHECK(memory.live_blocks == 0 && memory.misuse == 0, "leak of %zu", memory.live_bytes);
    return v;
}

verdict judge(const blob *file)
{
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path("case.safetensors"));
    write_path(path, file);
    const verdict v = judge_path(path);
    const uint64_t bound = 4 * header_bytes(path) + HEAP_CONSTANT;
    CHECK(v.heap <= bound, "peak heap %zu, bound %llu", v.heap, (unsigned long long)bound);
    if (is_regular_here(path)) remove(path);
    return v;
}

static void check_refused(const verdict *v, const words *expected)
{
    CHECK(v->status == LOCUS_ERR_FORMAT, "status %d (%s), expected FORMAT", v->status, v->text);
    for (size_t i = 0; i < COUNT_OF(expected->text); i++)
        if (expected->text[i] != NULL)
            CHECK(strstr(v->text, expected->text[i]) != NULL, "no '%s' in: %s", expected->text[i],
                  v->text);
    CHECK(strstr(v->text, "expected ") != NULL, "nothing expected in: %s", v->text);
}

verdict expect_refused(const blob *file, words expected)
{
    const verdict v = judge(file);
    check_refused(&v, &expected);
    return v;
}

verdict expect_refused_path(const char *path, words expected)
{
    const verdict v = judge_path(path);
    check_refused(&v, &expected);
    return v;
}

verdict expect_accepted(const blob *file)
{
    const verdict v = judge(file);
    CHECK(v.status == LOCUS_OK, "refused: %s", v.text);
    return v;
}

verdict expect_header_refused(const char *header, size_t data_bytes, words expected)
{
    blob file = {0};
    blob_file(&file, header, strlen(header), data_bytes);
    const verdict v = expect_refused(&file, expected);
    CHECK(v.status == LOCUS_ERR_FORMAT, "header %.200s", header);
    blob_clear(&file);
    return v;
}

verdict expect_header_accepted(const char *header, size_t data_bytes)
{
    blob file = {0};
    blob_file(&file, header, strlen(header), data_bytes);
    const verdict v = expect_accepted(&file);
    CHECK(v.status == LOCUS_OK, "header %.200s", header);
    blob_clear(&file);
    return v;
}

void expect_table_refused(const bad_header *rows, size_t count)
{
    int wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (i == 0 || rows[i].number != rows[i - 1].number)
            wanted = check_begin("files/F%02d", rows[i].number);
        if (!wanted) continue;
        expect_header_refused(rows[i].header, rows[i].data_bytes,
                              WORDS(rows[i].words[0], rows[i].words[1], rows[i].words[2]));
    }
}
