/* SPDX-License-Identifier: Apache-2.0 */
#include "io/json_scan.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "core/size.h"

enum {
    EXPECT_VALUE,
    EXPECT_FIRST_VALUE, /* a value or ']' */
    EXPECT_KEY,
    EXPECT_FIRST_KEY, /* a key or '}' */
    EXPECT_COLON,
    EXPECT_COMMA,   /* ',' or the end of the container */
    EXPECT_NOTHING, /* the value is complete */
};

enum { ESCAPE_BYTES = 6 }; /* \uXXXX */
enum { NO_BYTE = -1 };     /* the end of the text, or a read that failed (then status says so) */

/* ---- the window ---- */

/* Move the window to the first byte that was not seen. 0: none is left. */
static int refill(locus_json *json)
{
    const uint64_t at = json->window_at + json->filled;
    if (at >= json->source.end || json->status != LOCUS_OK) return 0;
    const uint64_t left = json->source.end - at;
    const size_t count = left < LOCUS_JSON_WINDOW ? (size_t)left : LOCUS_JSON_WINDOW;
    json->status = json->source.read(json->source.context, at, json->window, count, json->error);
    if (json->status != LOCUS_OK) return 0;
    json->window_at = at;
    json->position = 0;
    json->filled = count;
    return 1;
}

static inline int peek(locus_json *json)
{
    if (json->position == json->filled && !refill(json)) return NO_BYTE;
    return json->window[json->position];
}

static uint64_t offset(const locus_json *json) { return json->window_at + json->position; }

/* ---- messages ---- */

static const char *byte_in_words(char out[16], int byte)
{
    if (byte == NO_BYTE) return "the end of the header";
    if (byte > 0x20 && byte < 0x7F)
        snprintf(out, 16, "'%c'", byte);
    else
        snprintf(out, 16, "0x%02X", (unsigned)byte);
    return out;
}

static int refuse_at(locus_json *json, uint64_t at, const char *found, const char *expected,
                     const char *rule)
{
    json->status =
        locus_fail(json->error, LOCUS_ERR_FORMAT, "byte %" PRIu64 ": found %s, expected %s [%s]",
                   at, found, expected, rule);
    return 0;
}

/* The byte under the cursor is wrong. A read that failed has its own message. */
static int refuse(locus_json *json, const char *expected, const char *rule)
{
    char found[16];
    const int byte = peek(json);
    if (json->status != LOCUS_OK) return 0;
    return refuse_at(json, offset(json), byte_in_words(found, byte), expected, rule);
}

static int no_memory(locus_json *json)
{
    json->status = locus_fail(json->error, LOCUS_ERR_MEMORY,
                              "byte %" PRIu64 ": no memory for a string", offset(json));
    return 0;
}

char *locus_json_describe(char *out, size_t capacity, const locus_json_token *token)
{
    static const char *const words[] = {
        [LOCUS_JSON_END] = "the end of the header",
        [LOCUS_JSON_OBJECT] = "an object",
        [LOCUS_JSON_OBJECT_END] = "the end of the object",
        [LOCUS_JSON_ARRAY] = "an array",
        [LOCUS_JSON_ARRAY_END] = "the end of the array",
        [LOCUS_JSON_KEY] = "a key",
        [LOCUS_JSON_STRING] = "a string",
        [LOCUS_JSON_INTEGER] = "the integer ",
        [LOCUS_JSON_NUMBER] = "the number ",
        [LOCUS_JSON_TRUE] = "true",
        [LOCUS_JSON_FALSE] = "false",
        [LOCUS_JSON_NULL] = "null",
    };
    const int is_number = token->kind == LOCUS_JSON_INTEGER || token->kind == LOCUS_JSON_NUMBER;
    snprintf(out, capacity, "%s%s", words[token->kind], is_number ? token->text : "");
    return out;
}

/* ---- strings ---- */

static int grow(locus_json *json, size_t need)
{
    size_t capacity = json->capacity == 0 ? 256 : json->capacity;
    while (capacity < need) capacity *= 2;
    /* A string is never longer than the text, so neither is its buffer. */
    const uint64_t most = json->source.end - json->source.begin + 1;
    if (capacity > most && need <= most) capacity = (size_t)most;
    char *text = locus_allocate(json->allocator, capacity, 1);
    if (text == NULL) return no_memory(json);
    if (json->bytes > 0) memcpy(text, json->text, json->bytes);
    locus_release(json->allocator, json->text);
    json->text = text;
    json->capacity = capacity;
    return 1;
}

