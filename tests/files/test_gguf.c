/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"
#include "io/bytes.h"

/* GGUF by locus_weights_open: blocks of Q8_0 as floats, and files of which one thing is wrong.
 * bindings/python/tests/test_gguf.py has files of the package gguf. */

static void put_number(blob *b, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++, value >>= 8)
        blob_add(b, &(unsigned char){(unsigned char)value}, 1);
}

static void put_text(blob *b, const char *text)
{
    put_number(b, strlen(text), 8);
    blob_text(b, "%s", text);
}

typedef struct sheet { /* one tensor [2, columns] and one value */
    unsigned version, alignment, type, rank, kind;
    uint64_t columns, offset, tensors;
    size_t data;
} sheet;

static const sheet good = {3, 32, 8, 2, 4, 32, 0, 1, 68};

static void make(blob *b, const sheet *s)
{
    blob_add(b, "GGUF", 4);
    put_number(b, s->version, 4);
    put_number(b, s->tensors, 8);
    put_number(b, 1, 8);
    put_text(b, "general.alignment");
    put_number(b, s->kind, 4);
    put_number(b, s->alignment, 4);
    put_text(b, "a");
    put_number(b, s->rank, 4);
    put_number(b, s->columns, 8);
    put_number(b, 2, 8);
    put_number(b, s->type, 4);
    put_number(b, s->offset, 8);
    if (b->count % 32 != 0) blob_fill(b, 0, 32 - b->count % 32);
    for (size_t i = 0; i < s->data; i++) /* a block: the scale 0.5, then 0 to 31 */
        put_number(b, i % 34 == 1 ? 0x38 : i % 34 < 2 ? 0 : i % 34 - 2, 1);
}

static locus_status open_sheet(locus_file **file, const sheet *s, const locus_allocator *allocator,
                               locus_error *error)
{
    char path[1024];
    blob b = {0};
    make(&b, s);
    snprintf(path, sizeof path, "%s", folder_path("model.gguf"));
    write_path(path, &b);
    blob_clear(&b);
    return locus_weights_open(file, path, allocator, error);
}

static void test_blocks(void)
{
    if (!check_begin("files/gguf/blocks")) return;
    locus_error error = {{0}};
    locus_file *file = NULL;
    float numbers[64] = {0}, few[3] = {0};
    CHECK(open_sheet(&file, &good, NULL, &error) == LOCUS_OK, "%s", error.text);
    const locus_file_tensor *t = locus_file_find(file, "a");
    CHECK(t != NULL && strcmp(t->dtype, "F32") == 0 && t->shape[0] == 2 && t->shape[1] == 32,
          "the tensor");
    CHECK(locus_file_read(file, 0, 0, sizeof numbers, numbers, &error) == LOCUS_OK, "%s",
          error.text);
    locus_swap_words(numbers, sizeof numbers, 4); /* as they lie in a file */
    for (int i = 0; i < 64; i++) CHECK(numbers[i] == 0.5f * (float)(i % 32), "number %d", i);
    CHECK(locus_file_read(file, 0, 31 * 4, sizeof few, few, &error) == LOCUS_OK, "%s", error.text);
    locus_swap_words(few, sizeof few, 4);
    CHECK(few[0] == 15.5f && few[1] == 0 && few[2] == 0.5f, "over the end of a block");
    locus_file_close(file);
}

/* One block less, as many as, one more than are read at a time (BLOCKS of sources.c), in both rows. */
static void test_many_blocks(void)
{
    if (!check_begin("files/gguf/BLOCKS")) return;
    for (uint64_t in_row = 31; in_row <= 65; in_row += in_row == 33 ? 31 : 1) {
        locus_error error = {{0}};
        locus_file *file = NULL;
        static float numbers[2 * 65 * 32];
        const sheet s = {3, 32, 8, 2, 4, 32 * in_row, 0, 1, 68 * in_row};
        const size_t count = 64 * in_row;
        CHECK(open_sheet(&file, &s, NULL, &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_file_read(file, 0, 0, 4 * count, numbers, &error) == LOCUS_OK, "%s",
              error.text);
        locus_swap_words(numbers, 4 * count, 4);
        for (size_t i = 0; i < count; i++)
            CHECK(numbers[i] == 0.5f * (float)(i % 32), "%d blocks: number %zu", (int)in_row, i);
        locus_file_close(file);
    }
}

/* A file without tensors that has one text of `bytes`; behind it, where WINDOW (65536) ends, another. */
static locus_status open_text(locus_file **file, size_t bytes, locus_error *error)
{
    char path[1024];
    blob b = {0};
    blob_add(&b, "GGUF", 4);
    put_number(&b, 3, 4);
    put_number(&b, 0, 8);
    put_number(&b, 2, 8);
    put_text(&b, "long");
    put_number(&b, 8, 4);
    put_number(&b, bytes, 8);
    blob_fill(&b, 'x', bytes);
    put_text(&b, "behind");
    put_number(&b, 8, 4);
    put_text(&b, "it");
    snprintf(path, sizeof path, "%s", folder_path("model.gguf"));
    write_path(path, &b);
    blob_clear(&b);
    return locus_weights_open(file, path, NULL, error);
}

/* A value of more than MOST_TEXT is not kept; what is behind a WINDOW is read. */
static void test_texts(void)
{
    if (!check_begin("files/gguf/MOST_TEXT")) return;
    static const size_t sizes[] = {65434, 65435, 65436, 65479, 65480,
                                   65481, 65535, 65536, 65537, 131072};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        locus_error error = {{0}};
        locus_file *file = NULL;
        CHECK(open_text(&file, sizes[i], &error) == LOCUS_OK, "%s", error.text);
        const char *text = locus_file_metadata(file, "long");
        const char *behind = locus_file_metadata(file, "behind");
        CHECK((text != NULL) == (sizes[i] <= 65536), "%zu bytes", sizes[i]);
        CHECK(text == NULL || strlen(text) == sizes[i], "%zu bytes", sizes[i]);
        CHECK(behind != NULL && strcmp(behind, "it") == 0, "behind %zu bytes", sizes[i]);
        locus_file_close(file);
    }
}

