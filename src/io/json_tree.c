/* SPDX-License-Identifier: Apache-2.0 */
#include "io/json_tree.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"

typedef struct reader {
    json_tree *tree;
    const json_limits *limits;
    const locus_allocator *allocator;
    locus_json json;
    locus_error *error;
    const char *key; /* of the value to come */
    uint32_t key_bytes;
    json_value *open[LOCUS_JSON_MAX_DEPTH + 1]; /* containers, and the last child of each */
    json_value *last[LOCUS_JSON_MAX_DEPTH + 1];
    size_t depth;
} reader;

static locus_status no_memory(locus_error *error)
{
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for a JSON file");
}

static json_value *add_value(reader *r, const locus_json_token *token)
{
    json_value *value = locus_arena_take(&r->tree->arena, sizeof *value, 16);
    if (value == NULL) return NULL;
    value->kind = token->kind;
    value->key = r->key;
    value->key_bytes = r->key_bytes;
    r->key = NULL;
    r->key_bytes = 0;
    if (r->depth == 0) {
        r->tree->root = value;
    } else {
        json_value *parent = r->open[r->depth];
        if (r->last[r->depth] == NULL)
            parent->child = value;
        else
            r->last[r->depth]->next = value;
        r->last[r->depth] = value;
        parent->count++;
    }
    return value;
}

static int compare_keys(const char *a, size_t a_bytes, const char *b, size_t b_bytes)
{
    const int order = memcmp(a, b, a_bytes < b_bytes ? a_bytes : b_bytes);
    return order != 0 ? order : (a_bytes > b_bytes) - (a_bytes < b_bytes);
}

static int compare_by_key(const void *a, const void *b)
{
    const json_value *x = *(json_value *const *)a, *y = *(json_value *const *)b;
    return compare_keys(x->key, x->key_bytes, y->key, y->key_bytes);
}

static void list_members(const json_value *container, json_value **list)
{
    size_t count = 0;
    for (json_value *v = container->child; v != NULL; v = v->next) list[count++] = v;
}

/* Sort the members of an object by their keys; none may be there twice. */
static locus_status sort_members(json_value **list, size_t count, locus_error *error)
{
    char name[100];
    qsort(list, count, sizeof *list, compare_by_key);
    for (size_t i = 1; i < count; i++)
        if (compare_by_key(&list[i - 1], &list[i]) == 0)
            return locus_fail(error, LOCUS_ERR_FORMAT,
                              "found the key \"%s\" twice in an object, expected it once",
                              locus_escape(name, sizeof name, list[i]->key, list[i]->key_bytes));
    return LOCUS_OK;
}

static locus_status check_keys(const reader *r, const json_value *object)
{
    if (object->count < 2 || object->count > r->limits->unique) return LOCUS_OK;
    json_value **list = locus_allocate(r->allocator, object->count, sizeof *list);
    if (list == NULL) return no_memory(r->error);
    list_members(object, list);
    const locus_status status = sort_members(list, object->count, r->error);
    locus_release(r->allocator, list);
    return status;
}

static locus_status take_text(reader *r, const locus_json_token *token, const char **text,
                              uint32_t *bytes)
{
    if (token->cut)
        return locus_fail(r->error, LOCUS_ERR_FORMAT,
                          "byte %" PRIu64 ": found a string of more than %zu bytes", token->at,
                          r->limits->text);
    *text = locus_arena_copy(&r->tree->arena, token->text, token->bytes);
    *bytes = (uint32_t)token->bytes;
    return *text == NULL ? no_memory(r->error) : LOCUS_OK;
}

static locus_status take_value(reader *r, const locus_json_token *token)
{
    if (++r->tree->values > r->limits->values)
        return locus_fail(r->error, LOCUS_ERR_FORMAT,
                          "byte %" PRIu64 ": found more than %zu values", token->at,
                          r->limits->values);
    json_value *value = add_value(r, token);
    if (value == NULL) return no_memory(r->error);
    switch (token->kind) {
    case LOCUS_JSON_OBJECT:
    case LOCUS_JSON_ARRAY:
        r->depth++;
        r->open[r->depth] = value;
        r->last[r->depth] = NULL;
        return LOCUS_OK;
    case LOCUS_JSON_INTEGER: value->integer = token->integer; break;
    case LOCUS_JSON_STRING:
    case LOCUS_JSON_NUMBER: break;
    default: return LOCUS_OK;
    }
    return take_text(r, token, &value->text, &value->bytes);
}