/* Add to the current string; 0 when it got longer than the limit, or on failure. */
static int append(locus_json *json, const unsigned char *bytes, size_t count)
{
    const size_t room = json->limit - json->bytes;
    const size_t taken = count < room ? count : room;
    if (json->bytes + taken + 1 > json->capacity && !grow(json, json->bytes + taken + 1)) return 0;
    if (taken > 0) memcpy(json->text + json->bytes, bytes, taken);
    json->bytes += taken;
    json->text[json->bytes] = '\0';
    json->cut = taken < count;
    return !json->cut;
}

static int hex_digit(int byte)
{
    if (byte >= '0' && byte <= '9') return byte - '0';
    if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
    return -1;
}

static int scan_hex(locus_json *json, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++) {
        const int digit = hex_digit(peek(json));
        if (digit < 0) return refuse(json, "a hexadecimal digit", "S07");
        *code = *code << 4 | (uint32_t)digit;
        json->position++;
    }
    return 1;
}

static int take(locus_json *json, int byte, const char *expected, const char *rule)
{
    if (peek(json) != byte) return refuse(json, expected, rule);
    json->position++;
    return 1;
}

/* After "\u": one scalar value, from two escapes when it is above U+FFFF. */
static int scan_unicode(locus_json *json)
{
    uint32_t code = 0, low = 0;
    unsigned char utf8[4];
    if (!scan_hex(json, &code)) return 0;
    if (code >= 0xDC00 && code <= 0xDFFF)
        return refuse_at(json, offset(json) - ESCAPE_BYTES, "a low surrogate",
                         "a high surrogate before it", "S06");
    if (code >= 0xD800 && code <= 0xDBFF) {
        if (!take(json, '\\', "the low surrogate's \\u", "S06") ||
            !take(json, 'u', "the low surrogate's \\u", "S06") || !scan_hex(json, &low))
            return 0;
        if (low < 0xDC00 || low > 0xDFFF)
            return refuse_at(json, offset(json) - ESCAPE_BYTES, "another character",
                             "a low surrogate after the high one", "S06");
        code = 0x10000 + ((code - 0xD800) << 10 | (low - 0xDC00));
    }
    return append(json, utf8, locus_utf8_encode(utf8, code));
}

static int scan_escape(locus_json *json)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    json->position++; /* the backslash */
    const int byte = peek(json);
    if (byte == 'u') {
        json->position++;
        return scan_unicode(json);
    }
    const char *found = byte == NO_BYTE || byte == 0 ? NULL : strchr(from, byte);
    if (found == NULL) return refuse(json, "one of \"\\/bfnrtu after a backslash", "S07");
    json->position++;
    return append(json, (const unsigned char *)&to[found - from], 1);
}

/* A character of several bytes, under the cursor. */
static int scan_wide(locus_json *json)
{
    unsigned char bytes[4];
    size_t count = 0;
    locus_utf8 state;
    bytes[count++] = (unsigned char)peek(json);
    if (!locus_utf8_begin(&state, bytes[0])) return refuse(json, "valid UTF-8", "S06");
    json->position++;
    while (state.left > 0) {
        const int byte = peek(json);
        if (byte == NO_BYTE || !locus_utf8_continue(&state, (unsigned char)byte))
            return refuse(json, "the rest of a UTF-8 sequence", "S06");
        bytes[count++] = (unsigned char)byte;
        json->position++;
    }
    return append(json, bytes, count);
}

static int is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x80 && byte != '"' && byte != '\\';
}

/* The run of plain bytes that is in the window: most strings are one run. */
static int scan_run(locus_json *json)
{
    const size_t from = json->position;
    size_t to = from;
    while (to < json->filled && is_plain(json->window[to])) to++;
    json->position = to;
    return append(json, json->window + from, to - from);
}

/* After the opening quote, through the closing one. 0 when cut or refused. */
static int scan_string(locus_json *json)
{
    json->bytes = 0;
    if (!append(json, NULL, 0)) return 0;
    for (;;) {
        const int byte = peek(json);
        int good = 0;
        if (byte == '"') {
            json->position++;
            return 1;
        }
        if (byte == '\\')
            good = scan_escape(json);
        else if (byte >= 0x80)
            good = scan_wide(json);
        else if (byte >= 0x20)
            good = scan_run(json);
        else
            refuse(json, byte == NO_BYTE ? "'\"'" : "no control byte in a string", "S07");
        if (!good) return 0;
    }
}

