/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CORE_MEMORY_H
#define LOCUS_CORE_MEMORY_H

#include <locus/status.h>

#define LOCUS_ALIGNMENT ((size_t)64)

/* `count` objects of `bytes` each, zeroed and aligned to LOCUS_ALIGNMENT; NULL when
 * there is no memory or the product does not fit. count * bytes == 0 gives a valid
 * pointer. `allocator` NULL means malloc. */
void *locus_allocate(const locus_allocator *allocator, size_t count, size_t bytes);
void locus_release(const locus_allocator *allocator, void *memory); /* NULL is allowed */

#endif
