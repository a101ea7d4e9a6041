/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/quant.h"

#include <stdlib.h>
#include <string.h>

#include "core/cpu.h"
#include "kernels/kernels.h"

#define LOCUS_QUANT_TABLE(name) extern const locus_quant_kernels locus_quant_##name;
#include "kernels/quant.inc"
#undef LOCUS_QUANT_TABLE

static const locus_quant_kernels *const all[] = {
#define LOCUS_QUANT_TABLE(name) &locus_quant_##name,
#include "kernels/quant.inc"
#undef LOCUS_QUANT_TABLE
};

/* Names of the kernels for floats. */
static const char *const floats[] = {
#define LOCUS_KERNELS(name) #name,
#include "kernels/isa.inc"
#undef LOCUS_KERNELS
};

enum { TABLE_COUNT = sizeof all / sizeof *all, FLOAT_COUNT = sizeof floats / sizeof *floats };

const locus_quant_kernels *locus_quant_kernels_at(uint32_t index)
{
    return index < TABLE_COUNT ? all[index] : NULL;
}

static int index_of(const char *name)
{
    for (int i = 0; i < TABLE_COUNT; i++)
        if (strcmp(all[i]->isa, name) == 0) return i;
    return -1;
}

/* Number of table `name`, or of the best one below the kernels of that name, which may have none for
 * integers; the last one when name is NULL or empty, -1 when unknown. */
static int cap_index(const char *name)
{
    if (name == NULL || name[0] == '\0') return TABLE_COUNT - 1;
    int index = index_of(name);
    int k = 0;
    while (k < FLOAT_COUNT && strcmp(floats[k], name) != 0) k++;
    if (k == FLOAT_COUNT) return index;
    while (index < 0 && k > 0) index = index_of(floats[--k]);
    return index;
}

const locus_quant_kernels *locus_quant_kernels_pick(const char *ceiling)
{
    const int config_cap = cap_index(ceiling), env_cap = cap_index(getenv("LOCUS_ISA"));
    if (config_cap < 0 || env_cap < 0) return NULL;
    const uint32_t cpu = locus_cpu_integer_features();
    const locus_quant_kernels *best = all[0];
    for (int i = 0; i <= config_cap && i <= env_cap; i++)
        if ((all[i]->cpu & ~cpu) == 0) best = all[i];
    return best;
}
