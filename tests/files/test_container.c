/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"

/* F01-F19: the length field, the encoding and the grammar of the header. */

#define A16 "{\"a\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,16]}}"

static void test_short(void)
{
    blob file = {0};
    if (check_begin("files/F01")) {
        const verdict v =
            expect_refused(&file, WORDS("found 0 bytes", "expected at least 8", "[S03]"));
        CHECK(v.calls == 0, "%zu allocations", v.calls);
    }
    if (check_begin("files/F02"))
        for (size_t bytes = 1; bytes < 8; bytes++) {
            for (unsigned fill = 0; fill < 256; fill++) {
                file.count = 0;
                blob_fill(&file, (unsigned char)fill, bytes);
                const verdict v = expect_refused(&file, WORDS("found ", NULL, NULL));
                CHECK(v.calls == 0, "%zu allocations", v.calls);
            }
        }
    blob_clear(&file);
}

static void test_lengths(void)
{
    static const struct {
        int number;
        uint64_t length;
        const char *found, *expected;
    } rows[] = {
        {3, 0, "found a header length of 0", "at least 2 [S04]"},
        {3, 1, "found a header length of 1,", "at least 2 [S04]"},
        {4, UINT64_MAX, "length of 18446744073709551615", "at most 100000000 [S04]"},
        {5, (uint64_t)1 << 63, "length of 9223372036854775808", "at most 100000000 [S04]"},
        {6, UINT64_MAX - 7, "length of 18446744073709551608", "at most 100000000 [S04]"},
        {7, 100, "found 64 bytes, expected a header of 100", "36 bytes are missing [S05]"},
        {7, 100000000, "found 64 bytes", "99999936 bytes are missing [S05]"},
        {7, 65, "found 64 bytes", "1 bytes are missing [S05]"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        if (!check_begin("files/F%02d/%zu", rows[i].number, i)) continue;
        blob file = {0};
        blob_u64(&file, rows[i].length);
        if (rows[i].length == 0) { /* eight bytes and nothing else */
            const verdict v = expect_refused(&file, WORDS(rows[i].found, rows[i].expected, NULL));
            CHECK(v.calls == 0, "%zu allocations", v.calls);
        }
        blob_fill(&file, ' ', 64);
        const verdict v = expect_refused(&file, WORDS("byte ", rows[i].found, rows[i].expected));
        CHECK(v.calls == 0, "%zu allocations", v.calls);
        blob_clear(&file);
    }
}

static const bad_header grammar[] = {
    {10, "[]", 0, {"byte 8: found an array", "expected the header to be an object [S09]"}},
    {10, "null", 0, {"byte 8: found null", "object [S09]"}},
    {10, "\"x\"", 0, {"byte 8: found a string", "object [S09]"}},
    {10, "1 ", 0, {"byte 8: found the integer 1", "object [S09]"}},
    {10, "true", 0, {"byte 8: found true", "object [S09]"}},
    {10, "  ", 0, {"byte 10: found the end of the header", "expected a value [S07]"}},
    {12, "\xEF\xBB\xBF{}", 0, {"byte 8: found 0xEF", "[S07]"}},
    {13, "\xFF\xFE{}", 0, {"byte 8: found 0xFF", "[S07]"}},
    {14, "{\"\xFF\":1}", 0, {"byte 10: found 0xFF", "UTF-8 [S06]"}},
    {14, "{\"\xC0\x80\":1}", 0, {"byte 10: found 0xC0", "UTF-8 [S06]"}},
    {14, "{\"\xED\xA0\x80\":1}", 0, {"byte 11: found 0xA0", "UTF-8 sequence [S06]"}},
    {14, "{\"\xF5\x80\x80\x80\":1}", 0, {"byte 10: found 0xF5", "UTF-8 [S06]"}},
    {14, "{\"\xE2\x82", 0, {"byte 12: found the end of the header", "UTF-8 sequence [S06]"}},
    {14, "{\"\xE2\x82\":1}", 0, {"byte 12: found '\"'", "UTF-8 sequence [S06]"}},
    {14, "{\"__metadata__\":{\"a\":\"\x80\"}}", 0, {"byte 30: found 0x80", "UTF-8 [S06]"}},
    {14, "{\"\\uD800\":1}", 0, {"byte 16: found '\"'", "low surrogate", "[S06]"}},
    {14, "{\"\\uDC00\":1}", 0, {"byte 10: found a low surrogate", "[S06]"}},
    {16, "{}{}", 0, {"byte 10: found '{'", "nothing but white space", "[S09]"}},
    {16, "{} 1", 0, {"byte 11: found '1'", "[S09]"}},
    {16, "{},", 0, {"byte 10: found ','", "[S09]"}},
    {16, "{}}", 0, {"byte 10: found '}'", "[S09]"}},
    {16, A16 A16, 16, {"found '{'", "[S09]"}},
    {18,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},}",
     0,
     {"a key in double"}},
    {18,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],}}",
     0,
     {"a key in double"}},
    {18,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0,],\"data_offsets\":[0,0]}}",
     0,
     {"expected a value"}},
    {18,
     "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0,]}}",
     0,
     {"expected a value"}},
    {18, "{,}", 0, {"byte 9: found ','", "[S07]"}},
    {18, "{/**/}", 0, {"byte 9: found '/'", "[S07]"}},
    {18, "{}//x", 0, {"byte 10: found '/'", "[S09]"}},
    {18, "{'a':1}", 0, {"byte 9: found '''", "in double quotes", "[S07]"}},
    {18, "{a:1}", 0, {"byte 9: found 'a'", "[S07]"}},
    {18, "{\"a\":NaN}", 0, {"byte 13: found 'N'", "[S07]"}},
    {18, "{\"a\":Infinity}", 0, {"byte 13: found 'I'", "[S07]"}},
    {18, "{\"a\":-Infinity}", 0, {"byte 14: found 'I'", "[S07]"}},
    {18, "{\"a\":{\"dtype\":\"U8\",\"shape\":[NaN]}}", 0, {"found 'N'", "[S07]"}},
    {18,
     "{\"a\":{\"dtype\":\"U8\"\"shape\":[0],\"data_offsets\":[0,0]}}",
     0,
     {"expected ',' or '}'"}},
    {18, "{\"a\" {}}", 0, {"byte 13: found '{'", "expected ':' [S07]"}},
    {18, "{\"a\n\":1}", 0, {"byte 11: found 0x0A", "no control byte", "[S07]"}},
    {18, "{\"\\x\":1}", 0, {"byte 11: found 'x'", "after a backslash", "[S07]"}},
};

