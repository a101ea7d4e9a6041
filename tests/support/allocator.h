/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_ALLOCATOR_H
#define LOCUS_TESTS_ALLOCATOR_H

/* A locus_allocator that counts, and that fails on demand:
 *
 *     test_allocator memory;
 *     for (size_t k = 1;; k++) {
 *         test_allocator_init(&memory);
 *         memory.fail_at = k;                    ... memory.fail_for_ever = 1;
 *         config.allocator = &memory.interface;
 *         ... the call fails with LOCUS_ERR_MEMORY and leaves nothing behind ...
 *         CHECK(memory.live_blocks == 0, "leak");
 *         if (memory.failures == 0) break;       (k is past the last allocation)
 *     }
 *
 * Not for several threads at once: the library allocates from the caller's thread. */

#include <stddef.h>

#include <locus/status.h>

typedef struct test_allocator {
    locus_allocator interface;
    size_t calls;                   /* allocations asked for, failed ones included         */
    size_t failures;                /* of those, refused by fail_at                        */
    size_t live_blocks, live_bytes; /* handed out and not yet released                     */
    size_t peak_bytes;              /* most live_bytes at any time                         */
    size_t misuse;                  /* releases of NULL, of strange or of overrun blocks   */
    size_t fail_at;                 /* refuse call number fail_at (1 = the first); 0: none */
    int fail_for_ever;              /* and every one after it                              */
} test_allocator;

void test_allocator_init(test_allocator *memory);

#endif
