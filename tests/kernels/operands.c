/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/operands.h"

#include "core/cpu.h"

float A[ROOM], B[ROOM], C[ROOM], before[ROOM];

void fill(float *x, size_t count, uint64_t stream)
{
    for (size_t i = 0; i < count; i++) x[i] = (float)(4.0 * test_uniform(stream, i) - 2.0);
}

int test_kernels(int argc, char **argv, const char *suite, const kernel_test *tests)
{
    if (!check_args(argc, argv)) return 2;
    fill(A, ROOM, 11);
    fill(B, ROOM, 12);
    fill(before, ROOM, 13);
    for (uint32_t t = 0; locus_kernels_at(t) != NULL; t++) {
        const locus_kernels *k = locus_kernels_at(t);
        if ((k->cpu & ~locus_cpu_features()) != 0) {
            if (check_begin("kernels/%s", k->isa)) check_skip("%s: not on this CPU", k->isa);
            continue;
        }
        for (size_t i = 0; tests[i] != NULL; i++) tests[i](k);
    }
    return check_finish(suite);
}
