/* SPDX-License-Identifier: Apache-2.0 */
#include "plot/text.h"
#include "core/decimal.h"
#include "core/print.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/utf8.h"

/* ---- growing ---- */

static int grow(plot_text *text, size_t more)
{
    locus_text *to = text->to;
    if (text->failed) return 0;
    if (more < to->capacity && to->length < to->capacity - more) return 1;
    const size_t least = to->length + more + 1;
    const size_t capacity = least < 2 * to->capacity ? 2 * to->capacity : least + 1024;
    char *data = least > more ? locus_allocate(to->allocator, capacity, 1) : NULL;
    text->failed = data == NULL;
    if (data == NULL) return 0;
    if (to->length > 0) memcpy(data, to->data, to->length);
    locus_release(to->allocator, to->data);
    to->data = data;
    to->capacity = capacity;
    return 1;
}

void plot_put(plot_text *text, const char *bytes, size_t count)
{
    if (!grow(text, count)) return;
    memcpy(text->to->data + text->to->length, bytes, count);
    text->to->length += count;
    text->to->data[text->to->length] = '\0';
}

void plot_puts(plot_text *text, const char *string) { plot_put(text, string, strlen(string)); }
void plot_char(plot_text *text, char character) { plot_put(text, &character, 1); }

void plot_spaces(plot_text *text, size_t count)
{
    for (; count > 0; count--) plot_char(text, ' ');
}

void locus_text_free(locus_text *text)
{
    if (text == NULL) return;
    locus_release(text->allocator, text->data);
    memset(text, 0, sizeof *text);
}

/* ---- numbers ---- */

void plot_integer(plot_text *text, int64_t value)
{
    char buffer[32];
    plot_puts(text, plot_fixed_text(buffer, (double)value, 0));
}

/* Through whole numbers, so that no locale can put a comma. */
char *plot_padded_text(char *buffer, double value, int digits)
{
    static const double powers[] = {1, 10, 100, 1e3, 1e4, 1e5, 1e6};
    if (isnan(value)) return memcpy(buffer, "nan", 4);
    if (fabs(value) > 1e12) return value > 0 ? memcpy(buffer, "inf", 4) : memcpy(buffer, "-inf", 5);
    const long long scaled = llround(value * powers[digits]), power = (long long)powers[digits];
    char *end = buffer + snprintf(buffer, PLOT_NUMBER, "%s%lld", scaled < 0 ? "-" : "",
                                  llabs(scaled) / power);
    if (digits == 0) return buffer;
    long long part = llabs(scaled) % power;
    end[0] = '.';
    end[digits + 1] = '\0';
    for (; digits > 0; digits--, part /= 10) end[digits] = (char)('0' + part % 10);
    return buffer;
}

char *plot_fixed_text(char *buffer, double value, int digits)
{
    plot_padded_text(buffer, value, digits);
    if (strchr(buffer, '.') == NULL) return buffer;
    char *end = buffer + strlen(buffer);
    while (end[-1] == '0') *--end = '\0';
    if (end[-1] == '.') *--end = '\0';
    return buffer;
}

void plot_fixed(plot_text *text, double value, int digits)
{
    char buffer[PLOT_NUMBER];
    plot_puts(text, plot_fixed_text(buffer, value, digits));
}

void plot_exact(plot_text *text, double value)
{
    char buffer[PLOT_NUMBER];
    double read = 0.0;
    if (value == 0) value = 0; /* not -0 */
    for (int digits = 1; digits <= 17; digits++) {
        locus_print(buffer, sizeof buffer, "%.*g", digits, value);
        if (locus_read_real(buffer, &read) > 0 && read == value) break;
    }
    plot_puts(text, buffer);
}

/* ---- strangers' text ---- */

/* Control characters, and the marks that reorder, join or hide what stands around them. */
static int is_unsafe(uint32_t code)
{
    return code < 0x20 || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
           (code >= 0x2028 && code <= 0x202E) || (code >= 0x2060 && code <= 0x206F) ||
           code == 0xFEFF || (code >= 0xFFF9 && code <= 0xFFFB) || (code & 0xFFFE) == 0xFFFE;
}

/* Bytes of the sequence at `from`, 0 where it is broken. */
static size_t sequence(const char *from, uint32_t *code)
{
    static const unsigned char masks[] = {0x7F, 0x1F, 0x0F, 0x07};
    locus_utf8 state;
    size_t count = 1;
    if (!locus_utf8_begin(&state, (unsigned char)*from)) return 0;
    *code = (unsigned char)*from & masks[state.left];
    for (; state.left > 0; count++) {
        const unsigned char byte = (unsigned char)from[count];
        if (!locus_utf8_continue(&state, byte)) return 0;
        *code = *code << 6 | (byte & 0x3F);
    }
    return count;
}

size_t plot_next(const char **from, unsigned char out[4])
{
    uint32_t code = 0;
    if (**from == '\0') return 0;
    const size_t count = sequence(*from, &code);
    *from += count > 0 ? count : 1;
    return locus_utf8_encode(out, count == 0 || is_unsafe(code) ? 0xFFFD : code);
}

size_t plot_columns(const char *text)
{
    unsigned char bytes[4];
    size_t count = 0;
    while (plot_next(&text, bytes) > 0) count++;
    return count;
}

char *plot_copy(char *buffer, size_t capacity, const char *from, size_t limit)
{
    static const char ellipsis[] = "\u2026";
    const char *text = from != NULL ? from : "";
    const int cut = limit > 0 && plot_columns(text) > limit;
    unsigned char bytes[4];
    size_t used = 0, count, shown = 0;
    while ((!cut || ++shown < limit) && (count = plot_next(&text, bytes)) > 0) {
        if (used + count + sizeof ellipsis > capacity) break;
        memcpy(buffer + used, bytes, count);
        used += count;
    }
    buffer[used] = '\0';
    if (*text != '\0') memcpy(buffer + used, ellipsis, sizeof ellipsis);
    return buffer;
}

void plot_escaped(plot_text *text, const char *string)
{
    unsigned char bytes[4];
    size_t count;
    while ((count = plot_next(&string, bytes)) > 0) {
        switch (bytes[0]) {
        case '&': plot_puts(text, "&amp;"); break;
        case '<': plot_puts(text, "&lt;"); break;
        case '>': plot_puts(text, "&gt;"); break;
        case '"': plot_puts(text, "&quot;"); break;
        case '\'': plot_puts(text, "&#39;"); break;
        default: plot_put(text, (const char *)bytes, count);
        }
    }
}
