/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"

/* F38-F47 and F50-F53: where tensors lie, what is in them, what they are called. */

#define ENTRY(name, dtype, shape, begin, end)                                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end \
    "]}"

static const bad_header layouts[] = {
    {38,
     "{" ENTRY("a", "F32", "4", "16", "0") "}",
     16,
     {"tensor \"a\": found begin 16 after end 0", "expected begin <= end [S18]"}},
    {38, "{" ENTRY("a", "U8", "0", "1", "0") "}", 0, {"found begin 1 after end 0", "[S18]"}},
    {39,
     "{" ENTRY("a", "U8", "4", "0", "4") "," ENTRY("b", "U8", "4", "0", "4") "}",
     4,
     {"tensor \"b\": found begin 0, expected 4", "overlaps tensor \"a\" [S19]"}},
    {39,
     "{" ENTRY("a", "U8", "4", "0", "4") "," ENTRY("b", "U8", "4", "3", "7") "}",
     7,
     {"tensor \"b\": found begin 3, expected 4", "overlaps tensor \"a\" [S19]"}},
    {39,
     "{" ENTRY("b", "U8", "4", "3", "7") "," ENTRY("a", "U8", "4", "0", "4") "}",
     7,
     {"tensor \"b\": found begin 3, expected 4", "overlaps tensor \"a\" [S19]"}},
    {39,
     "{" ENTRY("a", "U8", "4", "0", "4") "," ENTRY("z", "U8", "0", "2", "2") "}",
     4,
     {"tensor \"z\": found begin 2, expected 4", "[S19]"}},
    {40,
     "{" ENTRY("a", "U8", "4", "1", "5") "}",
     5,
     {"tensor \"a\": found begin 1, expected 0", "a hole of 1 bytes [S19]"}},
    {40,
     "{" ENTRY("a", "U8", "4", "0", "4") "," ENTRY("b", "U8", "4", "5", "9") "}",
     9,
     {"tensor \"b\": found begin 5, expected 4", "a hole of 1 bytes [S19]"}},
    {40, "{" ENTRY("z", "U8", "0", "1", "1") "}", 1, {"tensor \"z\": found begin 1", "[S19]"}},
    {43, "{" ENTRY("a", "U8", "17", "0", "17") "}", 16, {"1 bytes are missing", "[S20]"}},
    {43,
     "{" ENTRY("a", "U8", "140737488355328,8192", "0", "1152921504606846976") "}",
     16,
     {"1152921504606846960 bytes are missing", "[S20]"}},
    {43,
     "{" ENTRY("a", "F32", "1", "18446744073709551608", "18446744073709551612") "}",
     4,
     {"tensor \"a\": found begin 18446744073709551608, expected 0", "[S19]"}},
    {44,
     "{" ENTRY("a", "F32", "4", "0", "15") "}",
     15,
     {"tensor \"a\"", "which is 15 bytes, expected the 16 bytes", "[S18]"}},
    {44, "{" ENTRY("a", "F32", "4", "0", "17") "}", 17, {"which is 17 bytes", "[S18]"}},
    {44, "{" ENTRY("a", "F32", "0", "0", "4") "}", 4, {"4 bytes, expected the 0 bytes", "[S18]"}},
    {44, "{" ENTRY("a", "F32", "4", "0", "0") "}", 0, {"0 bytes, expected the 16 bytes", "[S18]"}},
    {44,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}",
     1,
     {"the end of the array"}},
    {44,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[]}}",
     1,
     {"the end of the array"}},
    {44,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,2]}}",
     1,
     {"two offsets", "[S18]"}},
    {44,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":1}}",
     1,
     {"the integer 1", "[S18]"}},
    {44, "{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,1]}}", 1, {"a shape", "[S16]"}},
    {47, "{}", 1, {"1 bytes follow the last tensor", "[S20]"}},
};

