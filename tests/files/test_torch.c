/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"

/* What torch.save writes, by locus_weights_open: tensors and views as they are, and files of which
 * one thing is wrong. bindings/python/tests/test_torch_files.py has files of torch itself. */

#define PICKLE(text) text, sizeof(text) - 1

/* ---- a ZIP, entry by entry ---- */

typedef struct archive {
    blob file, directory;
    unsigned entries;
    unsigned method, flags; /* of the entries that come */
} archive;

static void put_u16(blob *b, unsigned value)
{
    const unsigned char bytes[2] = {(unsigned char)value, (unsigned char)(value >> 8)};
    blob_add(b, bytes, sizeof bytes);
}

static void put_u32(blob *b, size_t value)
{
    put_u16(b, (unsigned)(value & 0xFFFF));
    put_u16(b, (unsigned)(value >> 16 & 0xFFFF));
}

static void add(archive *a, const char *name, const void *bytes, size_t count)
{
    const size_t header = a->file.count, length = strlen(name);
    blob_add(&a->file, "PK\3\4\0\0\10\10", 8);
    blob_fill(&a->file, 0, 18);
    put_u16(&a->file, (unsigned)length);
    put_u16(&a->file, 4); /* padding, as torch aligns */
    blob_text(&a->file, "%s", name);
    blob_fill(&a->file, 'Z', 4);
    blob_add(&a->file, bytes, count);
    blob_add(&a->directory, "PK\1\2\0\0\0\0", 8);
    put_u16(&a->directory, a->flags);
    put_u16(&a->directory, a->method);
    blob_fill(&a->directory, 0, 8);
    put_u32(&a->directory, count);
    put_u32(&a->directory, count);
    put_u16(&a->directory, (unsigned)length);
    blob_fill(&a->directory, 0, 12);
    put_u32(&a->directory, header);
    blob_text(&a->directory, "%s", name);
    a->entries++;
}

/* The file in a->file. */
static void finish(archive *a)
{
    const size_t at = a->file.count;
    blob_add(&a->file, a->directory.bytes, a->directory.count);
    blob_add(&a->file, "PK\5\6\0\0\0\0", 8);
    put_u16(&a->file, a->entries);
    put_u16(&a->file, a->entries);
    put_u32(&a->file, a->directory.count);
    put_u32(&a->file, at);
    put_u16(&a->file, 0);
}

static void clear(archive *a)
{
    blob_clear(&a->file);
    blob_clear(&a->directory);
}

static const unsigned char numbers[24] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                          12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23};

/* A file of this pickle, beside one storage of 24 bytes. */
static void make(archive *a, const void *pickle, size_t bytes)
{
    add(a, "m/data.pkl", pickle, bytes);
    add(a, "m/byteorder", "little", 6);
    add(a, "m/data/0", numbers, sizeof numbers);
    finish(a);
}

/* ---- pickles ---- */

/* {"a": a view of 6 floats}: its offset, shape and strides are what differs. */
#define STORAGE                                                                                    \
    "(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"                                             \
    "0X\3\0\0\0cpuK\6tQ"
#define BEGIN "\200\2}q\0(X\1\0\0\0a"
#define CALL "ctorch._utils\n_rebuild_tensor_v2\n("
#define END "\211ccollections\nOrderedDict\n)Rq\1tR"
#define VIEW(where) BEGIN CALL STORAGE where END "u."

static const char rows[] = VIEW("K\0K\2K\3\206K\3K\1\206");
static const char columns[] = VIEW("K\0K\3K\2\206K\1K\3\206");
static const char slice[] = VIEW("K\2K\2\205K\1\205");

/* ---- reading ---- */

static locus_status open_blob(locus_file **file, const blob *bytes,
                              const locus_allocator *allocator, locus_error *error)
{
    char path[1024];
    snprintf(path, sizeof path, "%s", folder_path("pytorch_model.bin"));
    write_path(path, bytes);
    return locus_weights_open(file, path, allocator, error);
}

