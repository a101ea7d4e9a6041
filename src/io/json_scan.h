/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_JSON_SCAN_H
#define LOCUS_IO_JSON_SCAN_H

/* A pull scanner for strict JSON (RFC 8259) in UTF-8. It holds a window of the text
 * and the current string, never the text or a tree: the caller sees one token at a
 * time and refuses a file at the byte that is wrong. No recursion. */

#include <locus/status.h>

#include "core/utf8.h"

#define LOCUS_JSON_WINDOW ((size_t)65536)
#define LOCUS_JSON_MAX_DEPTH 32u
#define LOCUS_JSON_NUMBER_TEXT 32u /* bytes of a number that are kept for messages */

typedef enum locus_json_kind {
    LOCUS_JSON_END, /* the text is over: one value and white space */
    LOCUS_JSON_OBJECT,
    LOCUS_JSON_OBJECT_END,
    LOCUS_JSON_ARRAY,
    LOCUS_JSON_ARRAY_END,
    LOCUS_JSON_KEY,
    LOCUS_JSON_STRING,
    LOCUS_JSON_INTEGER, /* digits only, at most 2^64 - 1                             */
    LOCUS_JSON_NUMBER,  /* any other number: larger, a sign, a fraction, an exponent */
    LOCUS_JSON_TRUE,
    LOCUS_JSON_FALSE,
    LOCUS_JSON_NULL,
} locus_json_kind;

typedef struct locus_json_token {
    locus_json_kind kind;
    uint64_t at;      /* offset of its first byte in the file                      */
    uint64_t integer; /* INTEGER: the value, exact                                 */
    const char *text; /* KEY, STRING: unescaped; numbers: as written, maybe cut.   */
    size_t bytes;     /* NUL-terminated, valid until the next call                 */
    int cut;          /* KEY, STRING: longer than the limit; scanning stopped here */
} locus_json_token;

/* Where the text comes from: bytes [begin, end) of a file. `read` delivers exactly
 * `count` bytes from offset `at`, or fails. */
typedef struct locus_json_source {
    locus_status (*read)(void *context, uint64_t at, void *out, size_t count, locus_error *error);
    void *context;
    uint64_t begin, end;
} locus_json_source;

typedef struct locus_json {
    locus_json_source source;
    const locus_allocator *allocator;
    locus_error *error;
    locus_status status; /* sticky: the first failure                             */
    unsigned expect;     /* what may come next, an enum of json_scan.c            */
    unsigned depth;
    uint32_t objects; /* bit d: the container at depth d + 1 is an object      */
    unsigned char *window;
    size_t position, filled; /* in the window                                     */
    uint64_t window_at;      /* file offset of window[0]                          */
    char *text;              /* the current string                                */
    size_t bytes, capacity, limit;
    int cut;
    char number[LOCUS_JSON_NUMBER_TEXT + 1];
} locus_json;

/* Failing calls write "byte N: found ..., expected ..." to `error`, without the path. */
locus_status locus_json_open(locus_json *json, const locus_json_source *source,
                             const locus_allocator *allocator, locus_error *error);
void locus_json_close(locus_json *json);

/* The next token. A string longer than `limit` bytes comes back cut, at once, and
 * ends the scan: memory stays within a constant times the limit. */
locus_status locus_json_next(locus_json *json, size_t limit, locus_json_token *token);

/* A token in words, for messages: "a string", "the integer 7", ... Returns out. */
char *locus_json_describe(char *out, size_t capacity, const locus_json_token *token);

#endif
