/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_JSON_TREE_H
#define LOCUS_TEXT_JSON_TREE_H

/* A JSON file as a tree, for tokenizer and configuration files: strict, within limits (size of
 * the file, depth 32, bytes of a string, number of values), all memory from the caller's
 * allocator. Objects of up to JSON_UNIQUE keys are checked for duplicates; larger ones are
 * vocabularies, which are checked where they are used. */

#include <locus/status.h>

#include "io/json_scan.h"
#include "io/store.h"

#define JSON_MAX_VALUES ((size_t)4 << 20)
#define JSON_UNIQUE ((size_t)4096)

typedef struct json_value {
    locus_json_kind kind; /* OBJECT, ARRAY, STRING, INTEGER, NUMBER, TRUE, FALSE, NULL         */
    uint32_t key_bytes, bytes;
    const char *key;  /* in an object                                                          */
    const char *text; /* STRING: NUL-terminated; numbers: as written                           */
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

/* Parse `bytes` of text. Messages carry no path. */
locus_status locus_json_tree_parse(json_tree *tree, const char *text, size_t bytes,
                                   const locus_allocator *allocator, locus_error *error);
void locus_json_tree_free(json_tree *tree);

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