static void expect_view(const char *name, const char *pickle, size_t bytes, const char *wanted,
                        size_t count)
{
    if (!check_begin("files/torch/%s", name)) return;
    archive a = {0};
    locus_error error = {{0}};
    locus_file *file = NULL;
    unsigned char read[24] = {0};
    make(&a, pickle, bytes);
    CHECK(open_blob(&file, &a.file, NULL, &error) == LOCUS_OK, "%s", error.text);
    const locus_file_tensor *t = locus_file_find(file, "a");
    CHECK(t != NULL && strcmp(t->dtype, "F32") == 0, "the tensor");
    if (t != NULL) {
        CHECK(t->end - t->begin == 4 * count, "%d bytes", (int)(t->end - t->begin));
        CHECK(locus_file_read(file, 0, 0, 4 * count, read, &error) == LOCUS_OK, "%s", error.text);
        for (size_t i = 0; i < count; i++)
            CHECK(read[4 * i] == 4 * wanted[i], "number %zu: %d", i, read[4 * i]);
        CHECK(locus_file_read(file, 0, 4, 4, read, &error) == LOCUS_OK, "%s", error.text);
        CHECK(read[0] == 4 * wanted[1], "number 1: %d", read[0]);
    }
    locus_file_close(file);
    clear(&a);
}

static void refuse(const char *name, archive *a, const char *word)
{
    if (check_begin("files/torch/%s", name)) {
        locus_error error = {{0}};
        locus_file *file = NULL;
        CHECK(open_blob(&file, &a->file, NULL, &error) == LOCUS_ERR_FORMAT, "not refused");
        CHECK(file == NULL, "a file");
        CHECK(strstr(error.text, word) != NULL && strchr(error.text, '\n') == NULL,
              "\"%s\" is not in: %s", word, error.text);
    }
    clear(a);
}

