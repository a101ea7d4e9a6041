/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/loops.h"

#include <stddef.h>
#include <string.h>

extern const bench_loops bench_loops_generic;
#if defined(__x86_64__)
extern const bench_loops bench_loops_avx2, bench_loops_avx512;
#elif defined(__aarch64__)
extern const bench_loops bench_loops_neon;
#endif

static const bench_loops *const all[] = {
    &bench_loops_generic,
#if defined(__x86_64__)
    &bench_loops_avx2,
    &bench_loops_avx512,
#elif defined(__aarch64__)
    &bench_loops_neon,
#endif
};

const bench_loops *bench_loops_find(const char *isa)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i]->isa, isa) == 0) return all[i];
    return NULL;
}
