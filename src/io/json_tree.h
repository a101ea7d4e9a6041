/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_JSON_TREE_H
#define LOCUS_IO_JSON_TREE_H

/* A JSON file as a tree, for tokenizer and configuration files: strict, within limits (depth 32 and
 * what the caller says), all memory from the caller's allocator. */

#include <locus/status.h>

#include "io/json_scan.h"
#include "io/store.h"

typedef struct json_limits {
    size_t text;   /* bytes of a string or a key */
    size_t values; /* of all containers together, and they themselves */
    size_t unique; /* a key that occurs twice in an object of at most so many is refused; in larger
                      ones, and with 0, both are there */
} json_limits;

typedef struct json_value {
    locus_json_kind kind; /* OBJECT, ARRAY, STRING, INTEGER, NUMBER, TRUE, FALSE, NULL         */
    uint32_t key_bytes, bytes;
    const char *key; /* in an object */
    union {
        const char *text;            /* STRING: NUL-terminated; numbers: as written */
        struct json_value **members; /* OBJECT: by key; ARRAY: in order; NULL: no index */
    };
    union {
        struct json_value *child; /* OBJECT, ARRAY: the first */
        uint64_t integer;
    };
    struct json_value *next; /* in the same container */
    size_t count;            /* OBJECT, ARRAY         */
} json_value;

typedef struct json_tree {
    locus_arena arena;
    json_value *root;
    size_t values;
} json_tree;

/* Parse a source, or `bytes` of text. Messages carry no path. On failure nothing is left to free. */
locus_status locus_json_tree_read(json_tree *tree, const locus_json_source *source,
                                  const json_limits *limits, const locus_allocator *allocator,
                                  locus_error *error);
locus_status locus_json_tree_parse(json_tree *tree, const char *text, size_t bytes,
                                   const json_limits *limits, const locus_allocator *allocator,
                                   locus_error *error);
void locus_json_tree_free(json_tree *tree);

/* Give every container its `members`. A key that occurs twice in any object is refused, and a key or
 * a string with a NUL in it. Needs 8 bytes a value. */
locus_status locus_json_tree_index(json_tree *tree, locus_error *error);

/* By its index: a member of an object, or of a list by its number ("0", "17"), or NULL. */
const json_value *locus_tree_member(const json_value *container, const char *key, size_t bytes);

/* A member of an object, or NULL; also for a value that is no object. */
const json_value *locus_tree_get(const json_value *object, const char *key);

/* Typed members. `where` names the object in messages ("normalizer"). An absent member is the
 * default; one of another type is refused. */
locus_status locus_tree_bool(const json_value *object, const char *where, const char *key,
                             int preset, int *value, locus_error *error);
locus_status locus_tree_unsigned(const json_value *object, const char *where, const char *key,
                                 uint64_t preset, uint64_t most, uint64_t *value,
                                 locus_error *error);
/* NULL where absent or null. */
locus_status locus_tree_string(const json_value *object, const char *where, const char *key,
                               const json_value **value, locus_error *error);
int locus_tree_is_text(const json_value *value, const char *text);
/* "an object", "the number -1", ... for messages. Returns out. */
char *locus_tree_describe(char *out, size_t capacity, const json_value *value);

#endif
