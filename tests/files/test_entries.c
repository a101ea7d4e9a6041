/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"

/* F20-F37: names, fields, types and shapes. */

#define ENTRY(name, dtype, shape, begin, end)                                                      \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":[" shape "],\"data_offsets\":[" begin "," end \
    "]}"
#define ONE(dtype, shape, begin, end) "{" ENTRY("a", dtype, shape, begin, end) "}"

static const bad_header entries[] = {
    {20,
     "{" ENTRY("a", "F32", "4", "0", "16") "," ENTRY("a", "F32", "2,2", "0", "16") "}",
     16,
     {"byte 63: found tensor \"a\" twice", "expected once [S10]"}},
    {20,
     "{" ENTRY("a", "F32", "4", "0", "16") "," ENTRY("a", "I32", "4", "0", "16") "}",
     16,
     {"found tensor \"a\" twice", "[S10]"}},
    {20,
     "{" ENTRY("a", "U8", "4", "0", "4") "," ENTRY("a", "U8", "4", "4", "8") "}",
     8,
     {"found tensor \"a\" twice", "[S10]"}},
    {21,
     "{" ENTRY("a", "F32", "4", "0", "16") "," ENTRY("\\u0061", "F32", "4", "0", "16") "}",
     16,
     {"found tensor \"a\" twice", "[S10]"}},
    {21,
     "{" ENTRY("\\/", "U8", "0", "0", "0") "," ENTRY("/", "U8", "0", "0", "0") "}",
     0,
     {"found tensor \"/\" twice", "[S10]"}},
    {22,
     "{\"__metadata__\":{},\"__metadata__\":{}}",
     0,
     {"byte 27: found \"__metadata__\" twice", "[S10]"}},
    {22, "{\"__metadata__\":{},\"\\u005f_metadata__\":{}}", 0, {"\"__metadata__\" twice", "[S10]"}},
    {23,
     "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}",
     0,
     {"byte 33: found metadata key \"k\" twice", "[S10]"}},
    {23, "{\"__metadata__\":{\"k\":\"1\",\"\\u006b\":\"1\"}}", 0, {"key \"k\" twice", "[S10]"}},
    {24,
     "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"byte 27: tensor \"a\": found field \"dtype\" twice", "expected once [S10]"}},
    {24,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"sh\\u0061pe\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"found field \"shape\" twice", "[S10]"}},
    {24,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"data_offsets\":[0,0]}}",
     0,
     {"found field \"data_offsets\" twice", "[S10]"}},
    {25, "{\"__metadata__\":null}", 0, {"byte 24: ", "found null", "an object of strings [S11]"}},
    {25, "{\"__metadata__\":[]}", 0, {"found an array", "an object of strings [S11]"}},
    {25, "{\"__metadata__\":\"x\"}", 0, {"found a string", "an object of strings [S11]"}},
    {25, "{\"__metadata__\":1}", 0, {"found the integer 1", "an object of strings [S11]"}},
    {26,
     "{\"__metadata__\":{\"k\":1}}",
     0,
     {"metadata \"k\": found the integer 1", "a string [S11]"}},
    {26, "{\"__metadata__\":{\"k\":{}}}", 0, {"metadata \"k\": found an object", "a string [S11]"}},
    {26, "{\"__metadata__\":{\"k\":null}}", 0, {"metadata \"k\": found null", "a string [S11]"}},
    {26, "{\"__metadata__\":{\"k\":[\"x\"]}}", 0, {"\"k\": found an array", "a string [S11]"}},
    {26,
     "{\"__metadata__\":{\"k\":\"a\\u0000b\"}}",
     0,
     {"\"k\": found a value with a NUL", "[S11]"}},
    {26, "{\"__metadata__\":{\"k\\u0000\":\"a\"}}", 0, {"a NUL in it", "[S13]"}},
    {26, "{\"__metadata__\":{\"\":\"a\"}}", 0, {"metadata key: found an empty name", "[S13]"}},
    {27, "{\"a\":[\"F32\",[4],[0,16]]}", 16, {"byte 13: tensor \"a\": found an array", "[S12]"}},
    {27, "{\"a\":null}", 0, {"tensor \"a\": found null", "expected an object [S12]"}},
    {27, "{\"a\":\"F32\"}", 0, {"tensor \"a\": found a string", "expected an object [S12]"}},
    {28,
     "{\"a\":{\"strides\":[1],\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"byte 14: tensor \"a\": found field \"strides\"",
      "only dtype, shape and data_offsets [S12]"}},
    {28,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"x\":null}}",
     0,
     {"found field \"x\"", "[S12]"}},
    {28,
     "{\"a\":{\"Dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"found field \"Dtype\"", "[S12]"}},
    {28,
     "{\"a\":{\"dtype\\u0000\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"found field \"dtype\\x00\"", "[S12]"}},
    {29,
     "{\"a\":{\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"tensor \"a\": found no field \"dtype\"", "[S12]"}},
    {29, "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0, {"no field \"shape\"", "[S12]"}},
    {29, "{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, {"no field \"data_offsets\"", "[S12]"}},
    {29, "{\"a\":{}}", 0, {"tensor \"a\": found no field \"dtype\"", "[S12]"}},
    {30,
     ONE("F33", "4", "0", "16"),
     16,
     {"tensor \"a\": found dtype \"F33\"", "a known one", "[S14]"}},
    {30, ONE("f32", "4", "0", "16"), 16, {"found dtype \"f32\"", "[S14]"}},
    {30, ONE("", "4", "0", "16"), 16, {"found dtype \"\"", "[S14]"}},
    {30, ONE("F32 ", "4", "0", "16"), 16, {"found dtype \"F32 \"", "[S14]"}},
    {30, ONE("F32\\u0000", "4", "0", "16"), 16, {"found dtype \"F32\\x00\"", "[S14]"}},
    {30,
     "{\"a\":{\"dtype\":32,\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"found the integer 32", "expected a dtype, a string [S14]"}},
    {31, ONE("F4", "3", "0", "2"), 2, {"found 3 elements of 4 bits", "expected whole bytes [S17]"}},
    {31, ONE("F4", "", "0", "1"), 1, {"found 1 elements of 4 bits", "[S17]"}},
    {31, ONE("F6_E2M3", "2", "0", "2"), 2, {"found 2 elements of 6 bits", "[S17]"}},
    {31, ONE("F6_E3M2", "5,1", "0", "4"), 4, {"found 5 elements of 6 bits", "[S17]"}},
    {34, ONE("U8", "4194305,4194305,211106198978564", "0", "4"), 4, {"overflows", "[S17]"}},
    {34, ONE("F32", "4194305,4194305,211106198978564", "0", "16"), 16, {"overflows", "[S17]"}},
    {35,
     ONE("F32", "2,9223372036854775807", "0", "16"),
     16,
     {"found extent 9223372036854775807", "less than 2^48 [S16]"}},
    {35, ONE("F32", "2,281474976710655,65536,65536", "0", "0"), 0, {"overflows", "[S17]"}},
    {35, ONE("F64", "281474976710655,4096", "0", "0"), 0, {"overflows", "[S17]"}},
    {36, ONE("F32", "0,18446744073709551615", "0", "0"), 0, {"found extent 18446744073709551615"}},
    {36, ONE("F32", "18446744073709551615,2,0", "0", "0"), 0, {"found extent 1844674", "[S16]"}},
    {36, ONE("F32", "0,281474976710655,281474976710655", "0", "0"), 0, {"overflows", "[S17]"}},
    {36, ONE("F32", "281474976710655,281474976710655,0", "0", "0"), 0, {"overflows", "[S17]"}},
    {37,
     ONE("U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0", "1"),
     1,
     {"tensor \"a\": found extent number 17", "rank of at most 16 [S16]"}},
};

