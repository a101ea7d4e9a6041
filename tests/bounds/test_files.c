/* SPDX-License-Identifier: Apache-2.0 */
/* Files around every constant of the writer, the scanner and the store: what is written is what
 * is read, byte for byte, by index, by name and in pieces. */

#define _POSIX_C_SOURCE 200809L
#include <locus/tensorfile.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bounds/constants.h"
#include "support/check.h"
#include "support/problem.h"

static char path[64];

static unsigned char byte_of(uint64_t tensor, uint64_t at)
{
    return (unsigned char)(at * 7 + at / 251 + tensor * 31 + 1);
}

typedef struct entry {
    char *name; /* or the key of metadata, with a value of `bytes` letters */
    uint64_t bytes;
    int is_metadata;
} entry;

static char *letters(uint64_t seed, size_t count)
{
    char *text = malloc(count + 1);
    if (text == NULL) exit(2);
    for (size_t i = 0; i < count; i++) text[i] = (char)('a' + (int)(26 * test_uniform(seed, i)));
    text[count] = '\0';
    return text;
}

static locus_status write_entries(const entry *entries, size_t count, locus_error *error)
{
    locus_file_writer *writer = NULL;
    unsigned char **data = calloc(count, sizeof *data);
    locus_status status = locus_file_create(&writer, path, NULL, error);
    for (size_t i = 0; status == LOCUS_OK && i < count; i++) {
        const entry *e = &entries[i];
        if (e->is_metadata) {
            char *value = letters(i + 1, (size_t)e->bytes);
            status = locus_file_put_metadata(writer, e->name, value, error);
            free(value);
            continue;
        }
        data[i] = malloc((size_t)e->bytes + 1);
        for (uint64_t at = 0; at < e->bytes; at++) data[i][at] = byte_of(i, at);
        status = locus_file_put(writer, e->name, "U8", 1, &e->bytes, data[i], error);
    }
    if (status == LOCUS_OK)
        status = locus_file_commit(writer, error);
    else
        locus_file_abandon(writer);
    for (size_t i = 0; i < count; i++) free(data[i]);
    free(data);
    return status;
}

/* All of it at once, and the middle third alone. */
static void check_data(const locus_file *file, size_t index, uint64_t tensor, uint64_t bytes)
{
    unsigned char *got = malloc((size_t)bytes + 1);
    locus_error error = {{0}};
    const uint64_t from[] = {0, bytes / 3}, amount[] = {bytes, bytes / 3};
    for (int part = 0; part < 2; part++) {
        memset(got, 0, (size_t)bytes);
        CHECK(locus_file_read(file, index, from[part], amount[part], got, &error) == LOCUS_OK, "%s",
              error.text);
        uint64_t same = 0;
        while (same < amount[part] && got[same] == byte_of(tensor, from[part] + same)) same++;
        CHECK(same == amount[part], "byte %llu of tensor %zu differs",
              (unsigned long long)(from[part] + same), index);
    }
    free(got);
}

static void check_entry(const locus_file *file, const entry *e, size_t number)
{
    if (e->is_metadata) {
        const char *got = locus_file_metadata(file, e->name);
        char *want = letters(number + 1, (size_t)e->bytes);
        CHECK(got != NULL && strcmp(got, want) == 0, "metadata %.20s...", e->name);
        free(want);
        return;
    }
    const locus_file_tensor *t = locus_file_find(file, e->name);
    if (!CHECK(t != NULL, "tensor %.20s... is not found", e->name)) return;
    CHECK(strcmp(t->name, e->name) == 0 && t->rank == 1 && t->shape[0] == e->bytes &&
              t->end - t->begin == e->bytes,
          "tensor %.20s...", e->name);
    for (size_t i = 0; i < locus_file_count(file); i++)
        if (locus_file_tensor_at(file, i) == t) {
            if (e->bytes > 0) check_data(file, i, number, e->bytes);
            return;
        }
    CHECK(0, "tensor %.20s... has no index", e->name);
}

/* Write, read, compare, and give the names back. */
static void round_trip(entry *entries, size_t count)
{
    locus_error error = {{0}};
    CHECK(write_entries(entries, count, &error) == LOCUS_OK, "%s", error.text);
    locus_file *file = NULL;
    if (CHECK(locus_file_open(&file, path, NULL, &error) == LOCUS_OK, "%s", error.text)) {
        size_t tensors = 0;
        for (size_t i = 0; i < count; i++) tensors += !entries[i].is_metadata;
        CHECK(locus_file_count(file) == tensors, "%zu tensors", locus_file_count(file));
        CHECK(locus_file_metadata_count(file) == count - tensors, "%zu entries",
              locus_file_metadata_count(file));
        const size_t step = count > 200 ? count / 97 : 1;
        for (size_t i = 0; i < count; i += step) check_entry(file, &entries[i], i);
        check_entry(file, &entries[count - 1], count - 1);
    }
    locus_file_close(file);
    for (size_t i = 0; i < count; i++) free(entries[i].name);
}