/* Both sides of MOST_ALIGNMENT: with the largest the data would begin behind this file. */
static void test_alignment(void)
{
    if (!check_begin("files/gguf/MOST_ALIGNMENT")) return;
    static const struct {
        unsigned alignment;
        const char *word;
    } rows[] = {{1 << 20, "tensor a: found it at byte"}, {1 << 21, "expected a power of two"}};
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const sheet s = {3, rows[i].alignment, 8, 2, 4, 32, 0, 1, 68};
        locus_error error = {{0}};
        locus_file *file = NULL;
        CHECK(open_sheet(&file, &s, NULL, &error) == LOCUS_ERR_FORMAT, "not refused");
        CHECK(strstr(error.text, rows[i].word) != NULL, "%s", error.text);
    }
}

static void test_refused(void)
{
    const struct {
        const char *name;
        sheet s;
        const char *word;
    } bad[] = {
        {"version", {1, 32, 8, 2, 4, 32, 0, 1, 68}, "found another version"},
        {"big-endian", {3u << 24, 32, 8, 2, 4, 32, 0, 1, 68}, "little-endian"},
        {"alignment", {3, 24, 8, 2, 4, 32, 0, 1, 68}, "expected a power of two"},
        {"type", {3, 32, 12, 2, 4, 32, 0, 1, 68}, "tensor a: found type Q4_K"},
        {"unknown", {3, 32, 99, 2, 4, 32, 0, 1, 68}, "tensor a: found type 99"},
        {"MOST_RANK", {3, 32, 8, 5, 4, 32, 0, 1, 68}, "more than 4 axes"},
        {"kind", {3, 32, 8, 2, 13, 32, 0, 1, 68}, "a value of an unknown kind"},
        {"blocks", {3, 32, 8, 2, 4, 33, 0, 1, 68}, "not whole blocks of 32"},
        {"cut", {3, 32, 8, 2, 4, 32, 0, 1, 67}, "expected 68 bytes inside of the file"},
        {"offset", {3, 32, 8, 2, 4, 32, 1, 1, 100}, "tensor a: found it at byte"},
        {"far", {3, 32, 8, 2, 4, 32, UINT64_MAX - 31, 1, 68}, "tensor a: found it at byte"},
        {"large", {3, 32, 0, 2, 4, UINT64_MAX / 2, 0, 1, 68}, "a: found extent"},
        {"many", {3, 32, 8, 2, 4, 32, 0, UINT64_MAX, 68}, "found"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        if (!check_begin("files/gguf/%s", bad[i].name)) continue;
        locus_error error = {{0}};
        locus_file *file = NULL;
        CHECK(open_sheet(&file, &bad[i].s, NULL, &error) == LOCUS_ERR_FORMAT && file == NULL,
              "not refused");
        CHECK(strstr(error.text, bad[i].word) != NULL && strchr(error.text, '\n') == NULL,
              "\"%s\" is not in: %s", bad[i].word, error.text);
    }
}

static void test_memory(void)
{
    if (!check_begin("files/gguf/allocations")) return;
    for (size_t k = 1, more = 1; more; k++) {
        test_allocator memory;
        locus_error error = {{0}};
        locus_file *file = NULL;
        test_allocator_init(&memory);
        memory.fail_at = k;
        const locus_status status = open_sheet(&file, &good, &memory.interface, &error);
        more = memory.failures > 0;
        CHECK(status == (more ? LOCUS_ERR_MEMORY : LOCUS_OK), "allocation %zu: %s", k, error.text);
        locus_file_close(file);
        CHECK(memory.live_blocks == 0, "allocation %zu: a leak", k);
    }
}

void test_gguf(void)
{
    test_blocks();
    test_many_blocks();
    test_texts();
    test_alignment();
    test_refused();
    test_memory();
    folder_empty();
}
