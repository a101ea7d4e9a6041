/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Decode one code point. Returns its bytes; 0 where the text is not well-formed
 * UTF-8. The NUL at the end is never passed, so reading ahead stays inside. */
static size_t decode(const unsigned char *s, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    if (s[0] >= 0xC2 && s[0] <= 0xDF) length = 2;
    if (s[0] >= 0xE0 && s[0] <= 0xEF) length = 3;
    if (s[0] >= 0xF0 && s[0] <= 0xF4) length = 4;
    if (length == 0) return 0;
    uint32_t value = s[0] & (0xFFu >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((s[i] & 0xC0) != 0x80) return 0;
        value = value << 6 | (s[i] & 0x3Fu);
    }
    if (value < least[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return 0;
    *code = value;
    return length;
}

/* Code points that move the cursor, turn the line around or show nothing. */
static int is_unsafe(uint32_t code)
{
    static const struct {
        uint32_t first, last;
    } ranges[] = {
        {0x00, 0x1F},     {0x7F, 0x9F},     {0xAD, 0xAD},       {0x61C, 0x61C},
        {0x180E, 0x180E}, {0x200B, 0x200F}, {0x2028, 0x202E},   {0x2060, 0x206F},
        {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE0FFF},
    };
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++)
        if (code >= ranges[i].first && code <= ranges[i].last) return 1;
    return 0;
}

/* The next piece of `s`: *length bytes that go out as they are (result 1) or as
 * \xNN each (result 0). */
static int next_piece(const unsigned char *s, size_t *length)
{
    uint32_t code = 0;
    const size_t bytes = decode(s, &code);
    *length = bytes == 0 ? 1 : bytes;
    return bytes != 0 && !is_unsafe(code) && code != '\\';
}

size_t text_print(FILE *out, const char *text)
{
    size_t columns = 0, length = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s != 0; s += length) {
        if (next_piece(s, &length)) {
            fwrite(s, 1, length, out);
            columns++;
        } else {
            for (size_t i = 0; i < length; i++) fprintf(out, "\\x%02X", s[i]);
            columns += 4 * length;
        }
    }
    return columns;
}

void text_show(const char *text, size_t bytes)
{
    const int terminal = isatty(STDOUT_FILENO);
    size_t length = 1;
    if (!terminal) fwrite(text, 1, bytes, stdout);
    for (size_t i = 0; terminal && i < bytes; i += length) {
        const unsigned char *s = (const unsigned char *)text + i;
        uint32_t code = 0;
        const size_t whole = decode(s, &code);
        length = whole == 0 ? 1 : whole;
        if (*s == '\n' || *s == '\t' || (whole != 0 && !is_unsafe(code)))
            fwrite(s, 1, length, stdout);
        else
            for (size_t k = 0; k < length; k++) printf("\\x%02X", s[k]);
    }
}

size_t text_columns(const char *text)
{
    size_t columns = 0, length = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s != 0; s += length)
        columns += next_piece(s, &length) ? 1 : 4 * length;
    return columns;
}

void text_cell(FILE *out, const char *text, size_t width)
{
    for (size_t used = text_print(out, text); used < width; used++) fputc(' ', out);
    fputs("  ", out);
}

char *text_quote(char *buffer, size_t capacity, const char *text)
{
    enum { ROOM = 4 * 4 + 3 + 1 }; /* the longest escape, an ellipsis, the NUL */
    size_t used = 0, length = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s != 0; s += length) {
        if (used + ROOM > capacity) {
            used += (size_t)snprintf(buffer + used, capacity - used, "...");
            break;
        }
        if (next_piece(s, &length) && *s != '"') {
            memcpy(buffer + used, s, length);
            used += length;
        } else {
            for (size_t i = 0; i < length; i++)
                used += (size_t)snprintf(buffer + used, capacity - used, "\\x%02X", s[i]);
        }
    }
    buffer[used] = '\0';
    return buffer;
}

static void json_code(FILE *out, uint32_t code)
{
    if (code < 0x10000) {
        fprintf(out, "\\u%04" PRIx32, code);
    } else {
        const uint32_t rest = code - 0x10000;
        fprintf(out, "\\u%04" PRIx32 "\\u%04" PRIx32, 0xD800 + (rest >> 10),
                0xDC00 + (rest & 0x3FF));
    }
}

void text_json(FILE *out, const char *text) { text_json_bytes(out, text, strlen(text)); }

void text_json_bytes(FILE *out, const char *text, size_t bytes_in_all)
{
    size_t length = 0;
    const unsigned char *end = (const unsigned char *)text + bytes_in_all;
    fputc('"', out);
    for (const unsigned char *s = (const unsigned char *)text; s < end; s += length) {
        uint32_t code = 0xFFFD;
        const size_t bytes = decode(s, &code);
        length = bytes == 0 ? 1 : bytes;
        if (bytes == 0 || is_unsafe(code))
            json_code(out, code);
        else if (code == '"' || code == '\\')
            fprintf(out, "\\%c", (int)code);
        else
            fwrite(s, 1, length, out);
    }
    fputc('"', out);
}

char *text_thousands(char *buffer, size_t capacity, uint64_t number)
{
    char digits[24];
    const int count = snprintf(digits, sizeof digits, "%" PRIu64, number);
    size_t used = 0;
    for (int i = 0; i < count && used + 2 < capacity; i++) {
        if (i > 0 && (count - i) % 3 == 0) buffer[used++] = ',';
        buffer[used++] = digits[i];
    }
    buffer[used] = '\0';
    return buffer;
}

char *text_real(char *buffer, size_t capacity, double number)
{
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(buffer, capacity, "%.*g", digits, number);
        if (isnan(number) || strtod(buffer, NULL) == number) break;
    }
    return buffer;
}

char *text_shape(char *buffer, size_t capacity, const uint64_t *shape, size_t rank)
{
    size_t used = (size_t)snprintf(buffer, capacity, "[");
    for (size_t i = 0; i < rank && used + 24 < capacity; i++)
        used += (size_t)snprintf(buffer + used, capacity - used, "%s%" PRIu64, i == 0 ? "" : ",",
                                 shape[i]);
    snprintf(buffer + used, capacity - used, "]");
    return buffer;
}

static int has_colour(void)
{
    const char *no_color = getenv("NO_COLOR");
    const char *terminal = getenv("TERM");
    if (no_color != NULL && *no_color != '\0') return 0;
    if (terminal == NULL || strcmp(terminal, "dumb") == 0) return 0;
    return isatty(STDOUT_FILENO);
}

const char *text_bold(void) { return has_colour() ? "\033[1m" : ""; }
const char *text_good(void) { return has_colour() ? "\033[32m" : ""; }
const char *text_bad(void) { return has_colour() ? "\033[31m" : ""; }
const char *text_plain(void) { return has_colour() ? "\033[0m" : ""; }