/* Tiles up to 2^64 - 4 bytes, so that 8 + header + end does not fit 64 bits. */
static void test_wrap(void)
{
    const uint64_t unit = (uint64_t)1 << 47;
    blob header = {0}, file = {0};
    uint64_t at = 0;
    if (!check_begin("files/F43/wrap")) return;
    blob_text(&header, "{");
    for (int i = 0; i < 10; i++) {
        const uint64_t factor = i < 8 ? 16383 : i == 8 ? 7 : 1;
        const uint64_t extent = i < 9 ? unit : unit - 4;
        blob_text(&header,
                  "%s\"t%d\":{\"dtype\":\"U8\",\"shape\":[%" PRIu64 ",%" PRIu64 "],"
                  "\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}",
                  i > 0 ? "," : "", i, extent, factor, at, at + extent * factor);
        at += extent * factor;
    }
    CHECK(at == UINT64_MAX - 3, "the case is not what it should be: %" PRIu64, at);
    blob_text(&header, "}");
    blob_file(&file, header.bytes, header.count, 16);
    expect_refused(&file, WORDS("found data offsets up to 18446744073709551612", "2^64", "[S20]"));
    blob_clear(&header);
    blob_clear(&file);
}

static void test_length(void)
{
    static const char header[] = "{" ENTRY("a", "F32", "4", "0", "16") "}";
    static const struct {
        const char *bytes;
        size_t count;
    } tails[] = {
        {"\0", 1}, {"PK\003\004\024\0\0\0\0\0", 10}, {"%PDF-1.7\n", 9}, {"\211HDF\r\n\032\n", 8},
        {" ", 1},
    };
    blob file = {0};
    if (check_begin("files/F41"))
        for (size_t i = 0; i < COUNT_OF(tails); i++) {
            char found[64];
            snprintf(found, sizeof found, "%zu bytes follow the last tensor", tails[i].count);
            file.count = 0;
            blob_file(&file, header, sizeof header - 1, 16);
            blob_add(&file, tails[i].bytes, tails[i].count);
            expect_refused(&file, WORDS(found, "[S20]", NULL));
        }
    if (check_begin("files/F42")) {
        file.count = 0;
        blob_file(&file, header, sizeof header - 1, 15);
        expect_refused(&file, WORDS("1 bytes are missing", "[S20]", NULL));
        file.count = (8 + sizeof header - 1 + 16) / 2;
        expect_refused(&file, WORDS("bytes are missing", "[S05]", NULL));
        file.count = 8 + sizeof header - 1;
        expect_refused(&file, WORDS("16 bytes are missing", "[S20]", NULL));
    }
    blob_clear(&file);
}

/* ---- accepted files: what they hold ---- */

static locus_file *open_header(const char *header, size_t data_bytes)
{
    blob file = {0};
    locus_file *opened = NULL;
    locus_error error = {{0}};
    blob_file(&file, header, strlen(header), data_bytes);
    write_path(folder_path("good.safetensors"), &file);
    const locus_status status =
        locus_file_open(&opened, folder_path("good.safetensors"), NULL, &error);
    CHECK(status == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_bytes(opened) == file.count, "bytes");
    CHECK(locus_file_header_bytes(opened) == strlen(header), "header bytes");
    blob_clear(&file);
    return opened;
}