static int scan_text(locus_json *json, locus_json_token *token, locus_json_kind kind)
{
    json->position++; /* the opening quote */
    if (!scan_string(json) && !json->cut) return 0;
    token->kind = kind;
    token->text = json->text;
    token->bytes = json->bytes;
    token->cut = json->cut;
    return 1;
}

/* ---- numbers and literals ---- */

static int is_digit(int byte) { return byte >= '0' && byte <= '9'; }

static void keep_number_byte(locus_json *json, locus_json_token *token)
{
    if (token->bytes < LOCUS_JSON_NUMBER_TEXT)
        json->number[token->bytes++] = (char)json->window[json->position];
    json->number[token->bytes] = '\0';
    json->position++;
}

static int scan_digits(locus_json *json, locus_json_token *token)
{
    if (!is_digit(peek(json))) return refuse(json, "a digit", "S07");
    while (is_digit(peek(json))) keep_number_byte(json, token);
    return 1;
}

/* The digits before a fraction: exact in 64 bits; with more of them it is a NUMBER. */
static int scan_integer(locus_json *json, locus_json_token *token)
{
    const int first = peek(json);
    if (!is_digit(first)) return refuse(json, "a digit", "S07");
    for (int byte = first; is_digit(byte); byte = peek(json)) {
        uint64_t value = 0;
        if (locus_mul_u64(&value, token->integer, 10) &&
            locus_add_u64(&value, value, (uint64_t)(byte - '0')))
            token->integer = value;
        else
            token->kind = LOCUS_JSON_NUMBER;
        keep_number_byte(json, token);
        if (first == '0' && is_digit(peek(json)))
            return refuse(json, "no digit after a leading zero", "S07");
    }
    return 1;
}

static int scan_number(locus_json *json, locus_json_token *token)
{
    token->kind = LOCUS_JSON_INTEGER;
    token->text = json->number;
    if (peek(json) == '-') {
        token->kind = LOCUS_JSON_NUMBER;
        keep_number_byte(json, token);
    }
    if (!scan_integer(json, token)) return 0;
    if (peek(json) == '.') {
        token->kind = LOCUS_JSON_NUMBER;
        keep_number_byte(json, token);
        if (!scan_digits(json, token)) return 0;
    }
    if (peek(json) == 'e' || peek(json) == 'E') {
        token->kind = LOCUS_JSON_NUMBER;
        keep_number_byte(json, token);
        if (peek(json) == '+' || peek(json) == '-') keep_number_byte(json, token);
        if (!scan_digits(json, token)) return 0;
    }
    return json->status == LOCUS_OK;
}

static int scan_literal(locus_json *json, locus_json_token *token, locus_json_kind kind,
                        const char *literal)
{
    for (size_t i = 0; literal[i] != '\0'; i++)
        if (!take(json, literal[i], "true, false or null", "S07")) return 0;
    token->kind = kind;
    return 1;
}

/* ---- structure ---- */

static int skip_space(locus_json *json)
{
    for (;;) {
        while (json->position < json->filled) {
            const unsigned char byte = json->window[json->position];
            if (byte != ' ' && byte != '\t' && byte != '\n' && byte != '\r') return byte;
            json->position++;
        }
        if (!refill(json)) return NO_BYTE;
    }
}

static void after_value(locus_json *json)
{
    json->expect = json->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA;
}

static int in_object(const locus_json *json)
{
    return json->depth > 0 && (json->objects >> (json->depth - 1) & 1u) != 0;
}

static int open_container(locus_json *json, locus_json_token *token, int is_object)
{
    if (json->depth == LOCUS_JSON_MAX_DEPTH)
        return refuse(json, "no container nested deeper than 32 levels", "S08");
    json->position++;
    const uint32_t bit = (uint32_t)1 << json->depth++;
    json->objects = is_object ? json->objects | bit : json->objects & ~bit;
    json->expect = is_object ? EXPECT_FIRST_KEY : EXPECT_FIRST_VALUE;
    token->kind = is_object ? LOCUS_JSON_OBJECT : LOCUS_JSON_ARRAY;
    return 1;
}

