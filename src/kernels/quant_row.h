/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_KERNELS_QUANT_ROW_H
#define LOCUS_KERNELS_QUANT_ROW_H

/* What tables and the quantizing of weights share. */

#include <math.h>

#include "kernels/quant.h"

/* The transform of a block in place, in the order of stages that every table has. */
static inline void quant_transform(float *x)
{
    for (int d = 1; d < LOCUS_QUANT_BLOCK; d *= 2)
        for (int i = 0; i < LOCUS_QUANT_BLOCK; i += 2 * d)
            for (int j = i; j < i + d; j++) {
                const float a = x[j], b = x[j + d];
                x[j] = a + b;
                x[j + d] = a - b;
            }
}

/* The scale of a row whose largest magnitude is known, and the factor that makes integers of it. */

typedef struct quant_scale {
    float scale, factor; /* factor 0: the integers are 0 */
} quant_scale;

static inline quant_scale quant_scale_of(float most, int steps)
{
    const float least = 1e-30f, greatest = 1e30f; /* products of scales stay normal numbers */
    if (most == 0.0f) return (quant_scale){0.0f, 0.0f};
    if (!(most >= least && most <= greatest)) return (quant_scale){NAN, 0.0f};
    return (quant_scale){most / (float)steps, (float)steps / most};
}

#endif
