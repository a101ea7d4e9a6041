/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON tree: what is read, written again and read again is the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/json_tree.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_TEXT = 1 << 20 };
static char written[MOST_TEXT];
static size_t used;

static void put(const char *text, size_t bytes)
{
    if (bytes > MOST_TEXT - used) abort();
    memcpy(written + used, text, bytes);
    used += bytes;
}

static void put_string(const char *text, size_t bytes)
{
    char escape[8];
    if (text[bytes] != '\0') abort();
    put("\"", 1);
    for (size_t i = 0; i < bytes; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == '"' || text[i] == '\\')
            put(escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", text[i]));
        else
            put(text + i, 1);
    put("\"", 1);
}

/* Depth is at most 32, so this may call itself. */
static void put_value(const json_value *value)
{
    static const char *const words[] = {
        [LOCUS_JSON_TRUE] = "true", [LOCUS_JSON_FALSE] = "false", [LOCUS_JSON_NULL] = "null"};
    const int object = value->kind == LOCUS_JSON_OBJECT;
    char name[64];
    size_t count = 0;
    if (locus_tree_describe(name, sizeof name, value) != name) abort();
    if (object || value->kind == LOCUS_JSON_ARRAY) {
        put(object ? "{" : "[", 1);
        for (const json_value *child = value->child; child != NULL; child = child->next) {
            if (count++ > 0) put(",", 1);
            if (object) put_string(child->key, child->key_bytes);
            if (object) put(":", 1);
            put_value(child);
        }
        put(object ? "}" : "]", 1);
        if (count != value->count) abort();
    } else if (value->kind == LOCUS_JSON_STRING) {
        put_string(value->text, value->bytes);
    } else if (value->kind == LOCUS_JSON_INTEGER) {
        put(name, (size_t)snprintf(name, sizeof name, "%llu", (unsigned long long)value->integer));
    } else if (value->kind == LOCUS_JSON_NUMBER) {
        const int cut = strlen(value->text) == LOCUS_JSON_NUMBER_TEXT; /* no number any more */
        put(cut ? "0.5" : value->text, cut ? 3 : strlen(value->text));
    } else {
        put(words[value->kind], strlen(words[value->kind]));
    }
}

static int write_again(const char *text, size_t bytes, size_t unique)
{
    const json_limits limits = {.text = 4096, .values = 4096, .unique = unique};
    json_tree tree;
    locus_error error = {""};
    const locus_status status = locus_json_tree_parse(&tree, text, bytes, &limits, NULL, &error);
    if ((status == LOCUS_OK) != (error.text[0] == '\0') || strchr(error.text, '\n') != NULL)
        abort();
    used = 0;
    if (status == LOCUS_OK) put_value(tree.root);
    if (status == LOCUS_OK) locus_json_tree_free(&tree);
    return status == LOCUS_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char first[MOST_TEXT];
    const int strict = write_again((const char *)data, size, 64);
    if (!write_again((const char *)data, size, 0)) return strict ? (abort(), 0) : 0;
    const size_t bytes = used;
    memcpy(first, written, bytes);
    if (!write_again(first, bytes, 0) || used != bytes || memcmp(first, written, bytes) != 0)
        abort();
    return 0;
}
