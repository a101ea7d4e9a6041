/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "files/filetest.h"
#include "io/json_scan.h"

/* The JSON scanner alone, on texts in memory. */

typedef struct text {
    const unsigned char *bytes;
    size_t count;
} text;

static locus_status read_text(void *context, uint64_t at, void *out, size_t count,
                              locus_error *error)
{
    const text *from = context;
    (void)error;
    CHECK(at + count <= from->count, "a read past the end");
    memcpy(out, from->bytes + at, count);
    return LOCUS_OK;
}

/* Scan to the end; the last token before it stays in *last. */
static locus_status scan(const void *bytes, size_t count, char out[128], size_t *tokens,
                         locus_error *error)
{
    text from = {bytes, count};
    const locus_json_source source = {read_text, &from, 0, count};
    locus_json json;
    locus_json_token token;
    *tokens = 0;
    out[0] = '\0';
    locus_status status = locus_json_open(&json, &source, NULL, error);
    while (status == LOCUS_OK) {
        status = locus_json_next(&json, SIZE_MAX, &token);
        if (status != LOCUS_OK || token.kind == LOCUS_JSON_END) break;
        if (token.kind == LOCUS_JSON_STRING) snprintf(out, 128, "%s", token.text);
        ++*tokens;
    }
    locus_json_close(&json);
    return status;
}

static void expect_text(const char *json, size_t bytes, locus_status expected)
{
    char last[128];
    size_t tokens = 0;
    locus_error error = {{0}};
    const locus_status status = scan(json, bytes, last, &tokens, &error);
    CHECK(status == expected, "%s: status %d, %s", json, status, error.text);
    if (status != LOCUS_OK)
        CHECK(strstr(error.text, "byte ") != NULL && strstr(error.text, "expected ") != NULL,
              "%s: message %s", json, error.text);
}

/* Literals with their length, so that a NUL can be inside. */
#define TEXT(literal)                                                                              \
    {                                                                                              \
        literal, sizeof(literal) - 1                                                               \
    }
static const struct {
    const char *json;
    size_t bytes;
} good[] =
    {
        TEXT("[]"),
        TEXT("{}"),
        TEXT("0"),
        TEXT(" \t\r\n[1]\n"),
        TEXT("\"\""),
        TEXT("null"),
        TEXT("[-0,0.5,1e5,1E+2,-1.5e-3,0e1,20e1]"),
        TEXT("[18446744073709551615]"),
        TEXT("{\"a\":[true,false,null,{}],\"b\":\"\\u00e9\"}"),
        TEXT("[\"\\uD834\\uDd1e\"]"),
        TEXT("[\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"]"),
        TEXT("[\"\x7f\"]"),
        TEXT("[\"\\u0000\"]"),
        TEXT("[\"\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEE\x80\x80\xF4\x8F\xBF\xBF\"]"),
        TEXT(
            "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"), /* LOCUS_JSON_MAX_DEPTH */
        TEXT("18446744073709551616"), /* a number of any size */
        TEXT("100000000000000000000"),
},
  bad[] = {
      TEXT(""),
      TEXT(" "),
      TEXT("["),
      TEXT("{"),
      TEXT("]"),
      TEXT("}"),
      TEXT("[1,]"),
      TEXT("[,1]"),
      TEXT("[1,,2]"),
      TEXT("[1 2]"),
      TEXT("{\"a\"}"),
      TEXT("{\"a\" 1}"),
      TEXT("{\"a\":}"),
      TEXT("{\"a\":1,}"),
      TEXT("{,\"a\":1}"),
      TEXT("{a:1}"),
      TEXT("{'a':1}"),
      TEXT("{1:1}"),
      TEXT("{\"a\":1]"),
      TEXT("[1}"),
      TEXT("[]]"),
      TEXT("[][]"),
      TEXT("1 1"),
      TEXT("{}#"),
      TEXT("{}/**/"),
      TEXT("//\n{}"),
      TEXT("01"),
      TEXT("-"),
      TEXT("-01"),
      TEXT("+1"),
      TEXT(".5"),
      TEXT("1."),
      TEXT("1.e5"),
      TEXT("1e"),
      TEXT("1e+"),
      TEXT("0x10"),
      TEXT("1_000"),
      TEXT("NaN"),
      TEXT("Infinity"),
      TEXT("-Infinity"),
      TEXT("tru"),
      TEXT("trUe"),
      TEXT("nul\0"),
      TEXT("True"),
      TEXT("\""),
      TEXT("\"\\"),
      TEXT("\"\\\""),
      TEXT("\"\\x\""),
      TEXT("\"\\u12\""),
      TEXT("\"\\U0041\""),
      TEXT("\"\\u12G4\""),
      TEXT("\"\\'\""),
      TEXT("\"\t\""),
      TEXT("\"\n\""),
      TEXT("\"\0\""),
      TEXT("\"\\\0\""),
      TEXT("\"\x1f\""),
      TEXT("\"\\uD800\""),
      TEXT("\"\\uD800x\""),
      TEXT("\"\\uD800\\n\""),
      TEXT("\"\\uD800\\uD800\""),
      TEXT("\"\\uD800\\u0041\""),
      TEXT("\"\\uDC00\""),
      TEXT("\"\\uDd1e\\uD834\""),
      TEXT("\"\x80\""),
      TEXT("\"\xC1\x80\""),
      TEXT("\"\xE0\x9F\x80\""),
      TEXT("\"\xED\xA0\x80\""),
      TEXT("\"\xF0\x8F\x80\x80\""),
      TEXT("\"\xF4\x90\x80\x80\""),
      TEXT("\"\xF5\x80\x80\x80\""),
      TEXT("\"\xC2\""),
      TEXT("\"\xE2\x82\""),
      TEXT("\"\xE2\x82"),
      TEXT("\xEF\xBB\xBF{}"),
      TEXT("\xFF\xFE{\0}\0"),
      TEXT("\0{\0}"),
      TEXT("{}\0"),
      TEXT("[\f]"),
      TEXT("[\xC2\xA0]"),
      TEXT("[1]\x0b"),
      TEXT("[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]"), /* one more */
};

