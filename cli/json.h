/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

/* Writing JSON to a stream as it comes, with nothing kept but the nesting. `key`
 * is NULL inside arrays and at the top. */

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { JSON_DEPTH = 16 };

typedef struct json {
    FILE *out;
    size_t depth;
    struct {
        char close;  /* what ends it                                */
        char inside; /* 1: on one line                              */
        char filled; /* 1: has an element, so a comma comes next    */
    } level[JSON_DEPTH];
} json;

void json_object(json *j, const char *key);        /* one member per line     */
void json_array(json *j, const char *key);         /* one element per line    */
void json_inline_object(json *j, const char *key); /* all on one line         */
void json_inline_array(json *j, const char *key);
void json_end(json *j); /* the innermost one; the last one also ends the line */

void json_text(json *j, const char *key, const char *value); /* NULL: null */
/* Text that may hold NUL and ends in one more. */
void json_bytes(json *j, const char *key, const char *value, size_t bytes);
void json_integer(json *j, const char *key, int64_t value);
void json_size(json *j, const char *key, uint64_t value);
/* JSON has no infinities: those come as the strings "inf", "-inf" and "nan". */
void json_real(json *j, const char *key, double value);
/* The same with the nine digits that tell floats apart. */
void json_float(json *j, const char *key, float value);
void json_boolean(json *j, const char *key, int value);
void json_null(json *j, const char *key);
void json_shape(json *j, const char *key, const uint64_t *shape, size_t rank);

#endif
