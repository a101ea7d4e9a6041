/* SPDX-License-Identifier: Apache-2.0 */
#include "json.h"

#include <inttypes.h>
#include <math.h>

#include "text.h"

static void new_line(json *j)
{
    fputc('\n', j->out);
    for (size_t i = 0; i < j->depth; i++) fputs("  ", j->out);
}

/* Everything before a value: comma, line break, key. */
static void begin(json *j, const char *key)
{
    if (j->depth > 0) {
        const size_t top = j->depth - 1;
        if (j->level[top].filled) fputc(',', j->out);
        if (!j->level[top].inside)
            new_line(j);
        else if (j->level[top].filled)
            fputc(' ', j->out);
        j->level[top].filled = 1;
    }
    if (key != NULL) {
        text_json(j->out, key);
        fputs(": ", j->out);
    }
}

static void open_level(json *j, const char *key, char mark, char close, char inside)
{
    begin(j, key);
    fputc(mark, j->out);
    if (j->depth > 0 && j->level[j->depth - 1].inside) inside = 1;
    j->level[j->depth].close = close;
    j->level[j->depth].inside = inside;
    j->level[j->depth].filled = 0;
    j->depth++;
}

void json_object(json *j, const char *key) { open_level(j, key, '{', '}', 0); }
void json_array(json *j, const char *key) { open_level(j, key, '[', ']', 0); }
void json_inline_object(json *j, const char *key) { open_level(j, key, '{', '}', 1); }
void json_inline_array(json *j, const char *key) { open_level(j, key, '[', ']', 1); }

void json_end(json *j)
{
    j->depth--;
    if (j->level[j->depth].filled && !j->level[j->depth].inside) new_line(j);
    fputc(j->level[j->depth].close, j->out);
    if (j->depth == 0) fputc('\n', j->out);
}

void json_text(json *j, const char *key, const char *value)
{
    begin(j, key);
    if (value != NULL)
        text_json(j->out, value);
    else
        fputs("null", j->out);
}

void json_bytes(json *j, const char *key, const char *value, size_t bytes)
{
    begin(j, key);
    text_json_bytes(j->out, value, bytes);
}

void json_integer(json *j, const char *key, int64_t value)
{
    begin(j, key);
    fprintf(j->out, "%" PRId64, value);
}

void json_size(json *j, const char *key, uint64_t value)
{
    begin(j, key);
    fprintf(j->out, "%" PRIu64, value);
}

/* A number that `text` spells, or the name of what JSON cannot. */
static void put_number(json *j, const char *key, double value, const char *text)
{
    begin(j, key);
    if (isnan(value))
        fputs("\"nan\"", j->out);
    else if (isinf(value))
        fputs(value > 0 ? "\"inf\"" : "\"-inf\"", j->out);
    else
        fputs(text, j->out);
}

void json_real(json *j, const char *key, double value)
{
    char buffer[40];
    put_number(j, key, value, text_real(buffer, sizeof buffer, value));
}

void json_float(json *j, const char *key, float value)
{
    char buffer[40];
    snprintf(buffer, sizeof buffer, "%.9g", (double)value);
    put_number(j, key, (double)value, buffer);
}

void json_boolean(json *j, const char *key, int value)
{
    begin(j, key);
    fputs(value ? "true" : "false", j->out);
}

void json_null(json *j, const char *key) { json_text(j, key, NULL); }

void json_shape(json *j, const char *key, const uint64_t *shape, size_t rank)
{
    json_inline_array(j, key);
    for (size_t i = 0; i < rank; i++) json_size(j, NULL, shape[i]);
    json_end(j);
}
