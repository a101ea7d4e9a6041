/* SPDX-License-Identifier: Apache-2.0 */
#include "core/print.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* One conversion of a format, %[flags][width][.precision][length]kind, without its length. */
typedef struct conversion {
    char format[32];
    size_t used;
    char length[3], kind;
} conversion;

static void add(conversion *c, char character)
{
    if (c->used + 4 < sizeof c->format) c->format[c->used++] = character;
}

/* A width or a precision: digits, or an int of the call. */
static const char *add_number(conversion *c, const char *at, va_list *arguments)
{
    char digits[16];
    if (*at != '*') {
        while (*at >= '0' && *at <= '9') add(c, *at++);
        return at;
    }
    snprintf(digits, sizeof digits, "%d", va_arg(*arguments, int));
    for (const char *d = digits; *d != '\0'; d++) add(c, *d);
    return at + 1;
}

/* What stands behind a '%'; returns what follows. */
static const char *read_conversion(conversion *c, const char *at, va_list *arguments)
{
    *c = (conversion){.format = "%", .used = 1};
    while (*at != '\0' && strchr("-+ #0", *at) != NULL) add(c, *at++);
    at = add_number(c, at, arguments);
    if (*at == '.') {
        add(c, *at++);
        at = add_number(c, at, arguments);
    }
    for (size_t i = 0; i < 2 && *at != '\0' && strchr("hljzt", *at) != NULL; i++)
        c->length[i] = *at++;
    c->kind = *at;
    return *at != '\0' ? at + 1 : at;
}

static intmax_t next_signed(const char *length, va_list *arguments)
{
    if (strcmp(length, "l") == 0) return va_arg(*arguments, long);
    if (strcmp(length, "ll") == 0) return va_arg(*arguments, long long);
    if (length[0] == 'z' || length[0] == 't') return va_arg(*arguments, ptrdiff_t);
    if (length[0] == 'j') return va_arg(*arguments, intmax_t);
    return va_arg(*arguments, int);
}

static uintmax_t next_unsigned(const char *length, va_list *arguments)
{
    if (strcmp(length, "l") == 0) return va_arg(*arguments, unsigned long);
    if (strcmp(length, "ll") == 0) return va_arg(*arguments, unsigned long long);
    if (length[0] == 'z' || length[0] == 't') return va_arg(*arguments, size_t);
    if (length[0] == 'j') return va_arg(*arguments, uintmax_t);
    return va_arg(*arguments, unsigned);
}

/* A locale's point may have several bytes; no other byte of a number is outside these. */
static size_t put_points(char *text)
{
    size_t used = 0;
    int behind = 0;
    for (const char *from = text; *from != '\0'; from++) {
        const int other = strchr("0123456789+-abcdefinptxyABCDEFINPTXY ", *from) == NULL;
        if (other && behind) continue;
        text[used++] = other ? '.' : *from;
        behind = other;
    }
    text[used] = '\0';
    return used;
}

/* The formats are put together here and have been checked where locus_print was called. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"

static size_t print_real(char *out, size_t room, const conversion *c, double value)
{
    enum { LONGEST = 512 }; /* of "%.99f", with room for a width */
    char text[LONGEST];
    snprintf(text, sizeof text, c->format, value);
    const size_t length = put_points(text);
    snprintf(out, room, "%s", text);
    return length;
}

static size_t print_one(char *out, size_t room, conversion *c, va_list *arguments)
{
    const int whole = strchr("diuxXo", c->kind) != NULL;
    if (whole) add(c, 'j');
    c->format[c->used++] = c->kind;
    c->format[c->used] = '\0';
    int length = 0;
    switch (c->kind) {
    case 'd':
    case 'i': length = snprintf(out, room, c->format, next_signed(c->length, arguments)); break;
    case 'u':
    case 'x':
    case 'X':
    case 'o': length = snprintf(out, room, c->format, next_unsigned(c->length, arguments)); break;
    case 'c': length = snprintf(out, room, c->format, va_arg(*arguments, int)); break;
    case 's': length = snprintf(out, room, c->format, va_arg(*arguments, const char *)); break;
    case 'p': length = snprintf(out, room, c->format, va_arg(*arguments, void *)); break;
    case '%': length = snprintf(out, room, "%%"); break;
    default: return print_real(out, room, c, va_arg(*arguments, double));
    }
    return length > 0 ? (size_t)length : 0;
}

#pragma GCC diagnostic pop

int locus_vprint(char *out, size_t capacity, const char *format, va_list arguments)
{
    size_t used = 0;
    va_list list;
    va_copy(list, arguments);
    if (capacity > 0) out[0] = '\0';
    while (*format != '\0') {
        const size_t plain = strcspn(format, "%");
        char *to = used < capacity ? out + used : NULL;
        const size_t room = used < capacity ? capacity - used : 0;
        if (plain > 0) {
            const size_t fits = plain < room ? plain : room - (room > 0);
            if (fits > 0) memcpy(to, format, fits);
            if (room > 0) to[fits] = '\0';
            used += plain;
            format += plain;
        } else {
            conversion c;
            format = read_conversion(&c, format + 1, &list);
            used += print_one(to, room, &c, &list);
        }
    }
    va_end(list);
    return (int)used;
}

int locus_print(char *out, size_t capacity, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    const int length = locus_vprint(out, capacity, format, arguments);
    va_end(arguments);
    return length;
}