static void refuse_bytes(const void *header, size_t bytes, words expected)
{
    blob file = {0};
    blob_file(&file, header, bytes, 0);
    expect_refused(&file, expected);
    blob_clear(&file);
}

static void test_nul_and_utf16(void)
{
    if (check_begin("files/F13/utf-16")) {
        refuse_bytes("\xFF\xFE{\0}\0", 6, WORDS("byte 8: found 0xFF", "[S07]", NULL));
        refuse_bytes("\xFE\xFF\0{\0}", 6, WORDS("byte 8: found 0xFE", "[S07]", NULL));
        refuse_bytes("{\0}\0", 4, WORDS("byte 9: found 0x00", "[S07]", NULL));
        refuse_bytes("\0{\0}", 4, WORDS("byte 8: found 0x00", "[S07]", NULL));
    }
    if (check_begin("files/F15")) {
        refuse_bytes("{}\0", 3, WORDS("byte 10: found 0x00", "white space", "[S09]"));
        refuse_bytes("{}\0\0\0\0\0\0", 8, WORDS("byte 10: found 0x00", "[S09]", NULL));
        refuse_bytes("{} \0", 4, WORDS("byte 11: found 0x00", "[S09]", NULL));
        refuse_bytes("\0{}", 3, WORDS("byte 8: found 0x00", "[S07]", NULL));
    }
}

static void test_white_space(void)
{
    if (check_begin("files/F11")) {
        expect_header_accepted("  {}", 0);
        expect_header_accepted("\t\r\n {}", 0);
        expect_header_accepted(" \n" A16, 16);
        expect_header_accepted(A16 " \t\r\n", 16);
        expect_header_accepted(" { \"a\" : { \"dtype\" :\t\"U8\" , \"shape\"\n: [ ] ,\r"
                               " \"data_offsets\" : [ 0 , 1 ] } } ",
                               1);
    }
}

/* A header without padding: no proper prefix of it is complete. */
static const char whole[] = "{\"__metadata__\":{\"k\":\"v\\u00e9\"},"
                            "\"a\":{\"dtype\":\"F32\",\"shape\":[2,2],\"data_offsets\":[0,16]},"
                            "\"b\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[16,17]}}";

