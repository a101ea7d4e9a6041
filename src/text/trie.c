/* SPDX-License-Identifier: Apache-2.0 */
#include "text/trie.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/memory.h"
#include "text/buffer.h"

static int compare_keys(const void *a, const void *b)
{
    const trie_key *x = a, *y = b;
    const size_t common = x->bytes < y->bytes ? x->bytes : y->bytes;
    const int order = memcmp(x->text, y->text, common);
    if (order != 0) return order;
    if (x->bytes != y->bytes) return x->bytes < y->bytes ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

/* A node under construction: keys [low, high) share its `depth` bytes. */
typedef struct range {
    uint32_t low, high, depth, first, value;
    uint8_t label;
} range;

static int add_node(text_array *nodes, const locus_allocator *allocator, range node)
{
    if (nodes->count >= TRIE_NONE - 1 ||
        !locus_text_array_reserve(nodes, allocator, nodes->count + 1, sizeof(range)))
        return 0;
    ((range *)nodes->data)[nodes->count++] = node;
    return 1;
}

/* Level by level; the array of nodes is its own queue. */
static int grow(text_array *nodes, const trie_key *keys, size_t count,
                const locus_allocator *allocator)
{
    if (!add_node(nodes, allocator, (range){.high = (uint32_t)count, .value = TRIE_NONE})) return 0;
    for (size_t i = 0; i < nodes->count; i++) {
        range node = ((range *)nodes->data)[i];
        for (; node.low < node.high && keys[node.low].bytes == node.depth; node.low++)
            node.value = keys[node.low].value;
        node.first = (uint32_t)nodes->count;
        ((range *)nodes->data)[i] = node;
        for (uint32_t low = node.low; low < node.high;) {
            const char byte = keys[low].text[node.depth];
            uint32_t high = low + 1;
            while (high < node.high && keys[high].text[node.depth] == byte) high++;
            const range child = {.low = low,
                                 .high = high,
                                 .depth = node.depth + 1,
                                 .value = TRIE_NONE,
                                 .label = (uint8_t)byte};
            if (!add_node(nodes, allocator, child)) return 0;
            low = high;
        }
    }
    return 1;
}

static int pack(trie *t, const text_array *nodes, const locus_allocator *allocator)
{
    const range *from = nodes->data;
    t->nodes = nodes->count;
    t->first = locus_allocate(allocator, t->nodes + 1, sizeof *t->first);
    t->value = locus_allocate(allocator, t->nodes, sizeof *t->value);
    t->label = locus_allocate(allocator, t->nodes, sizeof *t->label);
    if (t->first == NULL || t->value == NULL || t->label == NULL) return 0;
    for (size_t i = 0; i < t->nodes; i++) {
        t->first[i] = from[i].first;
        t->value[i] = from[i].value;
        t->label[i] = from[i].label;
    }
    t->first[t->nodes] = (uint32_t)t->nodes;
    for (size_t i = 0; i < 256; i++) t->root[i] = TRIE_NONE;
    const uint32_t end = t->nodes > 1 ? t->first[1] : t->first[0];
    for (uint32_t i = t->first[0]; i < end; i++) t->root[t->label[i]] = i;
    return 1;
}

locus_status locus_trie_build(trie *t, trie_key *keys, size_t count, size_t *duplicate,
                              const locus_allocator *allocator, locus_error *error)
{
    text_array nodes = {.data = NULL};
    memset(t, 0, sizeof *t);
    *duplicate = SIZE_MAX;
    if (count > 0) qsort(keys, count, sizeof *keys, compare_keys);
    for (size_t i = 0; i < count; i++) {
        if (keys[i].bytes > t->longest) t->longest = keys[i].bytes;
        if (i > 0 && keys[i].bytes == keys[i - 1].bytes &&
            memcmp(keys[i].text, keys[i - 1].text, keys[i].bytes) == 0)
            *duplicate = i;
    }
    const int good = grow(&nodes, keys, count, allocator) && pack(t, &nodes, allocator);
    locus_text_array_free(&nodes, allocator);
    if (good) return LOCUS_OK;
    locus_trie_free(t, allocator);
    return locus_fail(error, LOCUS_ERR_MEMORY, "no memory for %zu tokens", count);
}

void locus_trie_free(trie *t, const locus_allocator *allocator)
{
    locus_release(allocator, t->first);
    locus_release(allocator, t->value);
    locus_release(allocator, t->label);
    memset(t, 0, sizeof *t);
}

uint32_t locus_trie_find(const trie *t, const char *text, size_t bytes)
{
    uint32_t node = 0;
    if (t->nodes == 0) return TRIE_NONE;
    for (size_t i = 0; i < bytes; i++) {
        node = trie_child(t, node, (unsigned char)text[i]);
        if (node == TRIE_NONE) return TRIE_NONE;
    }
    return t->value[node];
}

uint32_t locus_trie_longest(const trie *t, const char *text, size_t bytes, size_t *length)
{
    uint32_t node = 0, value = TRIE_NONE;
    *length = 0;
    if (t->nodes == 0) return TRIE_NONE;
    for (size_t i = 0; i < bytes; i++) {
        node = trie_child(t, node, (unsigned char)text[i]);
        if (node == TRIE_NONE) break;
        if (t->value[node] != TRIE_NONE) {
            value = t->value[node];
            *length = i + 1;
        }
    }
    return value;
}