static int close_container(locus_json *json, locus_json_token *token)
{
    token->kind = in_object(json) ? LOCUS_JSON_OBJECT_END : LOCUS_JSON_ARRAY_END;
    json->position++;
    json->depth--;
    after_value(json);
    return 1;
}

static int scan_value(locus_json *json, locus_json_token *token, int byte)
{
    if (byte == '{' || byte == '[') return open_container(json, token, byte == '{');
    int good = 0;
    if (byte == '"')
        good = scan_text(json, token, LOCUS_JSON_STRING);
    else if (byte == '-' || is_digit(byte))
        good = scan_number(json, token);
    else if (byte == 't')
        good = scan_literal(json, token, LOCUS_JSON_TRUE, "true");
    else if (byte == 'f')
        good = scan_literal(json, token, LOCUS_JSON_FALSE, "false");
    else if (byte == 'n')
        good = scan_literal(json, token, LOCUS_JSON_NULL, "null");
    else
        refuse(json, "a value", "S07");
    if (good) after_value(json);
    return good;
}

static int scan_key(locus_json *json, locus_json_token *token, int byte, const char *expected)
{
    if (byte != '"') return refuse(json, expected, "S07");
    json->expect = EXPECT_COLON;
    return scan_text(json, token, LOCUS_JSON_KEY);
}

/* Between two tokens: a colon or a comma where one is due. Returns the next byte. */
static int pass_separator(locus_json *json)
{
    int byte = skip_space(json);
    if (json->expect == EXPECT_COLON) {
        if (!take(json, ':', "':'", "S07")) return NO_BYTE;
        json->expect = EXPECT_VALUE;
        byte = skip_space(json);
    } else if (json->expect == EXPECT_COMMA && byte == ',') {
        json->position++;
        json->expect = in_object(json) ? EXPECT_KEY : EXPECT_VALUE;
        byte = skip_space(json);
    }
    return byte;
}

static int scan_token(locus_json *json, locus_json_token *token, int byte)
{
    const int closer = in_object(json) ? '}' : ']';
    switch (json->expect) {
    case EXPECT_FIRST_KEY:
        if (byte == closer) return close_container(json, token);
        return scan_key(json, token, byte, "a key in double quotes or '}'");
    case EXPECT_KEY: return scan_key(json, token, byte, "a key in double quotes");
    case EXPECT_FIRST_VALUE:
        if (byte == closer) return close_container(json, token);
        return scan_value(json, token, byte);
    case EXPECT_VALUE: return scan_value(json, token, byte);
    case EXPECT_COMMA:
        if (byte == closer) return close_container(json, token);
        return refuse(json, closer == '}' ? "',' or '}'" : "',' or ']'", "S07");
    default:
        token->kind = LOCUS_JSON_END;
        return byte == NO_BYTE || refuse(json, "nothing but white space after the value", "S09");
    }
}

locus_status locus_json_next(locus_json *json, size_t limit, locus_json_token *token)
{
    *token = (locus_json_token){.kind = LOCUS_JSON_END, .at = offset(json)};
    if (json->status != LOCUS_OK) return json->status;
    if (json->cut)
        return locus_fail(json->error, LOCUS_ERR_ARGUMENT, "the scan ended at a cut string");
    /* A buffer holds the limit, a NUL and fits in a size: one below the maximum does. */
    json->limit = limit < SIZE_MAX / 4 ? limit : SIZE_MAX / 4;
    const int byte = pass_separator(json);
    if (json->status != LOCUS_OK) return json->status;
    token->at = offset(json);
    scan_token(json, token, byte);
    return json->status;
}

locus_status locus_json_open(locus_json *json, const locus_json_source *source,
                             const locus_allocator *allocator, locus_error *error)
{
    *json = (locus_json){.source = *source, .allocator = allocator, .error = error};
    json->window_at = source->begin;
    json->expect = EXPECT_VALUE;
    const uint64_t bytes = source->end - source->begin;
    const size_t window = bytes < LOCUS_JSON_WINDOW ? (size_t)bytes : LOCUS_JSON_WINDOW;
    json->window = locus_allocate(allocator, window, 1);
    if (json->window == NULL)
        json->status = locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %zu bytes", window);
    return json->status;
}

void locus_json_close(locus_json *json)
{
    locus_release(json->allocator, json->window);
    locus_release(json->allocator, json->text);
    json->window = NULL;
    json->text = NULL;
}
