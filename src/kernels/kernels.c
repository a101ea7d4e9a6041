/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <locus/runtime.h>
#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "kernels/quant.h"

#define LOCUS_KERNELS(name) extern const locus_kernels locus_kernels_##name;
#include "kernels/isa.inc"
#undef LOCUS_KERNELS

static const locus_kernels *const all[] = {
#define LOCUS_KERNELS(name) &locus_kernels_##name,
#include "kernels/isa.inc"
#undef LOCUS_KERNELS
};

enum { TABLE_COUNT = sizeof all / sizeof *all };

const locus_kernels *locus_kernels_at(uint32_t index)
{
    return index < TABLE_COUNT ? all[index] : NULL;
}

/* Number of table `name`, or of that beside a table of integers of this name; TABLE_COUNT - 1 when
 * name is NULL or empty, -1 when unknown. */
static int cap_index(const char *name)
{
    if (name == NULL || name[0] == '\0') return TABLE_COUNT - 1;
    for (int i = 0; i < TABLE_COUNT; i++)
        if (strcmp(all[i]->isa, name) == 0) return i;
    for (uint32_t i = 0; locus_quant_kernels_at(i) != NULL; i++) {
        const locus_quant_kernels *integers = locus_quant_kernels_at(i);
        const int other = strcmp(integers->isa, integers->beside) != 0;
        if (other && strcmp(integers->isa, name) == 0) return cap_index(integers->beside);
    }
    return -1;
}

const locus_kernels *locus_kernels_pick(const char *ceiling)
{
    const int config_cap = cap_index(ceiling), env_cap = cap_index(getenv("LOCUS_ISA"));
    if (config_cap < 0 || env_cap < 0) return NULL;
    const uint32_t cpu = locus_cpu_features();
    const locus_kernels *best = all[0];
    for (int i = 0; i <= config_cap && i <= env_cap; i++)
        if ((all[i]->cpu & ~cpu) == 0) best = all[i];
    return best;
}

const char *locus_isa_name(size_t index) { return index < TABLE_COUNT ? all[index]->isa : NULL; }

int locus_isa_available(const char *name)
{
    if (name == NULL) return 0;
    for (int i = 0; i < TABLE_COUNT; i++)
        if (strcmp(all[i]->isa, name) == 0) return (all[i]->cpu & ~locus_cpu_features()) == 0;
    return 0;
}

const char *locus_isa_pick(const char *ceiling)
{
    const locus_kernels *kernels = locus_kernels_pick(ceiling);
    return kernels != NULL ? kernels->isa : NULL;
}