static locus_status take_token(reader *r, const locus_json_token *token)
{
    switch (token->kind) {
    case LOCUS_JSON_KEY: return take_text(r, token, &r->key, &r->key_bytes);
    case LOCUS_JSON_OBJECT_END:
        LOCUS_TRY(check_keys(r, r->open[r->depth]));
        r->depth--;
        return LOCUS_OK;
    case LOCUS_JSON_ARRAY_END: r->depth--; return LOCUS_OK;
    default: return take_value(r, token);
    }
}

static locus_status read_memory(void *context, uint64_t at, void *out, size_t count,
                                locus_error *error)
{
    (void)error;
    memcpy(out, (const char *)context + at, count);
    return LOCUS_OK;
}

/* The scanner speaks of headers and of the rules of safetensors. */
static void retell(locus_error *error)
{
    static const char header[] = "the end of the header";
    if (error == NULL) return;
    char *found = strstr(error->text, header), *rule = strstr(error->text, " [S");
    if (rule != NULL && strlen(rule) == strlen(" [S07]")) *rule = '\0';
    if (found == NULL) return;
    char *word = found + sizeof header - 1 - strlen("header");
    memcpy(word, "file", 4);
    memmove(word + 4, word + 6, strlen(word + 6) + 1);
}

locus_status locus_json_tree_read(json_tree *tree, const locus_json_source *source,
                                  const json_limits *limits, const locus_allocator *allocator,
                                  locus_error *error)
{
    reader r = {.tree = tree, .limits = limits, .allocator = allocator, .error = error};
    locus_json_token token;
    *tree = (json_tree){.arena = {.allocator = allocator}};
    locus_status status = locus_json_open(&r.json, source, allocator, error);
    while (status == LOCUS_OK) {
        status = locus_json_next(&r.json, limits->text, &token);
        if (status == LOCUS_ERR_FORMAT) retell(error);
        if (status != LOCUS_OK || token.kind == LOCUS_JSON_END) break;
        status = take_token(&r, &token);
    }
    locus_json_close(&r.json);
    if (status != LOCUS_OK) locus_json_tree_free(tree);
    return status;
}

locus_status locus_json_tree_parse(json_tree *tree, const char *text, size_t bytes,
                                   const json_limits *limits, const locus_allocator *allocator,
                                   locus_error *error)
{
    union {
        const char *text;
        void *context;
    } memory = {.text = text};
    const locus_json_source source = {.read = read_memory, .context = memory.context, .end = bytes};
    return locus_json_tree_read(tree, &source, limits, allocator, error);
}

void locus_json_tree_free(json_tree *tree)
{
    locus_arena_clear(&tree->arena);
    tree->root = NULL;
}

/* ---- the index ---- */

static int has_nul(const char *text, size_t bytes) { return memchr(text, '\0', bytes) != NULL; }

static locus_status check_text(const json_value *value, locus_error *error)
{
    char key[100] = "";
    if (value->key != NULL) locus_escape(key, sizeof key, value->key, value->key_bytes);
    if (value->key != NULL && has_nul(value->key, value->key_bytes))
        return locus_fail(error, LOCUS_ERR_FORMAT, "found a key with a NUL: %s", key);
    if (value->kind == LOCUS_JSON_STRING && has_nul(value->text, value->bytes))
        return locus_fail(error, LOCUS_ERR_FORMAT, "%s%sfound a string with a NUL", key,
                          value->key != NULL ? ": " : "");
    return LOCUS_OK;
}

/* As deep as the tree, at most LOCUS_JSON_MAX_DEPTH. */
static locus_status index_value(locus_arena *arena, json_value *value, locus_error *error)
{
    LOCUS_TRY(check_text(value, error));
    if (value->kind != LOCUS_JSON_OBJECT && value->kind != LOCUS_JSON_ARRAY) return LOCUS_OK;
    value->members =
        locus_arena_take(arena, (value->count + 1) * sizeof *value->members, sizeof(void *));
    if (value->members == NULL) return no_memory(error);
    list_members(value, value->members);
    for (size_t i = 0; i < value->count; i++)
        LOCUS_TRY(index_value(arena, value->members[i], error));
    return value->kind == LOCUS_JSON_OBJECT ? sort_members(value->members, value->count, error)
                                            : LOCUS_OK;
}

locus_status locus_json_tree_index(json_tree *tree, locus_error *error)
{
    return tree->root != NULL ? index_value(&tree->arena, tree->root, error) : LOCUS_OK;
}