static void test_texts(void)
{
    if (check_begin("files/scanner/accepts"))
        for (size_t i = 0; i < COUNT_OF(good); i++)
            expect_text(good[i].json, good[i].bytes, LOCUS_OK);
    if (check_begin("files/scanner/refuses"))
        for (size_t i = 0; i < COUNT_OF(bad); i++)
            expect_text(bad[i].json, bad[i].bytes, LOCUS_ERR_FORMAT);
}

static void test_unescape(void)
{
    static const struct {
        const char *json, *expected;
    } strings[] = {
        {"\"a\\u0062c\"", "abc"},
        {"\"\\u00e9\\u20AC\\uD834\\uDD1E\"", "\xC3\xA9\xE2\x82\xAC\xF0\x9D\x84\x9E"},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t"},
        {"\"\\u007f\\u0080\\u07ff\\u0800\\uffff\"", "\x7f\xC2\x80\xDF\xBF\xE0\xA0\x80\xEF\xBF\xBF"},
        {"\"\\uDBFF\\uDFFF\"", "\xF4\x8F\xBF\xBF"},
    };
    if (!check_begin("files/scanner/unescapes")) return;
    for (size_t i = 0; i < COUNT_OF(strings); i++) {
        char last[128];
        size_t tokens = 0;
        locus_error error = {{0}};
        const char *json = strings[i].json;
        CHECK(scan(json, strlen(json), last, &tokens, &error) == LOCUS_OK, "%s", error.text);
        CHECK(strcmp(last, strings[i].expected) == 0, "%s gave %s", json, last);
    }
}

/* Every kind of token across the end of the window, at every shift. */
static void test_window(void)
{
    static const char tail[] =
        "[\"a\\uD834\\uDD1E\xF0\x9D\x84\x9E\\n\",12345,true,{\"k\":-1.5e+7}]";
    if (!check_begin("files/scanner/window")) return;
    for (size_t back = 0; back <= sizeof tail; back++) {
        blob json = {0};
        char last[128];
        size_t tokens = 0;
        locus_error error = {{0}};
        blob_fill(&json, ' ', LOCUS_JSON_WINDOW - back);
        blob_add(&json, tail, sizeof tail - 1);
        const locus_status status = scan(json.bytes, json.count, last, &tokens, &error);
        CHECK(status == LOCUS_OK && tokens == 9, "back %zu: %zu tokens, %s", back, tokens,
              error.text);
        CHECK(strcmp(last, "a\xF0\x9D\x84\x9E\xF0\x9D\x84\x9E\n") == 0, "back %zu: %s", back, last);
        json.bytes[json.count - 1] = '?'; /* the offset of a fault is right, too */
        CHECK(scan(json.bytes, json.count, last, &tokens, &error) == LOCUS_ERR_FORMAT, "accepted");
        char where[64];
        snprintf(where, sizeof where, "byte %zu:", json.count - 1);
        CHECK(strstr(error.text, where) != NULL, "back %zu: %s", back, error.text);
        blob_clear(&json);
    }
}

/* A string beyond its limit comes back at once, in memory of the limit's size. */
static void test_limit(void)
{
    if (!check_begin("files/scanner/limit")) return;
    blob json = {0};
    test_allocator memory;
    locus_error error = {{0}};
    locus_json scanner;
    locus_json_token token;
    blob_fill(&json, '"', 1);
    blob_fill(&json, 'x', 1000000);
    text from = {json.bytes, json.count};
    test_allocator_init(&memory);
    const locus_json_source source = {read_text, &from, 0, json.count};
    CHECK(locus_json_open(&scanner, &source, &memory.interface, &error) == LOCUS_OK, "open");
    CHECK(locus_json_next(&scanner, 100, &token) == LOCUS_OK, "%s", error.text);
    CHECK(token.cut && token.bytes == 100 && strlen(token.text) == 100, "%zu", token.bytes);
    CHECK(locus_json_next(&scanner, 100, &token) == LOCUS_ERR_ARGUMENT, "the scan went on");
    locus_json_close(&scanner);
    CHECK(memory.peak_bytes <= LOCUS_JSON_WINDOW + 1024, "peak %zu", memory.peak_bytes);
    CHECK(memory.live_blocks == 0, "leak");
    blob_clear(&json);
}

void test_scanner(void)
{
    test_texts();
    test_unescape();
    test_window();
    test_limit();
}
