/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_IO_NAMES_H
#define LOCUS_IO_NAMES_H

/* A set of names that finds duplicates in constant time per name, also for names
 * that somebody chose to collide: the hash (SipHash-1-3) has a random key. Names
 * stay with their owner; the set keeps 4 bytes per slot, 16 per name at the peak. */

#include <locus/status.h>

#define LOCUS_NAMES_NONE SIZE_MAX
#define LOCUS_NAMES_INDEX_BITS 20 /* of a slot; the other 12 are a tag of the hash */

typedef struct locus_names {
    const char *(*name_of)(const void *owner, size_t index); /* NUL-terminated */
    const void *owner;
    uint64_t key[2];
    uint32_t *slots; /* 0: free, else tag << 20 | (index + 1) */
    size_t slot_count, count;
} locus_names;

void locus_names_init(locus_names *names, const char *(*name_of)(const void *owner, size_t index),
                      const void *owner);

/* The index of a name or LOCUS_NAMES_NONE. */
size_t locus_names_find(const locus_names *names, const char *name);

/* Add name_of(owner, count). It must not be in the set. 0: no memory, nothing changed. */
int locus_names_add(locus_names *names, const locus_allocator *allocator);
void locus_names_clear(locus_names *names, const locus_allocator *allocator);

#endif