static void test_pickles(void)
{
    static const struct {
        const char *name, *pickle;
        size_t bytes;
        const char *word;
    } bad[] = {
        {"system", PICKLE("\200\2cos\nsystem\nX\1\0\0\0x\205R."),
         "pickle byte 2: found the Python name \"os system\""},
        {"opcode", PICKLE("\200\2i."), "opcode 0x69"},
        {"protocol", PICKLE("\200\4}."), "expected protocol 2"},
        {"no-stop", PICKLE("\200\2}"), "found its end, expected STOP"},
        {"behind", PICKLE("\200\2}.."), "more than one value"},
        {"list", PICKLE("\200\2]."), "found a list, expected a dict of tensors"},
        {"integer", PICKLE(BEGIN "K\1u."), "\"a\": found an integer, expected a tensor"},
        {"key", PICKLE("\200\2}(K\1K\2u."), "a key that is no name"},
        {"odd", PICKLE("\200\2}(K\1u."), "expected pairs for a dict"},
        {"mark", PICKLE("\200\2}u."), "found no mark"},
        {"memo", PICKLE("\200\2h\7."), "beyond the memo"},
        {"gap", PICKLE("\200\2}q\7."), "a gap in the memo"},
        {"text", PICKLE("\200\2X\377\377\377\377a."), "found its end, expected more bytes"},
        {"long",
         PICKLE("\200\2\212\11"
                "123456789."),
         "more than 8 bytes"},
        {"name", PICKLE("\200\2ctorch."), "a long name of Python"},
        {"call", PICKLE("\200\2K\1)R."), "a call of something else"},
        {"deep", PICKLE("\200\2)R."), "too few values"},
        {"id", PICKLE("\200\2K\1Q."), "expected one of a storage"},
        {"lacks",
         PICKLE("\200\2(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
                "1X\3\0\0\0cpuK\6tQ."),
         "a storage that the ZIP lacks"},
        {"size",
         PICKLE("\200\2(X\7\0\0\0storagectorch\nFloatStorage\nX\1\0\0\0"
                "0X\3\0\0\0cpuK\5tQ."),
         "another size than its entry"},
        {"outside", PICKLE(VIEW("K\1K\2K\3\206K\3K\1\206")), "its storage cannot hold"},
        {"stride", PICKLE(VIEW("K\0K\2K\3\206K\4K\1\206")), "its storage cannot hold"},
        {"expanded", PICKLE(VIEW("K\0K\7\205K\0\205")), "its storage cannot hold"},
        {"negative", PICKLE(VIEW("K\0J\377\377\377\377\205K\1\205")), "its storage cannot hold"},
        {"ranks", PICKLE(VIEW("K\0K\2K\3\206K\1\205")), "other arguments of a tensor"},
        {"twice",
         PICKLE(BEGIN CALL STORAGE "K\0K\1\205K\1\205" END "X\1\0\0\0a" CALL STORAGE
                                   "K\0K\1\205K\1\205" END "u."),
         "a: found the name twice"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        archive a = {0};
        make(&a, bad[i].pickle, bad[i].bytes);
        refuse(bad[i].name, &a, bad[i].word);
    }
}

static void test_archives(void)
{
    archive a = {.method = 8};
    make(&a, rows, sizeof rows - 1);
    refuse("compressed", &a, "found a compressed entry");
    a = (archive){.flags = 1};
    make(&a, rows, sizeof rows - 1);
    refuse("encrypted", &a, "found an encrypted entry");
    a = (archive){0};
    make(&a, rows, sizeof rows - 1);
    a.file.count--;
    refuse("cut", &a, "found no directory at the end");
    a = (archive){0};
    add(&a, "m/data.pkl", rows, sizeof rows - 1);
    make(&a, rows, sizeof rows - 1);
    refuse("name-twice", &a, "the name of an entry twice");
    a = (archive){0};
    add(&a, "arr_0.npy", "x", 1);
    finish(&a);
    refuse("npz", &a, "a ZIP archive without NAME/data.pkl");
    a = (archive){0};
    add(&a, "m/byteorder", "big", 3);
    add(&a, "m/data.pkl", rows, sizeof rows - 1);
    finish(&a);
    refuse("order", &a, "expected little");
    a = (archive){0};
    make(&a, rows, sizeof rows - 1);
    a.file.bytes[a.file.count - 10] = 77; /* bytes of the directory */
    refuse("directory", &a, "ZIP: found");
    a = (archive){0};
    add(&a, "m/data.pkl", rows, sizeof rows - 1);
    memset(a.directory.bytes + 42, 0x7F, 4); /* where the entry lies */
    finish(&a);
    refuse("place", &a, "\"m/data.pkl\": found it outside of the file");
    a = (archive){0};
    blob_add(&a.file, PICKLE("\200\2\212\nl\374\234F\371 j\250P\31.\200\2M\351\3."));
    refuse("legacy", &a, "torch's format from before 1.6");
    a = (archive){0};
    blob_text(&a.file, "storages");
    blob_fill(&a.file, 0, 257 - a.file.count);
    blob_text(&a.file, "ustar");
    blob_fill(&a.file, 0, 512);
    refuse("tar", &a, "a tar archive");
}

/* A ZIP64 directory of one entry that says to have `entries`. */
static void refuse_entries(const char *name, size_t entries, const char *word)
{
    archive a = {0};
    add(&a, "m/data.pkl", "x", 1);
    const size_t at = a.file.count, bytes = a.directory.count;
    blob_add(&a.file, a.directory.bytes, bytes);
    blob_add(&a.file, "PK\6\6\54\0\0\0\0\0\0\0\55\0\55\0\0\0\0\0\0\0\0\0", 24);
    const size_t numbers_of[] = {entries, entries, bytes, at};
    for (size_t i = 0; i < 4; i++) put_u32(&a.file, numbers_of[i]), put_u32(&a.file, 0);
    blob_add(&a.file, "PK\6\7\0\0\0\0", 8);
    put_u32(&a.file, at + bytes);
    put_u32(&a.file, 0);
    put_u32(&a.file, 1);
    blob_add(&a.file, "PK\5\6\0\0\0\0\377\377\377\377", 12);
    blob_fill(&a.file, 0xFF, 8);
    put_u16(&a.file, 0);
    refuse(name, &a, word);
}

/* Both sides of LOCUS_ZIP_MAX_ENTRIES. */
static void test_directories(void)
{
    refuse_entries("entries/1000000", 1000000, "expected one more entry");
    refuse_entries("entries/1000001", 1000001, "too large a directory");
}

/* Allocation number k fails, for every k. */
static void test_memory(void)
{
    if (!check_begin("files/torch/allocations")) return;
    archive a = {0};
    make(&a, rows, sizeof rows - 1);
    for (size_t k = 1, more = 1; more; k++) {
        test_allocator memory;
        locus_error error = {{0}};
        locus_file *file = NULL;
        test_allocator_init(&memory);
        memory.fail_at = k;
        const locus_status status = open_blob(&file, &a.file, &memory.interface, &error);
        more = memory.failures > 0;
        CHECK(status == (more ? LOCUS_ERR_MEMORY : LOCUS_OK), "allocation %zu: %s", k, error.text);
        locus_file_close(file);
        CHECK(memory.live_blocks == 0, "allocation %zu: a leak", k);
    }
    clear(&a);
}

void test_torch(void)
{
    expect_view("rows", rows, sizeof rows - 1, "\0\1\2\3\4\5", 6);
    expect_view("columns", columns, sizeof columns - 1, "\0\3\1\4\2\5", 6);
    expect_view("slice", slice, sizeof slice - 1, "\2\3", 2);
    test_pickles();
    test_archives();
    test_directories();
    test_memory();
    folder_empty();
}
