/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TEXT_TRIE_H
#define LOCUS_TEXT_TRIE_H

/* A set of byte strings with a number each. Nodes are numbered level by level, so the children
 * of a node are neighbours and the children of node i end where those of node i + 1 begin. */

#include <locus/status.h>

#define TRIE_NONE UINT32_MAX

typedef struct trie_key {
    const char *text;
    uint32_t bytes;
    uint32_t value;
} trie_key;

typedef struct trie {
    uint32_t *first;    /* [nodes + 1] first child */
    uint32_t *value;    /* [nodes] or TRIE_NONE    */
    uint8_t *label;     /* [nodes] the byte that leads to the node */
    uint32_t root[256]; /* children of the root, TRIE_NONE: none */
    size_t nodes;
    uint32_t longest; /* bytes of the longest key */
} trie;

/* Build from keys in any order; `keys` is sorted. Of equal keys *duplicate becomes the index of
 * one (SIZE_MAX: none), and the one with the largest value stays. LOCUS_ERR_MEMORY at worst. */
locus_status locus_trie_build(trie *t, trie_key *keys, size_t count, size_t *duplicate,
                              const locus_allocator *allocator, locus_error *error);
void locus_trie_free(trie *t, const locus_allocator *allocator);

/* The child of `node` by a byte, TRIE_NONE: none. Node 0 is the root. */
static inline uint32_t trie_child(const trie *t, uint32_t node, unsigned char byte)
{
    if (node == 0) return t->root[byte];
    uint32_t low = t->first[node], high = t->first[node + 1];
    while (high - low > 4) {
        const uint32_t middle = low + (high - low) / 2;
        if (t->label[middle] <= byte)
            low = middle;
        else
            high = middle;
    }
    for (; low < high; low++)
        if (t->label[low] == byte) return low;
    return TRIE_NONE;
}

/* The value of a whole string, TRIE_NONE: not in the set. */
uint32_t locus_trie_find(const trie *t, const char *text, size_t bytes);

/* The longest key at the beginning of the text: its value, and its length in *length. */
uint32_t locus_trie_longest(const trie *t, const char *text, size_t bytes, size_t *length);

#endif
