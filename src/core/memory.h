/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_MEMORY_H
#define LOCUS_CORE_MEMORY_H

#include <locus/status.h>
#include <stddef.h>

#define LOCUS_ALIGNMENT ((size_t)64)

/* `count` objects of `bytes` each, zeroed and aligned to LOCUS_ALIGNMENT; NULL when
 * there is no memory or the product does not fit. count * bytes == 0 gives a valid
 * pointer. `allocator` NULL means malloc. */
void *locus_allocate(const locus_allocator *allocator, size_t count, size_t bytes);
void locus_release(const locus_allocator *allocator, void *memory); /* NULL is allowed */

/* What a caller's workspace has to be aligned to, so that doubles may lie in it. */
#define LOCUS_CALLER_ALIGNMENT ((size_t)8)

/* LOCUS_OK for `bytes` of a caller's memory where `needed` are wanted: enough, there, aligned. */
locus_status locus_check_memory(const char *name, const void *memory, size_t bytes, size_t needed,
                                locus_error *error);

#endif