/* ---- sizes ---- */

/* The data of a tensor, and of several one behind the other, around the writer's buffer. */
static void test_data(const char *constant)
{
    const uint64_t size = (uint64_t)constant_value(constant);
    for (uint64_t multiple = 1; multiple <= 2; multiple++)
        for (uint64_t step = 0; step <= 2; step++) {
            if (!check_begin("bounds/%s/%llu", constant,
                             (unsigned long long)(multiple * size + step - 1)))
                continue;
            entry entries[] = {{letters(1, 3), multiple * size + step - 1, 0},
                               {letters(2, 4), 5, 0},
                               {letters(3, 5), size - 2 + step, 0},
                               {letters(4, 6), 0, 0},
                               {letters(5, 7), 3 * size + 1, 0}};
            round_trip(entries, 5);
        }
}

/* Headers whose bytes of text meet the end of the scanner's window: long metadata shifts what
 * follows, one byte at a time. */
static void test_text(const char *constant, size_t times)
{
    const size_t size = (size_t)constant_value(constant) * times;
    for (size_t shift = 0; shift < (check_sample() ? 20 : 70); shift++) {
        if (!check_begin("bounds/%s/text-%zu", constant, size - shift)) continue;
        entry entries[] = {{letters(1, 6), size - shift, 1},
                           {letters(2, 5), 3, 1},
                           {letters(3, 9), 11, 0},
                           {letters(4, 40), 7, 0}};
        round_trip(entries, 4);
    }
}

/* Names of many lengths fill chunks of the store up to their last bytes. */
static void test_names(const char *constant)
{
    const size_t size = (size_t)constant_value(constant), most = LOCUS_FILE_MAX_NAME;
    for (int64_t step = -2; step <= 2; step++) {
        if (!check_begin("bounds/%s/names%+d", constant, (int)step)) continue;
        enum { COUNT = 40 };
        entry entries[COUNT];
        for (size_t i = 0; i < COUNT; i++) {
            const size_t length = (size_t)((int64_t)size + step) / (1 + i % 9);
            entries[i] = (entry){letters(i + 1, length < most ? length : most - i % 3), i % 5, 0};
        }
        round_trip(entries, COUNT);
    }
}

/* So many tensors and metadata entries. */
static void test_count(const char *constant, size_t times, int is_metadata)
{
    const size_t size = (size_t)constant_value(constant) * times;
    for (size_t count = size - 1; count <= size + 1; count++) {
        if (!check_begin("bounds/%s/%s-%zu", constant, is_metadata ? "metadata" : "tensors", count))
            continue;
        entry *entries = calloc(count, sizeof *entries);
        for (size_t i = 0; i < count; i++) {
            entries[i] = (entry){malloc(24), i % 3, is_metadata};
            snprintf(entries[i].name, 24, "name.%zu", i);
        }
        round_trip(entries, count);
        free(entries);
    }
}

/* ---- limits ---- */

static void test_limits(void)
{
    locus_error error = {{0}};
    for (int over = 0; over < 2; over++) {
        if (check_begin("bounds/include/LOCUS_FILE_MAX_NAME/%d", over)) {
            entry e = {letters(1, LOCUS_FILE_MAX_NAME + (size_t)over), 4, 0};
            if (over) {
                CHECK(write_entries(&e, 1, &error) != LOCUS_OK, "a name too long is written");
                free(e.name);
            } else {
                round_trip(&e, 1);
            }
        }
        if (check_begin("bounds/include/LOCUS_FILE_MAX_RANK/%d", over)) {
            uint64_t shape[LOCUS_FILE_MAX_RANK + 1];
            for (size_t i = 0; i <= LOCUS_FILE_MAX_RANK; i++) shape[i] = 1;
            locus_file_writer *writer = NULL;
            CHECK(locus_file_create(&writer, path, NULL, &error) == LOCUS_OK, "%s", error.text);
            const locus_status status =
                locus_file_put(writer, "x", "U8", LOCUS_FILE_MAX_RANK + (uint32_t)over, shape, "1",
                               &error);
            CHECK((status == LOCUS_OK) == !over, "rank %d", LOCUS_FILE_MAX_RANK + over);
            locus_file_abandon(writer);
        }
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    snprintf(path, sizeof path, "/tmp/locus-bounds-%ld.safetensors", (long)getpid());
    test_data("io/BUFFER_BYTES");
    test_text("io/LOCUS_JSON_WINDOW", 1);
    test_text("io/LOCUS_JSON_WINDOW", 2);
    test_text("io/BUFFER_BYTES", 1);
    test_names("io/LARGE");
    test_names("io/CHUNK");
    for (size_t times = 1; times <= 2; times++) {
        test_count("io/LOCUS_LIST_CHUNK", times, 0);
        test_count("io/LOCUS_LIST_CHUNK", times, 1);
        test_count("io/FIRST_SLOTS", times, 0);
        test_count("io/FIRST_SLOTS", times, 1);
    }
    test_limits();
    remove(path);
    return check_finish("bounds/files");
}