static void test_sizes(void)
{
    unsigned char byte = 0xEE;
    locus_error error = {{0}};
    if (check_begin("files/F45")) {
        locus_file *file =
            open_header("{" ENTRY("b", "U8", "4", "0", "4") "," ENTRY(
                            "z", "F32", "3,0", "0", "0") "," ENTRY("y", "F64", "0", "4", "4") "}",
                        4);
        const locus_file_tensor *zero = locus_file_find(file, "z");
        CHECK(zero != NULL && zero->begin == zero->end && zero->rank == 2 && zero->shape[1] == 0,
              "the empty tensor");
        CHECK(locus_file_read(file, 1, 0, 0, NULL, &error) == LOCUS_OK, "%s", error.text);
        CHECK(locus_file_read(file, 1, 0, 1, &byte, &error) == LOCUS_ERR_ARGUMENT, "read past");
        CHECK(byte == 0xEE, "a byte was written");
        locus_file_close(file);
    }
    if (check_begin("files/F46")) {
        float value = 0;
        locus_file *file = open_header("{" ENTRY("s", "F32", "", "0", "4") "}", 4);
        const locus_file_tensor *scalar = locus_file_tensor_at(file, 0);
        CHECK(scalar != NULL && scalar->rank == 0 && scalar->shape != NULL, "the scalar");
        CHECK(locus_file_read(file, 0, 0, 4, &value, &error) == LOCUS_OK, "%s", error.text);
        locus_file_close(file);
    }
    if (check_begin("files/F47/empty")) {
        locus_file *file = open_header("{}", 0);
        CHECK(locus_file_count(file) == 0 && locus_file_metadata_count(file) == 0, "empty");
        CHECK(locus_file_find(file, "q") == NULL && locus_file_tensor_at(file, 0) == NULL, "found");
        CHECK(locus_file_metadata(file, "q") == NULL, "found metadata");
        locus_file_close(file);
    }
    folder_empty();
}

static void test_data(void)
{
    unsigned char out[32];
    locus_error error = {{0}};
    if (check_begin("files/F50")) {
        locus_file *file = open_header(
            "{" ENTRY("pad", "U8", "1", "0", "1") "," ENTRY("odd", "F32", "2", "1", "9") "}", 9);
        CHECK(locus_file_read(file, 1, 0, 8, out, &error) == LOCUS_OK, "%s", error.text);
        for (unsigned i = 0; i < 8; i++) CHECK(out[i] == i + 1, "byte %u is %u", i, out[i]);
        CHECK(locus_file_read(file, 1, 3, 5, out, &error) == LOCUS_OK, "%s", error.text);
        CHECK(out[0] == 4 && out[4] == 8, "a part");
        CHECK(locus_file_read(file, 1, 4, 5, out, &error) == LOCUS_ERR_ARGUMENT, "past the end");
        CHECK(locus_file_read(file, 1, 9, 0, out, &error) == LOCUS_ERR_ARGUMENT, "from past");
        CHECK(locus_file_read(file, 1, 8, 0, out, &error) == LOCUS_OK, "from the end");
        CHECK(locus_file_read(file, 1, UINT64_MAX, 2, out, &error) == LOCUS_ERR_ARGUMENT, "wraps");
        CHECK(locus_file_read(file, 2, 0, 0, out, &error) == LOCUS_ERR_ARGUMENT, "index");
        CHECK(locus_file_read(file, 1, 0, 8, NULL, &error) == LOCUS_ERR_ARGUMENT, "NULL");
        locus_file_close(file);
    }
    folder_empty();
}

/* NaNs with payloads, infinities, subnormals and odd booleans come back bit by bit. */
static void test_values(void)
{
    static const unsigned char data[] = {
        0x01, 0x00, 0x80, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0x00, 0x00, 0x80, 0x7F, /* NaN NaN Inf */
        0x00, 0x00, 0x80, 0xFF, 0x01, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x80, /* -Inf tiny -0 */
        0x00, 0x01, 0x02, 0xFF,
    };
    static const char header[] =
        "{" ENTRY("f", "F32", "6", "0", "24") "," ENTRY("b", "BOOL", "4", "24", "28") "}";
    unsigned char out[sizeof data] = {0};
    locus_error error = {{0}};
    if (!check_begin("files/F51+F53")) return;
    blob file = {0};
    locus_file *opened = NULL;
    blob_u64(&file, sizeof header - 1);
    blob_add(&file, header, sizeof header - 1);
    blob_add(&file, data, sizeof data);
    write_path(folder_path("values.safetensors"), &file);
    CHECK(locus_file_open(&opened, folder_path("values.safetensors"), NULL, &error) == LOCUS_OK,
          "%s", error.text);
    CHECK(locus_file_read(opened, 0, 0, 24, out, &error) == LOCUS_OK, "%s", error.text);
    CHECK(locus_file_read(opened, 1, 0, 4, out + 24, &error) == LOCUS_OK, "%s", error.text);
    CHECK(memcmp(out, data, sizeof data) == 0, "the bytes changed");
    locus_file_close(opened);
    blob_clear(&file);
    folder_empty();
}

