/* SPDX-License-Identifier: Apache-2.0 */
#include "core/memory.h"

#include <stdlib.h>
#include <string.h>

#include "core/error.h"
#include "core/size.h"

#if defined(_WIN32) /* its C library has no aligned_alloc */
#include <malloc.h>
#define aligned_alloc(alignment, bytes) _aligned_malloc(bytes, alignment)
#define free(memory) _aligned_free(memory)
#endif

static void *system_allocate(void *context, size_t bytes)
{
    (void)context;
    return aligned_alloc(LOCUS_ALIGNMENT, bytes);
}

static void system_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const locus_allocator system_allocator = {system_allocate, system_release, NULL};

void *locus_allocate(const locus_allocator *allocator, size_t count, size_t bytes)
{
    const locus_allocator *from = allocator != NULL ? allocator : &system_allocator;
    uint64_t total = 0;
    size_t size = 0;
    if (!locus_mul_u64(&total, count, bytes) || !locus_pad_u64(&total, total, LOCUS_ALIGNMENT) ||
        !locus_to_size(&size, total))
        return NULL;
    if (size == 0) size = LOCUS_ALIGNMENT;
    void *memory = from->allocate(from->context, size);
    if (memory != NULL) memset(memory, 0, size);
    return memory;
}

void locus_release(const locus_allocator *allocator, void *memory)
{
    const locus_allocator *from = allocator != NULL ? allocator : &system_allocator;
    if (memory != NULL) from->release(from->context, memory);
}

locus_status locus_check_memory(const char *name, const void *memory, size_t bytes, size_t needed,
                                locus_error *error)
{
    if (bytes < needed)
        return locus_fail(error, LOCUS_ERR_WORKSPACE, "%s: found %zu bytes, expected %zu", name,
                          bytes, needed);
    if (memory == NULL)
        return locus_fail(error, LOCUS_ERR_ARGUMENT, "%s: found NULL, expected %zu bytes", name,
                          needed);
    if ((uintptr_t)memory % LOCUS_CALLER_ALIGNMENT != 0)
        return locus_fail(error, LOCUS_ERR_ARGUMENT,
                          "%s: found address %p, expected a multiple of %zu", name, memory,
                          LOCUS_CALLER_ALIGNMENT);
    return LOCUS_OK;
}
