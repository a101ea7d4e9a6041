/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout. */

#include <string.h>

#include "core/random.h"
#include "kernels/operands.h"

static void test_drop(const locus_kernels *k)
{
    if (!check_begin("kernels/%s/drop", k->isa)) return;
    const uint64_t seed = 0x1234567890abcdefu;
    const locus_dropout rule = {.key = {(uint32_t)seed, (uint32_t)(seed >> 32)},
                                .row = 77,
                                .head = 5,
                                .batch = 3,
                                .threshold = locus_dropout_threshold(0.3),
                                .factor = 1.5f};
    enum { ROWS = 6, STRIDE = 160 };
    for (int64_t columns = 0; columns <= 140; columns++)
        for (int rows = 0; rows <= ROWS; rows++) {
            const int64_t first = columns % 3 * 64;
            float y[ROWS * STRIDE], also[ROWS * STRIDE];
            int right = 1;
            memcpy(y, before, sizeof y);
            memcpy(also, B, sizeof also);
            k->drop(y, A, columns % 2 ? also : NULL, STRIDE, rows, first, columns, &rule);
            for (int64_t at = 0; at < ROWS * STRIDE; at++) {
                const int64_t r = at / STRIDE, c = at % STRIDE;
                const int inside = r < rows && c < columns;
                const int keeps = locus_dropout_keeps(seed, rule.threshold, 3, 5, 77 + (uint32_t)r,
                                                      (uint32_t)(first + c));
                right &= y[at] == (!inside ? before[at] : keeps ? A[at] * 1.5f : 0.0f);
                right &= also[at] == (!inside || columns % 2 == 0 ? B[at]
                                      : keeps                     ? B[at] * 1.5f
                                                                  : 0.0f);
            }
            CHECK(right, "%d rows of %d columns", rows, (int)columns);
        }
}

int main(int argc, char **argv)
{
    static const kernel_test tests[] = {test_drop, NULL};
    return test_kernels(argc, argv, "kernels/drop", tests);
}