static void test_prefixes(void)
{
    const size_t bytes = sizeof whole - 1, data = 17;
    blob good = {0}, file = {0};
    blob_file(&good, whole, bytes, data);
    if (check_begin("files/F17")) {
        expect_accepted(&good);
        for (size_t kept = 0; kept < bytes; kept++) {
            file.count = 0; /* the prefix, then the data */
            blob_file(&file, whole, kept, data);
            expect_refused(&file, WORDS("found ", NULL, NULL));
            file.count = 0; /* the length says less than there is */
            blob_u64(&file, kept);
            blob_add(&file, good.bytes + 8, good.count - 8);
            expect_refused(&file, WORDS("found ", NULL, NULL));
        }
    }
    if (check_begin("files/F17/cut")) /* the file ends at every byte, F42 too */
        for (size_t kept = 0; kept < good.count; kept++) {
            file.count = 0;
            blob_add(&file, good.bytes, kept);
            expect_refused(&file, WORDS(kept < 8 ? "at least 8" : "bytes are missing", NULL, NULL));
        }
    if (check_begin("files/F17/dropped")) /* every single byte taken out */
        for (size_t at = 0; at < good.count; at++) {
            file.count = 0;
            blob_add(&file, good.bytes, at);
            blob_add(&file, good.bytes + at + 1, good.count - at - 1);
            expect_refused(&file, WORDS("found ", NULL, NULL));
        }
    blob_clear(&good);
    blob_clear(&file);
}

/* Every bit of length and header turned: refused or accepted, never worse; the
 * format has no checksum, so some flips are only another name. */
static void test_flips(void)
{
    blob file = {0};
    size_t accepted = 0;
    if (!check_begin("files/F17/flipped")) return;
    blob_file(&file, whole, sizeof whole - 1, 17);
    for (size_t bit = 0; bit < 8 * (8 + sizeof whole - 1); bit++) {
        file.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        const verdict v = judge(&file);
        CHECK(v.status == LOCUS_OK || v.status == LOCUS_ERR_FORMAT, "status %d", v.status);
        accepted += v.status == LOCUS_OK;
        file.bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    CHECK(accepted < 64, "%zu flips accepted", accepted);
    blob_clear(&file);
}

/* ---- F19 on a small stack ---- */

static void *open_nested(void *unused)
{
    static const struct {
        const char *before, *repeated;
        const char *found;
    } rows[] = {
        {"", "[", "byte 8: found an array"},
        {"", "{\"a\":", "byte 14: tensor \\\"a\\\": found field"},
        {"{\"a\":", "[", "byte 13: tensor"},
        {"{\"a\":{\"shape\":", "[", "byte 23: tensor"},
        {"{\"a\":{\"data_offsets\":", "[", "byte 30: tensor"},
        {"{\"a\":{\"x\":", "{\"a\":", "byte 14: tensor"},
        {"{\"__metadata__\":{\"a\":", "{\"a\":", "byte 29: metadata"},
    };
    (void)unused;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        blob header = {0}, file = {0};
        blob_add(&header, rows[i].before, strlen(rows[i].before));
        for (int k = 0; k < 100000; k++)
            blob_add(&header, rows[i].repeated, strlen(rows[i].repeated));
        blob_file(&file, header.bytes, header.count, 0);
        expect_refused(&file, i == 1 ? WORDS("tensor \"a\": found field \"a\"", "[S12]", NULL)
                                     : WORDS(rows[i].found, NULL, NULL));
        blob_clear(&header);
        blob_clear(&file);
    }
    return NULL;
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif

static void test_depth(void)
{
    if (!check_begin("files/F19")) return;
#ifdef SANITIZED
    open_nested(NULL); /* instrumented frames say nothing about the real ones */
#else
    pthread_attr_t attributes;
    pthread_t thread;
    const int made = pthread_attr_init(&attributes) == 0 &&
                     pthread_attr_setstacksize(&attributes, 65536) == 0 &&
                     pthread_create(&thread, &attributes, open_nested, NULL) == 0;
    CHECK(made, "no thread with 64 KiB of stack");
    if (made) CHECK(pthread_join(thread, NULL) == 0, "join");
    pthread_attr_destroy(&attributes);
#endif
}

void test_container(void)
{
    test_short();
    test_lengths();
    expect_table_refused(grammar, COUNT_OF(grammar));
    test_nul_and_utf16();
    test_white_space();
    test_prefixes();
    test_flips();
    test_depth();
}
