/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/print.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char *const status_text[LOCUS_STATUS_COUNT] = {
    [LOCUS_OK] = "ok",
    [LOCUS_ERR_ARGUMENT] = "bad argument",
    [LOCUS_ERR_SCHEME] = "unknown scheme",
    [LOCUS_ERR_OPTION] = "bad option",
    [LOCUS_ERR_TENSOR] = "bad tensor",
    [LOCUS_ERR_RANGE] = "table row out of range",
    [LOCUS_ERR_OVERLAP] = "output overlaps another tensor",
    [LOCUS_ERR_WORKSPACE] = "workspace too small",
    [LOCUS_ERR_MEMORY] = "out of memory",
    [LOCUS_ERR_FORMAT] = "file refused",
    [LOCUS_ERR_IO] = "input or output failed",
    [LOCUS_ERR_ISA] = "instruction set not available",
    [LOCUS_ERR_UNSUPPORTED] = "not in the kernels yet",
};

const char *locus_status_text(locus_status status)
{
    const size_t index = (size_t)status;
    return index < LOCUS_STATUS_COUNT ? status_text[index] : "unknown status";
}

#define TEXT_OF(x) #x
#define VERSION_TEXT(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char *locus_version(void)
{
    return VERSION_TEXT(LOCUS_VERSION_MAJOR, LOCUS_VERSION_MINOR, LOCUS_VERSION_PATCH);
}

static void copy_line(char *out, size_t capacity, const char *text);

/* Whatever a message quotes, it is one line that a terminal can show. */
locus_status locus_fail(locus_error *error, locus_status status, const char *format, ...)
{
    if (error != NULL) {
        char text[sizeof error->text];
        va_list arguments;
        va_start(arguments, format);
        locus_vprint(text, sizeof text, format, arguments);
        va_end(arguments);
        copy_line(error->text, sizeof error->text, text);
    }
    return status;
}

locus_status locus_fail_in(locus_error *error, locus_status status, const char *prefix)
{
    if (error != NULL) {
        char text[sizeof error->text];
        error->text[sizeof error->text - 1] = '\0';
        snprintf(text, sizeof text, "%.200s: %.300s", prefix, error->text);
        copy_line(error->text, sizeof error->text, text);
    }
    return status;
}

/* Bytes of the well-formed UTF-8 sequence at text[0], 0 if there is none. */
static size_t sequence_length(const unsigned char *text, size_t left)
{
    static const struct {
        unsigned char first_low, first_high, second_low, second_high;
        size_t length;
    } forms[] = {
        {0x00, 0x7F, 0x00, 0x00, 1}, {0xC2, 0xDF, 0x80, 0xBF, 2}, {0xE0, 0xE0, 0xA0, 0xBF, 3},
        {0xE1, 0xEC, 0x80, 0xBF, 3}, {0xED, 0xED, 0x80, 0x9F, 3}, {0xEE, 0xEF, 0x80, 0xBF, 3},
        {0xF0, 0xF0, 0x90, 0xBF, 4}, {0xF1, 0xF3, 0x80, 0xBF, 4}, {0xF4, 0xF4, 0x80, 0x8F, 4},
    };
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        if (text[0] < forms[i].first_low || text[0] > forms[i].first_high) continue;
        if (forms[i].length > left) return 0;
        if (forms[i].length == 1) return 1;
        if (text[1] < forms[i].second_low || text[1] > forms[i].second_high) return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if (text[k] < 0x80 || text[k] > 0xBF) return 0;
        return forms[i].length;
    }
    return 0;
}

/* Characters that change how the rest of a line is shown: C1 controls, direction
 * marks and embeddings, line and paragraph separators, the byte-order mark. */
static int is_unprintable(const unsigned char *s, size_t length)
{
    if (length == 1) return s[0] < 0x20 || s[0] == 0x7F || s[0] == '"' || s[0] == '\\';
    if (length == 2) return (s[0] == 0xC2 && s[1] < 0xA0) || (s[0] == 0xD8 && s[1] == 0x9C);
    if (length == 3 && s[0] == 0xE2) {
        const unsigned code = (unsigned)(s[1] & 0x3F) << 6 | (s[2] & 0x3F); /* low 12 bits */
        return (code >= 0x00B && code <= 0x00F) || (code >= 0x028 && code <= 0x02E) ||
               (code >= 0x060 && code <= 0x06F);
    }
    return length == 3 && s[0] == 0xEF && s[1] == 0xBB && s[2] == 0xBF;
}

static size_t put_bytes(char *out, const unsigned char *s, size_t count)
{
    size_t used = 0;
    for (size_t k = 0; k < count; k++) used += (size_t)snprintf(out + used, 5, "\\x%02X", s[k]);
    return used;
}

enum { WORST = 4 * 4, ELLIPSIS = 3 };

/* `quotes`: they and backslashes become escapes, too. */
static void escape(char *out, size_t capacity, const unsigned char *s, size_t bytes, int quotes)
{
    size_t used = 0;
    for (size_t i = 0; i < bytes;) {
        const size_t length = sequence_length(s + i, bytes - i);
        const size_t step = length == 0 ? 1 : length;
        const int quote = s[i] == '"' || s[i] == '\\';
        const int plain = length != 0 && (quote ? !quotes : !is_unprintable(s + i, length));
        const size_t room = (quotes ? WORST : plain ? step : 4 * step) + ELLIPSIS + 1;
        if (used + room > capacity) {
            if (capacity > ELLIPSIS) memcpy(out + used, "...", ELLIPSIS), used += ELLIPSIS;
            break;
        }
        if (plain) memcpy(out + used, s + i, step);
        used += plain ? step : put_bytes(out + used, s + i, step);
        i += step;
    }
    if (capacity > 0) out[used] = '\0';
}

char *locus_escape(char *out, size_t capacity, const char *text, size_t bytes)
{
    escape(out, capacity, (const unsigned char *)text, bytes, 1);
    return out;
}

static void copy_line(char *out, size_t capacity, const char *text)
{
    escape(out, capacity, (const unsigned char *)text, strlen(text), 0);
}
