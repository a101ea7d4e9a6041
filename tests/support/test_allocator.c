/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <string.h>

#include "core/memory.h"
#include "support/allocator.h"
#include "support/check.h"

static void counts(void)
{
    test_allocator memory;
    test_allocator_init(&memory);
    if (check_begin("allocator/counts")) {
        unsigned char *a = locus_allocate(&memory.interface, 3, 100);
        CHECK(a != NULL && (uintptr_t)a % LOCUS_ALIGNMENT == 0, "aligned");
        CHECK(a[0] == 0 && a[299] == 0, "locus_allocate zeroes");
        void *b = locus_allocate(&memory.interface, 1, 64);
        CHECK(memory.live_blocks == 2 && memory.calls == 2, "two blocks");
        const size_t both = memory.live_bytes;
        CHECK(both >= 364, "%zu bytes", both);
        locus_release(&memory.interface, a);
        locus_release(&memory.interface, NULL);
        CHECK(memory.live_blocks == 1 && memory.live_bytes == 64, "one block");
        CHECK(memory.peak_bytes == both, "peak %zu", memory.peak_bytes);
        locus_release(&memory.interface, b);
        CHECK(memory.live_blocks == 0 && memory.live_bytes == 0, "none left");
        CHECK(memory.misuse == 0, "no misuse");
    }
}

static void fails(void)
{
    if (check_begin("allocator/fail-once")) {
        test_allocator memory;
        test_allocator_init(&memory);
        memory.fail_at = 2;
        void *blocks[3];
        for (int i = 0; i < 3; i++) blocks[i] = locus_allocate(&memory.interface, 1, 8);
        CHECK(blocks[0] != NULL && blocks[1] == NULL && blocks[2] != NULL, "the second only");
        CHECK(memory.failures == 1 && memory.live_blocks == 2, "counted");
        locus_release(&memory.interface, blocks[0]);
        locus_release(&memory.interface, blocks[2]);
    }
    if (check_begin("allocator/fail-for-ever")) {
        test_allocator memory;
        test_allocator_init(&memory);
        memory.fail_at = 2;
        memory.fail_for_ever = 1;
        void *blocks[3];
        for (int i = 0; i < 3; i++) blocks[i] = locus_allocate(&memory.interface, 1, 8);
        CHECK(blocks[0] != NULL && blocks[1] == NULL && blocks[2] == NULL, "all from the second");
        CHECK(memory.failures == 2, "counted");
        locus_release(&memory.interface, blocks[0]);
        CHECK(memory.live_blocks == 0, "none left");
    }
    if (check_begin("allocator/overrun")) {
        test_allocator memory;
        test_allocator_init(&memory);
        unsigned char *a = memory.interface.allocate(memory.interface.context, 10);
        if (CHECK(a != NULL, "memory")) {
            CHECK(a[0] == 0xA5, "raw blocks are not zeroed");
            a[10] = 1; /* inside the padding, beyond what was asked for */
            memory.interface.release(memory.interface.context, a);
            CHECK(memory.misuse == 1, "noticed");
        }
    }
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    counts();
    fails();
    return check_finish("support/allocator");
}
