/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#define _FILE_OFFSET_BITS 64
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "files/filetest.h"
#include "io/tensorfile.h"

/* F08, F09, F48, F49 and other headers of up to 100 MB: memory stays bounded. The
 * CPU times are printed for people; a test does not judge them. */

/* 99 MB; a tenth of it where a sample is asked for. */
static size_t huge(void) { return check_sample() ? 9900000 : 99000000; }

static double seconds(void)
{
    struct timespec now;
    return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) == 0
               ? (double)now.tv_sec + 1e-9 * (double)now.tv_nsec
               : 0;
}

static verdict report(const char *what, const blob *header, locus_status expected, words found)
{
    char path[1024];
    blob length = {0};
    snprintf(path, sizeof path, "%s", folder_path("large.safetensors"));
    FILE *file = fopen(path, "wb");
    blob_u64(&length, header->count);
    CHECK(file != NULL && fwrite(length.bytes, 1, 8, file) == 8 &&
              fwrite(header->bytes, 1, header->count, file) == header->count && fclose(file) == 0,
          "cannot write %s", path);
    const double begin = seconds();
    const verdict v = judge_path(path);
    const double taken = seconds() - begin;
    printf("%-28s header %9zu  heap %10zu (x%.2f)  %.3f s (%.1f ns per byte)\n", what,
           header->count, v.heap, (double)v.heap / (double)header->count, taken,
           1e9 * taken / (double)header->count);
    CHECK(v.status == expected, "status %d: %s", v.status, v.text);
    CHECK(v.heap <= 4 * header->count + HEAP_CONSTANT, "heap %zu", v.heap);
    for (size_t i = 0; i < COUNT_OF(found.text); i++)
        if (found.text[i] != NULL)
            CHECK(strstr(v.text, found.text[i]) != NULL, "no '%s' in: %s", found.text[i], v.text);
    blob_clear(&length);
    folder_empty();
    return v;
}

static void test_sparse(void)
{
    if (!check_begin("files/F08")) return;
    blob file = {0};
    blob_u64(&file, LOCUS_FILE_MAX_HEADER + 1);
    write_path(folder_path("sparse.safetensors"), &file);
    CHECK(truncate(folder_path("sparse.safetensors"), 100000009) == 0, "truncate");
    const verdict v =
        expect_refused_path(folder_path("sparse.safetensors"),
                            WORDS("length of 100000001", "at most 100000000 [S04]", NULL));
    CHECK(v.calls == 0, "%zu allocations", v.calls);
    blob_clear(&file);
    folder_empty();
}