/* Numbers that are JSON or nearly so, but not plain unsigned integers. */
static void test_numbers(int number, const char *const *texts, size_t count)
{
    static const char *const places[] = {
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[%s],\"data_offsets\":[0,16]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[0,%s]}}",
        "{\"a\":{\"dtype\":\"U8\",\"shape\":[16],\"data_offsets\":[%s,16]}}",
    };
    for (size_t i = 0; i < count; i++) {
        if (!check_begin("files/F%02d/%.24s", number, texts[i])) continue;
        for (size_t place = 0; place < COUNT_OF(places); place++) {
            char header[1024];
            const char *spot = strstr(places[place], "%s");
            snprintf(header, sizeof header, "%.*s%s%s", (int)(spot - places[place]), places[place],
                     texts[i], spot + 2);
            expect_header_refused(header, 16, WORDS("found ", "expected ", NULL));
        }
    }
}

static void test_odd_numbers(void)
{
    static const char *const odd[] = {"16.0", "1.6e1", "-0",  "016",  "+16",   "0x10", "\"16\"",
                                      "-16",  "16e0",  "1_6", "true", "null",  "[16]", "16.",
                                      ".16",  "16u",   "",    "1 6",  "16E+0", "00",   "{}"};
    static const char *const large[] = {"18446744073709551616", "100000000000000000000", "1e400"};
    /* LOCUS_FILE_MAX_DIM is 2^48 - 1 */
    static const char *const wide[] = {"281474976710656", "9007199254740993", "9223372036854775808",
                                       "18446744073709551615"};
    test_numbers(32, odd, COUNT_OF(odd));
    test_numbers(33, large, COUNT_OF(large));
    test_numbers(33, wide, COUNT_OF(wide)); /* exact, and then too large for the file */
    if (check_begin("files/F33/400 digits")) {
        blob header = {0};
        blob_text(&header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[");
        blob_fill(&header, '9', 400);
        blob_text(&header, "],\"data_offsets\":[0,16]}}%c", '\0');
        const verdict v =
            expect_header_refused((const char *)header.bytes, 16,
                                  WORDS("found the number 9999999999", "below 2^64 [S15]", NULL));
        CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
        blob_clear(&header);
    }
    if (check_begin("files/F33/exact")) /* 2^53 + 1 is not 2^53: it must not match it */
        expect_header_refused(ONE("U8", "128,70368744177664", "0", "9007199254740993"), 16,
                              WORDS("9007199254740993 bytes", "the 9007199254740992 bytes",
                                    "[S18]"));
}

static void test_dtypes(void)
{
    static const struct {
        const char *name;
        uint32_t bits;
    } known[] = {
        {"F64", 64},    {"F32", 32},    {"F16", 16},        {"BF16", 16},       {"I64", 64},
        {"I32", 32},    {"I16", 16},    {"I8", 8},          {"U64", 64},        {"U32", 32},
        {"U16", 16},    {"U8", 8},      {"BOOL", 8},        {"C64", 64},        {"F8_E4M3", 8},
        {"F8_E5M2", 8}, {"F8_E8M0", 8}, {"F8_E4M3FNUZ", 8}, {"F8_E5M2FNUZ", 8}, {"F6_E2M3", 6},
        {"F6_E3M2", 6}, {"F4", 4},
    };
    if (!check_begin("files/F30/known")) return;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        char header[256], path[1024];
        blob file = {0};
        locus_file *opened = NULL;
        locus_error error = {{0}};
        snprintf(header, sizeof header,
                 "{\"a\":{\"dtype\":\"%s\",\"shape\":[4,2],\"data_offsets\":[0,%" PRIu32 "]}}",
                 known[i].name, known[i].bits);
        blob_file(&file, header, strlen(header), known[i].bits);
        snprintf(path, sizeof path, "%s", folder_path("dtype.safetensors"));
        write_path(path, &file);
        CHECK(locus_file_open(&opened, path, NULL, &error) == LOCUS_OK, "%s", error.text);
        const locus_file_tensor *tensor = locus_file_find(opened, "a");
        CHECK(tensor != NULL && strcmp(tensor->dtype, known[i].name) == 0 &&
                  tensor->bits == known[i].bits && tensor->rank == 2 && tensor->shape[0] == 4 &&
                  tensor->shape[1] == 2,
              "%s", known[i].name);
        locus_file_close(opened);
        blob_clear(&file);
    }
    folder_empty();
}

static void test_long_text(void)
{
    blob file = {0}, header = {0};
    if (check_begin("files/F30/1 MB")) {
        blob_text(&header, "{\"a\":{\"dtype\":\"");
        blob_fill(&header, 'F', 1000000);
        blob_text(&header, "\",\"shape\":[0],\"data_offsets\":[0,0]}}");
        blob_file(&file, header.bytes, header.count, 0);
        const verdict v = expect_refused(&file, WORDS("found dtype \"FFF", "and more", "[S14]"));
        CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    }
    if (check_begin("files/F28/1 MB")) {
        header.count = file.count = 0;
        blob_text(&header, "{\"a\":{\"");
        blob_fill(&header, 'F', 1000000);
        blob_text(&header, "\":1}}");
        blob_file(&file, header.bytes, header.count, 0);
        const verdict v = expect_refused(&file, WORDS("found field \"FFF", "and more", "[S12]"));
        CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    }
    if (check_begin("files/F37/1000000")) {
        header.count = file.count = 0;
        blob_text(&header, "{\"a\":{\"dtype\":\"U8\",\"shape\":[1");
        for (int i = 1; i < 1000000; i++) blob_text(&header, ",1");
        blob_text(&header, "],\"data_offsets\":[0,1]}}");
        blob_file(&file, header.bytes, header.count, 1);
        const verdict v = expect_refused(&file, WORDS("byte 68: ", "extent number 17", "[S16]"));
        CHECK(v.heap <= HEAP_CONSTANT, "heap %zu", v.heap);
    }
    if (check_begin("files/F37/16")) /* the limit itself */
        expect_header_accepted(ONE("U8", "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", "0", "1"), 1);
    if (check_begin("files/F36/largest")) /* 2^48 - 1 beside a zero is fine */
        expect_header_accepted(ONE("U8", "0,281474976710655", "0", "0"), 0);
    blob_clear(&header);
    blob_clear(&file);
}

void test_entries(void)
{
    expect_table_refused(entries, COUNT_OF(entries));
    test_odd_numbers();
    test_dtypes();
    test_long_text();
}