static void name_case(const char *escaped, const char *plain)
{
    char header[512];
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", escaped);
    locus_file *file = open_header(header, 0);
    CHECK(locus_file_find(file, plain) != NULL, "name %s", escaped);
    locus_file_close(file);
    /* In a message the same name is one clean line (judge_path looks for escapes). */
    snprintf(header, sizeof header,
             "{\"%s\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,0]}}", escaped);
    expect_header_refused(header, 0, WORDS("tensor \"", "[S18]", NULL));
}

static void long_name(size_t bytes, int good)
{
    blob header = {0}, file = {0};
    blob_text(&header, "{\"");
    blob_fill(&header, 'n', bytes);
    blob_text(&header, "\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}");
    blob_file(&file, header.bytes, header.count, 0);
    const verdict v = good ? expect_accepted(&file)
                           : expect_refused(&file, WORDS("byte 9: ", "at most 4096 [S13]", NULL));
    CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    blob_clear(&header);
    blob_clear(&file);
}

static void test_names(void)
{
    if (!check_begin("files/F52")) return;
    expect_header_refused("{" ENTRY("", "U8", "0", "0", "0") "}", 0,
                          WORDS("byte 9: tensor: found an empty name", "[S13]", NULL));
    expect_header_refused("{" ENTRY("a\\u0000b", "U8", "0", "0", "0") "}", 0,
                          WORDS("byte 9: tensor: found a name with a NUL", "[S13]", NULL));
    long_name(4096, 1);
    long_name(4097, 0);
    long_name(1000000, 0);
    name_case("\\u001b[31mred", "\033[31mred");
    name_case("\\u202egnirts", "\xE2\x80\xAEgnirts");
    name_case("%n%s%99999d", "%n%s%99999d");
    name_case("../../x", "../../x");
    name_case("a\\nb\\tc", "a\nb\tc");
    name_case("/etc/passwd", "/etc/passwd");
    folder_empty();
}

static void test_metadata(void)
{
    const char *key = NULL, *value = NULL;
    if (!check_begin("files/metadata")) return;
    locus_file *file = open_header("{\"t\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                                   "\"__metadata__\":{\"b\":\"1\",\"a\":\"\",\"\\u00e9\":\"\\n\"}}",
                                   0);
    CHECK(locus_file_metadata_count(file) == 3 && locus_file_count(file) == 1, "counts");
    locus_file_metadata_at(file, 0, &key, &value);
    CHECK(key != NULL && strcmp(key, "b") == 0 && strcmp(value, "1") == 0, "the first");
    locus_file_metadata_at(file, 3, &key, &value);
    CHECK(key == NULL && value == NULL, "beyond the last");
    value = locus_file_metadata(file, "a");
    CHECK(value != NULL && value[0] == '\0', "empty value");
    value = locus_file_metadata(file, "\xC3\xA9");
    CHECK(value != NULL && strcmp(value, "\n") == 0, "unescaped value");
    CHECK(locus_file_metadata(file, "c") == NULL, "absent key");
    CHECK(locus_file_find(file, "__metadata__") == NULL, "metadata is not a tensor");
    locus_file_close(file);
    folder_empty();
}

void test_layout(void)
{
    expect_table_refused(layouts, COUNT_OF(layouts));
    test_wrap();
    test_length();
    test_sizes();
    test_data();
    test_values();
    test_names();
    test_metadata();
}