static void test_spaces(void)
{
    if (!check_begin("files/F09")) return;
    blob header = {0};
    blob_fill(&header, ' ', LOCUS_FILE_MAX_HEADER - 2);
    blob_text(&header, "{}");
    const verdict v = report("spaces", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    blob_clear(&header);
}

static void add_empty_tensor(blob *header, size_t i)
{
    blob_text(header, "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}",
              i > 0 ? "," : "{", i);
}

static void test_many(void)
{
    blob header = {0};
    if (check_begin("files/F48")) {
        for (size_t i = 0; header.count < 99000000; i++) add_empty_tensor(&header, i);
        blob_text(&header, "}");
        report("1.7 million tensors", &header, LOCUS_ERR_FORMAT,
               WORDS("found tensor number 1000001", "at most 1000000 [S21]", NULL));
    }
    if (!check_sample() && check_begin("files/F48/1000000")) {
        header.count = 0;
        for (size_t i = 0; i < LOCUS_FILE_MAX_TENSORS; i++) add_empty_tensor(&header, i);
        blob_text(&header, "}");
        report("a million tensors", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    }
    if (!check_sample() && check_begin("files/F48/backwards")) { /* the sort has to work */
        header.count = 0;
        for (size_t i = 0; i < 1000000; i++)
            blob_text(&header,
                      "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[%zu,%zu]}",
                      i > 0 ? "," : "{", i, 999999 - i, 1000000 - i);
        blob_text(&header, "}");
        report("a million, backwards", &header, LOCUS_ERR_FORMAT,
               WORDS("1000000 bytes are missing", "[S20]", NULL));
    }
    if (check_begin("files/F48/twice")) { /* the last name is the first again */
        header.count = 0;
        for (size_t i = 0; i < 500000; i++) add_empty_tensor(&header, i);
        blob_text(&header, ",\"0\":{}}");
        report("half a million and one", &header, LOCUS_ERR_FORMAT,
               WORDS("found tensor \"0\" twice", "[S10]", NULL));
    }
    blob_clear(&header);
}

static void test_fields(void)
{
    blob header = {0};
    if (check_begin("files/F49")) {
        blob_text(&header, "{\"a\":{\"x\":[{}");
        while (header.count < huge()) blob_add(&header, ",{},{},{},{},{},{},{},{}", 24);
        blob_text(&header, "]}}");
        const verdict v = report("unknown field", &header, LOCUS_ERR_FORMAT,
                                 WORDS("byte 14: tensor \"a\": found field \"x\"", "[S12]", NULL));
        CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    }
    if (check_begin("files/F37/49 million")) {
        header.count = 0;
        blob_text(&header, "{\"a\":{\"shape\":[1");
        while (header.count < huge()) blob_add(&header, ",1,1,1,1,1,1,1,1", 16);
        blob_text(&header, "]}}");
        const verdict v = report("rank 49 million", &header, LOCUS_ERR_FORMAT,
                                 WORDS("extent number 17", "[S16]", NULL));
        CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    }
    blob_clear(&header);
}

static void test_metadata(void)
{
    blob header = {0};
    if (check_begin("files/metadata/99 MB of keys")) {
        blob_text(&header, "{\"__metadata__\":{\"\\u0001\":\"\"");
        for (size_t i = 0; i <= LOCUS_FILE_MAX_METADATA || header.count < huge(); i++)
            blob_text(&header, ",\"%zx\":\"\"", i);
        blob_text(&header, "}}");
        report("metadata keys", &header, LOCUS_ERR_FORMAT,
               WORDS("one more metadata key", "at most 1000000 [S11]", NULL));
    }
    if (check_begin("files/metadata/a million keys")) { /* the most memory per header byte */
        header.count = 0;
        blob_text(&header, "{\"__metadata__\":{\"-\":\"\"");
        for (size_t i = 0; i < 790000; i++) blob_text(&header, ",\"%zx\":\"\"", i);
        blob_text(&header, "}}");
        report("790,000 metadata keys", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    }
    if (check_begin("files/metadata/one value")) {
        header.count = 0;
        blob_text(&header, "{\"__metadata__\":{\"a\":\"");
        blob_fill(&header, 'v', huge() - header.count - 3);
        blob_text(&header, "\"}}");
        report("one metadata value", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    }
    if (check_begin("files/metadata/values")) {
        header.count = 0;
        blob_text(&header, "{\"__metadata__\":{\"-\":\"\"");
        for (size_t i = 0; header.count < huge(); i++) {
            blob_text(&header, ",\"%zx\":\"", i);
            blob_fill(&header, 'v', 3000 + i % 3000);
            blob_text(&header, "\"");
        }
        blob_text(&header, "}}");
        report("long metadata values", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    }
    if (check_begin("files/metadata/escapes")) {
        header.count = 0;
        blob_text(&header, "{\"__metadata__\":{\"a\":\"");
        while (header.count < huge()) blob_add(&header, "\\uD834\\uDD1E\\n\xE2\x82\xAC", 17);
        blob_text(&header, "\"}}");
        report("escapes", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    }
    blob_clear(&header);
}

/* Shapes cost the reader 8 bytes where the header spends 2. */
static void test_ranks(void)
{
    if (!check_begin("files/F37/ranks")) return;
    blob header = {0};
    for (size_t i = 0; i < 300000; i++)
        blob_text(&header,
                  "%s\"%zx\":{\"dtype\":\"U8\",\"shape\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"
                  "\"data_offsets\":[0,0]}",
                  i > 0 ? "," : "{", i);
    blob_text(&header, "}");
    report("300,000 of rank 16", &header, LOCUS_OK, WORDS(NULL, NULL, NULL));
    blob_clear(&header);
}

void test_large(void)
{
    test_sparse();
    test_spaces();
    test_many();
    test_fields();
    test_metadata();
    test_ranks();
}
