/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L /* clock_gettime */
#include "io/names.h"

#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/memory.h"
#include "io/bytes.h"
#include "io/system.h"

enum { FIRST_SLOTS = 256 };
#define INDEX_MASK (((uint32_t)1 << LOCUS_NAMES_INDEX_BITS) - 1)

/* ---- SipHash-1-3 (Aumasson, Bernstein 2012), 64-bit result ---- */

static uint64_t rotate(uint64_t x, unsigned by) { return x << by | x >> (64 - by); }

static void sip_round(uint64_t v[4])
{
    v[0] += v[1], v[2] += v[3];
    v[1] = rotate(v[1], 13) ^ v[0], v[3] = rotate(v[3], 16) ^ v[2];
    v[0] = rotate(v[0], 32);
    v[2] += v[1], v[0] += v[3];
    v[1] = rotate(v[1], 17) ^ v[2], v[3] = rotate(v[3], 21) ^ v[0];
    v[2] = rotate(v[2], 32);
}

static void sip_word(uint64_t v[4], uint64_t word)
{
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t hash_of(const uint64_t key[2], const char *name)
{
    const unsigned char *text = (const unsigned char *)name;
    const size_t bytes = strlen(name);
    uint64_t v[4] = {key[0] ^ 0x736f6d6570736575u, key[1] ^ 0x646f72616e646f6du,
                     key[0] ^ 0x6c7967656e657261u, key[1] ^ 0x7465646279746573u};
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) sip_word(v, locus_load_u64(text + at));
    uint64_t last = (uint64_t)bytes << 56;
    for (size_t i = 0; at + i < bytes; i++) last |= (uint64_t)text[at + i] << (8 * i);
    sip_word(v, last);
    v[2] ^= 0xFF;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* A key that a file's author cannot know. Where the system has no random numbers
 * (an old kernel, a sandbox), the clock and an address are better than a constant. */
static void draw_key(uint64_t key[2])
{
    struct timespec now = {0, 0};
    if (locus_system_random(key, 2 * sizeof *key)) return;
    if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) now.tv_nsec = 0;
    key[0] = (uint64_t)now.tv_sec << 32 ^ (uint64_t)now.tv_nsec;
    key[1] = (uint64_t)(uintptr_t)key ^ (uint64_t)getpid() << 40;
}

/* ---- the table: open addressing, at most 3/4 full ---- */

void locus_names_init(locus_names *names, const char *(*name_of)(const void *owner, size_t index),
                      const void *owner)
{
    *names = (locus_names){.name_of = name_of, .owner = owner};
    draw_key(names->key);
}

static uint32_t slot_value(uint64_t hash, size_t index)
{
    return (uint32_t)(hash >> 52) << LOCUS_NAMES_INDEX_BITS | (uint32_t)(index + 1);
}

static void place(const locus_names *names, uint32_t *slots, size_t slot_count, size_t index)
{
    const uint64_t hash = hash_of(names->key, names->name_of(names->owner, index));
    size_t slot = (size_t)hash & (slot_count - 1);
    while (slots[slot] != 0) slot = (slot + 1) & (slot_count - 1);
    slots[slot] = slot_value(hash, index);
}

size_t locus_names_find(const locus_names *names, const char *name)
{
    if (names->count == 0) return LOCUS_NAMES_NONE;
    const uint64_t hash = hash_of(names->key, name);
    const uint32_t tag = slot_value(hash, 0) & ~INDEX_MASK;
    const size_t mask = names->slot_count - 1;
    for (size_t slot = (size_t)hash & mask; names->slots[slot] != 0; slot = (slot + 1) & mask) {
        const uint32_t value = names->slots[slot];
        const size_t index = (value & INDEX_MASK) - 1;
        if ((value & ~INDEX_MASK) == tag && strcmp(names->name_of(names->owner, index), name) == 0)
            return index;
    }
    return LOCUS_NAMES_NONE;
}

static int grow(locus_names *names, const locus_allocator *allocator)
{
    const size_t slot_count = names->slot_count == 0 ? FIRST_SLOTS : 2 * names->slot_count;
    uint32_t *slots = locus_allocate(allocator, slot_count, sizeof *slots);
    if (slots == NULL) return 0;
    for (size_t i = 0; i < names->count; i++) place(names, slots, slot_count, i);
    locus_release(allocator, names->slots);
    names->slots = slots;
    names->slot_count = slot_count;
    return 1;
}

int locus_names_add(locus_names *names, const locus_allocator *allocator)
{
    if (names->count >= INDEX_MASK) return 0;
    if (names->count >= names->slot_count / 4 * 3 && !grow(names, allocator)) return 0;
    place(names, names->slots, names->slot_count, names->count);
    names->count++;
    return 1;
}

void locus_names_clear(locus_names *names, const locus_allocator *allocator)
{
    locus_release(allocator, names->slots);
    names->slots = NULL;
    names->slot_count = names->count = 0;
}
