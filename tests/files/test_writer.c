/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE 1
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "files/filetest.h"
#include "io/bytes.h"

/* The writer: the bytes of the file, what it refuses, what is on disk afterwards. */

static char out_path[1024];

static locus_file_writer *create(void)
{
    locus_file_writer *writer = NULL;
    locus_error error = {{0}};
    CHECK(locus_file_create(&writer, out_path, NULL, &error) == LOCUS_OK, "%s", error.text);
    return writer;
}

/* ---- F54: the same bytes from any machine ---- */

/* `native` holds values as this machine has them; pretend builds turn them round. */
static void test_bytes(void)
{
    static const char header[] =
        "{\"__metadata__\":{\"k\\\"\":\"\\u0001\\\\\xC3\xA9\"},"
        "\"f\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
        "\"h\":{\"dtype\":\"U16\",\"shape\":[1,2],\"data_offsets\":[8,12]},"
        "\"d\":{\"dtype\":\"U64\",\"shape\":[],\"data_offsets\":[12,20]},"
        "\"c\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[20,28]},"
        "\"b\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[28,31]},"
        "\"z\":{\"dtype\":\"F32\",\"shape\":[0,5],\"data_offsets\":[31,31]}}";
    static const unsigned char data[] = {
        0x00, 0x00, 0x80, 0x3F, 0x01, 0x00, 0x80, 0xFF, /* 1.0f, a NaN      */
        0x02, 0x01, 0x04, 0x03,                         /* 0x0102, 0x0304   */
        8,    7,    6,    5,    4,    3,    2,    1,    /* 0x0102030405060708 */
        0x00, 0x00, 0x00, 0x40, 0x00, 0x00, 0x40, 0x40, /* 2 + 3i           */
        9,    8,    7,
    };
    static const size_t word[] = {4, 2, 8, 4, 1}, at[] = {0, 8, 12, 20, 28, 31};
    unsigned char native[sizeof data];
    blob expected = {0}, found = {0};
    locus_error error = {{0}};
    const uint64_t two[] = {2}, pair[] = {1, 2}, one[] = {1}, three[] = {3}, none[] = {0, 5};
    if (!check_begin("files/F54")) return;
    memcpy(native, data, sizeof data);
    for (size_t i = 0; i < COUNT_OF(word); i++)
        locus_swap_words(native + at[i], at[i + 1] - at[i], word[i]);
#ifdef LOCUS_PRETEND_BIG_ENDIAN
    CHECK(native[0] == 0x3F && native[12] == 1, "this build does not swap");
#endif
    locus_file_writer *w = create();
    CHECK(locus_file_put(w, "f", "F32", 1, two, native, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_put(w, "h", "U16", 2, pair, native + 8, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_put(w, "d", "U64", 0, NULL, native + 12, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(locus_file_put(w, "c", "C64", 1, one, native + 20, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_put_metadata(w, "k\"", "\001\\\xC3\xA9", &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(locus_file_put(w, "b", "U8", 1, three, native + 28, &error) == LOCUS_OK, "%s",
          error.text);
    CHECK(locus_file_put(w, "z", "F32", 2, none, NULL, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_commit(w, &error) == LOCUS_OK, "%s", error.text);
    const size_t padded = (sizeof header - 1 + 7) / 8 * 8;
    blob_u64(&expected, padded);
    blob_text(&expected, "%s", header);
    blob_fill(&expected, ' ', padded - (sizeof header - 1));
    blob_add(&expected, data, sizeof data);
    read_path(out_path, &found);
    CHECK(found.count == expected.count && memcmp(found.bytes, expected.bytes, found.count) == 0,
          "the bytes differ");
    CHECK(folder_count() == 1, "%zu files", folder_count());
    CHECK(judge_path(out_path).status == LOCUS_OK, "our own file is refused");
    blob_clear(&expected);
    blob_clear(&found);
    folder_empty();
}

/* ---- round trip ---- */

static void check_large(const locus_file *file, const unsigned char *data, size_t bytes)
{
    unsigned char *back = malloc(bytes);
    locus_error error = {{0}};
    if (!CHECK(back != NULL, "no memory")) return;
    CHECK(locus_file_read(file, 0, 0, bytes, back, &error) == LOCUS_OK, "%s", error.text);
    locus_swap_words(back, bytes, 4);
    CHECK(memcmp(back, data, bytes) == 0, "the data changed");
    free(back);
}

/* More data than every buffer, more tensors than one chunk, long and odd names. */
static void test_round_trip(void)
{
    enum { WORDS_OF_DATA = 100003, MANY = 3000 };
    const size_t bytes = 4 * (size_t)WORDS_OF_DATA;
    const uint64_t shape[] = {WORDS_OF_DATA}, one[] = {1};
    unsigned char *data = malloc(bytes);
    locus_file *file = NULL;
    locus_error error = {{0}};
    char name[64];
    if (!check_begin("files/writer/round trip")) {
        free(data);
        return;
    }
    for (size_t i = 0; i < bytes; i++) data[i] = (unsigned char)(i * 2654435761u >> 13);
    locus_file_writer *w = create();
    CHECK(locus_file_put(w, "large", "F32", 1, shape, data, &error) == LOCUS_OK, "%s", error.text);
    for (int i = 0; i < MANY; i++) {
        snprintf(name, sizeof name, "t.%d.\"\\\n\xE2\x82\xAC", i);
        CHECK(locus_file_put(w, name, "U8", 1, one, data + i, &error) == LOCUS_OK, "%s",
              error.text);
        CHECK(locus_file_put_metadata(w, name, name, &error) == LOCUS_OK, "%s", error.text);
    }
    CHECK(locus_file_commit(w, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_open(&file, out_path, NULL, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_count(file) == MANY + 1 && locus_file_metadata_count(file) == MANY, "counts");
    CHECK(locus_file_header_bytes(file) % 8 == 0, "the data section is not aligned");
    check_large(file, data, bytes);
    for (int i = 0; i < MANY; i++) {
        unsigned char byte = 0;
        snprintf(name, sizeof name, "t.%d.\"\\\n\xE2\x82\xAC", i);
        const char *value = locus_file_metadata(file, name);
        CHECK(value != NULL && strcmp(value, name) == 0, "metadata %d", i);
        CHECK(locus_file_find(file, name) == locus_file_tensor_at(file, (size_t)i + 1), "find %d",
              i);
        CHECK(locus_file_read(file, (size_t)i + 1, 0, 1, &byte, NULL) == LOCUS_OK &&
                  byte == data[i],
              "data %d", i);
    }
    locus_file_close(file);
    free(data);
    folder_empty();
}

/* ---- refusals ---- */

static void refuse_put(locus_file_writer *w, const char *name, const char *dtype, uint32_t rank,
                       const uint64_t *shape, const void *data, const char *word)
{
    locus_error error = {{0}};
    const locus_status status = locus_file_put(w, name, dtype, rank, shape, data, &error);
    CHECK(status == LOCUS_ERR_ARGUMENT, "status %d: %s", status, error.text);
    CHECK(strstr(error.text, word) != NULL, "no '%s' in: %s", word, error.text);
    CHECK(strncmp(error.text, out_path, strlen(out_path)) == 0, "no path in: %s", error.text);
}

static void test_refusals(void)
{
    const uint64_t two[] = {2}, wide[] = {(uint64_t)1 << 48}, odd[] = {3};
    const uint64_t vast[] = {(uint64_t)1 << 40, (uint64_t)1 << 40};
    const uint64_t ones[17] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    const float data[4] = {1, 2, 3, 4};
    char long_name[4098];
    locus_error error = {{0}};
    if (!check_begin("files/writer/refuses")) return;
    memset(long_name, 'n', sizeof long_name);
    long_name[4097] = '\0';
    locus_file_writer *w = create();
    CHECK(locus_file_put(w, "a", "F32", 1, two, data, &error) == LOCUS_OK, "%s", error.text);
    refuse_put(w, "a", "F32", 1, two, data, "twice");
    refuse_put(w, "", "F32", 1, two, data, "empty name");
    refuse_put(w, "__metadata__", "F32", 1, two, data, "name of the metadata");
    refuse_put(w, long_name, "F32", 1, two, data, "at most 4096");
    refuse_put(w, "\xFF", "F32", 1, two, data, "UTF-8");
    refuse_put(w, "\xE2\x82", "F32", 1, two, data, "UTF-8");
    refuse_put(w, "b", "F33", 1, two, data, "dtype");
    refuse_put(w, "b", "F32", 17, ones, data, "rank");
    refuse_put(w, "b", "F32", 1, NULL, data, "shape");
    refuse_put(w, "b", "F32", 1, two, NULL, "data");
    refuse_put(w, "b", "U8", 1, wide, data, "2^48");
    refuse_put(w, "b", "F32", 2, vast, data, "overflows");
    refuse_put(w, "b", "F4", 1, odd, data, "whole bytes");
    CHECK(locus_file_put(w, NULL, "F32", 1, two, data, NULL) == LOCUS_ERR_ARGUMENT, "NULL name");
    CHECK(locus_file_put_metadata(w, "k", "v", &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_put_metadata(w, "k", "v", &error) == LOCUS_ERR_ARGUMENT, "duplicate key");
    CHECK(locus_file_put_metadata(w, "", "v", &error) == LOCUS_ERR_ARGUMENT, "empty key");
    CHECK(locus_file_put_metadata(w, "j", "\xC0\x80", &error) == LOCUS_ERR_ARGUMENT, "bad UTF-8");
    CHECK(locus_file_put_metadata(w, "j", NULL, NULL) == LOCUS_ERR_ARGUMENT, "NULL value");
    CHECK(locus_file_commit(w, &error) == LOCUS_OK, "%s", error.text); /* what was good is there */
    CHECK(judge_path(out_path).status == LOCUS_OK, "refused");
    CHECK(locus_file_commit(NULL, NULL) == LOCUS_ERR_ARGUMENT, "NULL writer");
    folder_empty();
}

static void test_header_limit(void)
{
    locus_error error = {{0}};
    if (!check_begin("files/writer/header limit")) return;
    char *value = malloc(100000001);
    if (!CHECK(value != NULL, "no memory")) return;
    memset(value, 'v', 100000000);
    value[100000000] = '\0';
    locus_file_writer *w = create();
    CHECK(locus_file_put_metadata(w, "k", value, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_commit(w, &error) == LOCUS_ERR_ARGUMENT, "a header above the limit");
    CHECK(strstr(error.text, "at most 100000000") != NULL, "%s", error.text);
    CHECK(folder_count() == 0, "%zu files", folder_count());
    free(value);
}

/* ---- what is on disk ---- */

static void write_small(const char *text, locus_status expected, const char *word)
{
    locus_error error = {{0}};
    locus_file_writer *writer = create();
    CHECK(locus_file_put_metadata(writer, "text", text, &error) == LOCUS_OK, "%s", error.text);
    const locus_status status = locus_file_commit(writer, &error);
    CHECK(status == expected, "status %d: %s", status, error.text);
    if (word != NULL) CHECK(strstr(error.text, word) != NULL, "no '%s' in: %s", word, error.text);
}

static void expect_small(const char *text)
{
    locus_file *file = NULL;
    locus_error error = {{0}};
    CHECK(locus_file_open(&file, out_path, NULL, &error) == LOCUS_OK, "%s", error.text);
    const char *found = locus_file_metadata(file, "text");
    CHECK(found != NULL && strcmp(found, text) == 0, "found %s", found != NULL ? found : "nothing");
    locus_file_close(file);
}

static void test_disk(void)
{
    if (check_begin("files/writer/abandon")) {
        locus_file_writer *w = create();
        CHECK(locus_file_put_metadata(w, "k", "v", NULL) == LOCUS_OK, "put");
        CHECK(folder_count() == 0, "something is there before commit");
        locus_file_abandon(w);
        locus_file_abandon(NULL);
        CHECK(folder_count() == 0, "%zu files", folder_count());
    }
    if (check_begin("files/writer/replace")) {
        struct stat found;
        const mode_t old = umask(027);
        write_small("old", LOCUS_OK, NULL);
        write_small("new", LOCUS_OK, NULL);
        umask(old);
        expect_small("new");
        CHECK(folder_count() == 1, "%zu files", folder_count());
        CHECK(stat(out_path, &found) == 0 && (found.st_mode & 0777) == 0640, "mode %o",
              (unsigned)found.st_mode & 0777u);
        folder_empty();
    }
    if (check_begin("files/writer/two at once")) { /* the last to commit stays */
        locus_error error = {{0}};
        locus_file_writer *a = create(), *b = create();
        CHECK(locus_file_put_metadata(a, "text", "a", &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_file_put_metadata(b, "text", "b", &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_file_commit(b, &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_file_commit(a, &error) == LOCUS_OK, "%s", error.text);
        expect_small("a");
        CHECK(folder_count() == 1, "%zu files", folder_count());
        folder_empty();
    }
}

/* F102: the system takes a part and then no more. */
static void test_full(void)
{
    struct rlimit old, low;
    enum { BYTES = 1 << 20 };
    const uint64_t shape[] = {BYTES};
    locus_error error = {{0}};
    if (!check_begin("files/F102")) return;
    unsigned char *data = calloc(BYTES, 1);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    write_small("old", LOCUS_OK, NULL);
    locus_file_writer *w = create();
    CHECK(locus_file_put(w, "a", "U8", 1, shape, data, &error) == LOCUS_OK, "%s", error.text);
    CHECK(getrlimit(RLIMIT_FSIZE, &old) == 0, "getrlimit");
    low = old;
    low.rlim_cur = 4096;
    CHECK(setrlimit(RLIMIT_FSIZE, &low) == 0, "setrlimit");
    const locus_status status = locus_file_commit(w, &error);
    CHECK(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
    signal(SIGXFSZ, handler);
    CHECK(status == LOCUS_ERR_IO, "status %d: %s", status, error.text);
    CHECK(strstr(error.text, "cannot write: ") != NULL, "%s", error.text);
    CHECK(folder_count() == 1, "%zu files", folder_count());
    expect_small("old");
    free(data);
    folder_empty();
}

static void refuse_create(const char *path, const char *word)
{
    locus_file_writer *writer = (locus_file_writer *)(void *)&writer;
    locus_error error = {{0}};
    const locus_status status = locus_file_create(&writer, path, NULL, &error);
    CHECK(status == LOCUS_ERR_IO && writer == NULL, "%s: status %d", path, status);
    CHECK(strstr(error.text, word) != NULL, "no '%s' in: %s", word, error.text);
    CHECK(strncmp(error.text, path, strlen(path) < 150 ? strlen(path) : 150) == 0, "no path in: %s",
          error.text);
}

static void test_places(void)
{
    char path[1024];
    if (check_begin("files/writer/special")) {
        refuse_create("/dev/null", "is not a regular file");
        refuse_create("/dev/full", "is not a regular file");
        refuse_create(folder_path("."), "is not a regular file");
        refuse_create(folder_path(""), "is not a regular file");
        refuse_create("", "is not a regular file");
        refuse_create(folder_path("none/x.safetensors"), "cannot open the folder");
        snprintf(path, sizeof path, "%s", folder_path("fifo"));
        CHECK(mkfifo(path, 0600) == 0, "mkfifo");
        refuse_create(path, "is not a regular file: found a FIFO");
        folder_empty();
        memset(path, 'x', 300);
        path[300] = '\0';
        refuse_create(path, "cannot write");
    }
    if (check_begin("files/writer/became special")) { /* between create and commit */
        locus_error error = {{0}};
        locus_file_writer *w = create();
        CHECK(mkfifo(out_path, 0600) == 0, "mkfifo");
        CHECK(locus_file_commit(w, &error) == LOCUS_ERR_IO, "replaced a FIFO");
        CHECK(folder_count() == 1, "%zu files", folder_count());
        folder_empty();
    }
    if (check_begin("files/writer/symlink")) { /* the link is replaced, not its target */
        blob file = {0};
        snprintf(path, sizeof path, "%s", folder_path("target"));
        blob_file(&file, "{}", 2, 0);
        write_path(path, &file);
        CHECK(symlink(path, out_path) == 0, "symlink");
        write_small("new", LOCUS_OK, NULL);
        expect_small("new");
        blob target = {0};
        read_path(path, &target);
        CHECK(target.count == file.count, "the target was written");
        blob_clear(&file);
        blob_clear(&target);
        folder_empty();
    }
    if (check_begin("files/writer/long name")) {
        char name[256], kept[1024];
        memset(name, 'n', 255);
        name[255] = '\0';
        snprintf(kept, sizeof kept, "%s", out_path);
        snprintf(out_path, sizeof out_path, "%s", folder_path(name));
        write_small("long", LOCUS_OK, NULL);
        expect_small("long");
        snprintf(out_path, sizeof out_path, "%s", kept);
        folder_empty();
    }
}

void test_writer(void)
{
    snprintf(out_path, sizeof out_path, "%s", folder_path("out.safetensors"));
    test_bytes();
    test_round_trip();
    test_refusals();
    test_header_limit();
    test_disk();
    test_full();
    test_places();
}