static const json_value *member_by_key(const json_value *object, const char *key, size_t bytes)
{
    size_t low = 0, high = object->count;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        json_value *found = object->members[middle];
        const int order = compare_keys(found->key, found->key_bytes, key, bytes);
        if (order == 0) return found;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static const json_value *member_by_number(const json_value *list, const char *key, size_t bytes)
{
    size_t number = 0;
    if (bytes == 0 || bytes > 15) return NULL;
    for (size_t i = 0; i < bytes; i++) {
        if (key[i] < '0' || key[i] > '9') return NULL;
        number = 10 * number + (size_t)(key[i] - '0');
    }
    return number < list->count ? list->members[number] : NULL;
}

const json_value *locus_tree_member(const json_value *container, const char *key, size_t bytes)
{
    switch (container->kind) {
    case LOCUS_JSON_OBJECT: return member_by_key(container, key, bytes);
    case LOCUS_JSON_ARRAY: return member_by_number(container, key, bytes);
    default: return NULL;
    }
}

/* ---- members ---- */

const json_value *locus_tree_get(const json_value *object, const char *key)
{
    const size_t bytes = strlen(key);
    if (object == NULL || object->kind != LOCUS_JSON_OBJECT) return NULL;
    for (const json_value *v = object->child; v != NULL; v = v->next)
        if (v->key_bytes == bytes && memcmp(v->key, key, bytes) == 0) return v;
    return NULL;
}

int locus_tree_is_text(const json_value *value, const char *text)
{
    return value != NULL && value->kind == LOCUS_JSON_STRING && value->bytes == strlen(text) &&
           memcmp(value->text, text, value->bytes) == 0;
}

char *locus_tree_describe(char *out, size_t capacity, const json_value *value)
{
    char text[60];
    if (value == NULL) {
        snprintf(out, capacity, "nothing");
    } else if (value->kind == LOCUS_JSON_STRING) {
        snprintf(out, capacity, "\"%s\"",
                 locus_escape(text, sizeof text, value->text, value->bytes));
    } else if (value->kind == LOCUS_JSON_INTEGER || value->kind == LOCUS_JSON_NUMBER) {
        snprintf(out, capacity, "the number %.40s", value->text);
    } else {
        const char *words = value->kind == LOCUS_JSON_OBJECT  ? "an object"
                            : value->kind == LOCUS_JSON_ARRAY ? "an array"
                            : value->kind == LOCUS_JSON_TRUE  ? "true"
                            : value->kind == LOCUS_JSON_FALSE ? "false"
                                                              : "null";
        snprintf(out, capacity, "%s", words);
    }
    return out;
}

static locus_status wrong(const json_value *value, const char *where, const char *key,
                          const char *expected, locus_error *error)
{
    char found[100];
    return locus_fail(error, LOCUS_ERR_FORMAT, "%s: %s: found %s, expected %s", where, key,
                      locus_tree_describe(found, sizeof found, value), expected);
}

locus_status locus_tree_bool(const json_value *object, const char *where, const char *key,
                             int preset, int *value, locus_error *error)
{
    const json_value *found = locus_tree_get(object, key);
    *value = preset;
    if (found == NULL || found->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (found->kind != LOCUS_JSON_TRUE && found->kind != LOCUS_JSON_FALSE)
        return wrong(found, where, key, "true or false", error);
    *value = found->kind == LOCUS_JSON_TRUE;
    return LOCUS_OK;
}

locus_status locus_tree_unsigned(const json_value *object, const char *where, const char *key,
                                 uint64_t preset, uint64_t most, uint64_t *value,
                                 locus_error *error)
{
    const json_value *found = locus_tree_get(object, key);
    *value = preset;
    if (found == NULL || found->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (found->kind != LOCUS_JSON_INTEGER || found->integer > most) {
        char expected[64];
        snprintf(expected, sizeof expected, "an integer from 0 to %" PRIu64, most);
        return wrong(found, where, key, expected, error);
    }
    *value = found->integer;
    return LOCUS_OK;
}

locus_status locus_tree_string(const json_value *object, const char *where, const char *key,
                               const json_value **value, locus_error *error)
{
    const json_value *found = locus_tree_get(object, key);
    *value = NULL;
    if (found == NULL || found->kind == LOCUS_JSON_NULL) return LOCUS_OK;
    if (found->kind != LOCUS_JSON_STRING) return wrong(found, where, key, "a string", error);
    *value = found;
    return LOCUS_OK;
}
