/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exports.h"

static char *data;
static size_t length, room;

const char *page_text(void) { return data; }
size_t page_text_bytes(void) { return length; }

void text_begin(void) { length = 0; }

void text_add(const char *text, size_t bytes)
{
    if (length + bytes > room) {
        const size_t wanted = 2 * (length + bytes) + 4096;
        char *grown = realloc(data, wanted);
        if (grown == NULL) return; /* the page sees a text that ends early and says so */
        data = grown;
        room = wanted;
    }
    memcpy(data + length, text, bytes);
    length += bytes;
}

void text_print(const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    const int bytes = vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    if (bytes > 0) text_add(line, (size_t)bytes < sizeof line ? (size_t)bytes : sizeof line - 1);
}

void text_quote(const char *text)
{
    if (text == NULL) {
        text_print("null");
        return;
    }
    text_print("\"");
    for (const char *c = text; *c != '\0'; c++) {
        if (*c == '"' || *c == '\\')
            text_print("\\%c", *c);
        else if ((unsigned char)*c < 0x20)
            text_print("\\u%04x", (unsigned)*c);
        else
            text_add(c, 1);
    }
    text_print("\"");
}
