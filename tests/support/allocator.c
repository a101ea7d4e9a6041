/* SPDX-License-Identifier: Apache-2.0 */
#include "support/allocator.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* header (one alignment unit) | the caller's bytes, padded | trailer of canaries */
enum { UNIT = 64 };
#define ALIVE 0x6C6F6375735F6F6Bull
#define DEAD 0x6C6F6375735F6E6Full

typedef struct header {
    uint64_t mark;
    size_t bytes;
    const test_allocator *owner;
} header;

static int fails(test_allocator *memory)
{
    const size_t call = ++memory->calls;
    if (memory->fail_at == 0 || call < memory->fail_at) return 0;
    if (call > memory->fail_at && !memory->fail_for_ever) return 0;
    memory->failures++;
    return 1;
}

static size_t padded(size_t bytes) { return (bytes + UNIT - 1) / UNIT * UNIT; }

static void *allocate(void *context, size_t bytes)
{
    test_allocator *memory = context;
    if (fails(memory) || bytes > SIZE_MAX / 2) return NULL;
    unsigned char *block = aligned_alloc(UNIT, UNIT + padded(bytes) + UNIT);
    if (block == NULL) return NULL;
    *(header *)(void *)block = (header){.mark = ALIVE, .bytes = bytes, .owner = memory};
    /* Memory is not zeroed: whoever relies on zeros finds 0xA5. */
    memset(block + UNIT, 0xA5, padded(bytes) + UNIT);
    memory->live_blocks++;
    memory->live_bytes += bytes;
    if (memory->live_bytes > memory->peak_bytes) memory->peak_bytes = memory->live_bytes;
    return block + UNIT;
}

static int overrun(const unsigned char *block, size_t bytes)
{
    for (size_t i = UNIT + bytes; i < UNIT + padded(bytes) + UNIT; i++)
        if (block[i] != 0xA5) return 1;
    return 0;
}

static void release(void *context, void *pointer)
{
    test_allocator *memory = context;
    if (pointer == NULL) {
        memory->misuse++;
        return;
    }
    unsigned char *block = (unsigned char *)pointer - UNIT;
    header *h = (header *)(void *)block;
    if (h->mark != ALIVE || h->owner != memory) {
        memory->misuse++; /* not ours, or released before: leave it alone */
        return;
    }
    if (overrun(block, h->bytes)) memory->misuse++;
    memory->live_blocks--;
    memory->live_bytes -= h->bytes;
    h->mark = DEAD;
    free(block);
}

void test_allocator_init(test_allocator *memory)
{
    *memory = (test_allocator){.interface = {allocate, release, memory}};
}
