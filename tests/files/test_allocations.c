/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"

/* F101: allocation number k fails, for every k, once and for ever after. */

static char path[1024];

/* A file that needs every kind of allocation: many names, long text, a sort. */
static void make_rich_file(blob *file)
{
    blob header = {0};
    blob_text(&header, "{\"__metadata__\":{\"long\":\"");
    blob_fill(&header, 'v', 20000);
    blob_text(&header, "\"");
    for (int i = 0; i < 1100; i++) blob_text(&header, ",\"key %d\":\"value %d\"", i, i);
    blob_text(&header, "}");
    for (int i = 0; i < 1100; i++)
        blob_text(&header,
                  ",\"tensor %d\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%d,%d]}", i,
                  1099 - i, 1100 - i);
    blob_text(&header, "}");
    blob_file(file, header.bytes, header.count, 1100);
    blob_clear(&header);
}

static void check_clean(const test_allocator *memory, size_t k)
{
    CHECK(memory->live_blocks == 0, "allocation %zu: leak of %zu bytes", k, memory->live_bytes);
    CHECK(memory->misuse == 0, "allocation %zu: misuse", k);
}

/* One run with allocation k failing. 0: there was no such allocation. */
static int open_once(size_t k, int for_ever)
{
    test_allocator memory;
    locus_error error = {{0}};
    locus_file *file = NULL;
    test_allocator_init(&memory);
    memory.fail_at = k;
    memory.fail_for_ever = for_ever;
    const locus_status status = locus_file_open(&file, path, &memory.interface, &error);
    const locus_status expected = memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK;
    CHECK(status == expected, "allocation %zu: status %d, %s", k, status, error.text);
    CHECK((file == NULL) == (status != LOCUS_OK), "allocation %zu: the file", k);
    if (status != LOCUS_OK) CHECK(strstr(error.text, "no memory") != NULL, "%s", error.text);
    locus_file_close(file);
    check_clean(&memory, k);
    return memory.failures > 0;
}

static void test_open(void)
{
    if (!check_begin("files/F101/open")) return;
    blob file = {0};
    size_t runs = 0;
    make_rich_file(&file);
    write_path(path, &file);
    for (int for_ever = 0; for_ever < 2; for_ever++)
        for (size_t k = 1; open_once(k, for_ever); k++) runs++;
    CHECK(runs >= 2 * 20, "only %zu allocations failed", runs);
    blob_clear(&file);
    folder_empty();
}

/* Reading needs no memory at all. */
static void test_read(void)
{
    test_allocator memory;
    locus_error error = {{0}};
    locus_file *file = NULL;
    unsigned char byte = 0;
    if (!check_begin("files/F101/read")) return;
    blob rich = {0};
    make_rich_file(&rich);
    write_path(path, &rich);
    test_allocator_init(&memory);
    CHECK(locus_file_open(&file, path, &memory.interface, &error) == LOCUS_OK, "%s", error.text);
    memory.fail_at = 1;
    memory.fail_for_ever = 1;
    const size_t calls = memory.calls;
    for (size_t i = 0; i < locus_file_count(file); i++)
        CHECK(locus_file_read(file, i, 0, 1, &byte, &error) == LOCUS_OK, "%s", error.text);
    CHECK(memory.calls == calls, "reading allocates");
    locus_file_close(file);
    check_clean(&memory, 0);
    blob_clear(&rich);
    folder_empty();
}

static locus_status put_all(locus_file_writer *w, const unsigned char *data, locus_error *error)
{
    const uint64_t shape[] = {1};
    locus_status status = LOCUS_OK;
    for (int i = 0; i < 1100 && status == LOCUS_OK; i++) {
        char name[64];
        snprintf(name, sizeof name, "name %d", i);
        status = locus_file_put(w, name, "U8", 1, shape, data, error);
        if (status == LOCUS_OK) status = locus_file_put_metadata(w, name, "value", error);
    }
    return status;
}

static int write_once(size_t k, int for_ever, const blob *old)
{
    static const unsigned char data[1] = {7};
    test_allocator memory;
    locus_error error = {{0}};
    locus_file_writer *w = NULL;
    blob found = {0};
    test_allocator_init(&memory);
    memory.fail_at = k;
    memory.fail_for_ever = for_ever;
    locus_status status = locus_file_create(&w, path, &memory.interface, &error);
    if (status == LOCUS_OK) {
        status = put_all(w, data, &error);
        if (status == LOCUS_OK)
            status = locus_file_commit(w, &error);
        else
            locus_file_abandon(w);
    }
    const locus_status expected = memory.failures > 0 ? LOCUS_ERR_MEMORY : LOCUS_OK;
    CHECK(status == expected, "allocation %zu: status %d, %s", k, status, error.text);
    CHECK(folder_count() == 1, "allocation %zu: %zu files", k, folder_count());
    read_path(path, &found);
    const int same = found.count == old->count && memcmp(found.bytes, old->bytes, old->count) == 0;
    CHECK(same == (status != LOCUS_OK), "allocation %zu: the old file", k);
    check_clean(&memory, k);
    blob_clear(&found);
    return memory.failures > 0;
}

static void test_write(void)
{
    if (!check_begin("files/F101/write")) return;
    blob old = {0};
    size_t runs = 0;
    blob_file(&old, "{}", 2, 0);
    for (int for_ever = 0; for_ever < 2; for_ever++) {
        write_path(path, &old);
        for (size_t k = 1; write_once(k, for_ever, &old); k++) runs++;
    }
    CHECK(runs >= 2 * 10, "only %zu allocations failed", runs);
    blob_clear(&old);
    folder_empty();
}

/* A put that failed for want of memory can be tried again. */
static void test_retry(void)
{
    test_allocator memory;
    locus_error error = {{0}};
    locus_file_writer *w = NULL;
    const uint64_t shape[] = {1};
    const unsigned char data[1] = {7};
    if (!check_begin("files/F101/retry")) return;
    for (size_t skip = 1; skip <= 4; skip++) {
        test_allocator_init(&memory);
        CHECK(locus_file_create(&w, path, &memory.interface, &error) == LOCUS_OK, "%s", error.text);
        memory.fail_at = memory.calls + skip;
        locus_status status = locus_file_put(w, "a", "U8", 1, shape, data, &error);
        if (status == LOCUS_ERR_MEMORY)
            status = locus_file_put(w, "a", "U8", 1, shape, data, &error);
        CHECK(status == LOCUS_OK, "again: %s", error.text);
        CHECK(locus_file_commit(w, &error) == LOCUS_OK, "%s", error.text);
        CHECK(judge_path(path).status == LOCUS_OK, "the file");
        check_clean(&memory, skip);
    }
    folder_empty();
}

void test_allocations(void)
{
    snprintf(path, sizeof path, "%s", folder_path("rich.safetensors"));
    test_open();
    test_read();
    test_write();
    test_retry();
}
