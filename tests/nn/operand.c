/* SPDX-License-Identifier: Apache-2.0 */
#include "nn/operand.h"

#include <locus/runtime.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/compare.h"
#include "support/problem.h"

static const float canary = -123456.0f;

static void *memory(int64_t count, size_t bytes)
{
    void *block = calloc((size_t)count + 1, bytes);
    if (block == NULL) exit(2);
    return block;
}

double *new_doubles(int64_t count) { return memory(count, sizeof(double)); }
float *new_floats(int64_t count) { return memory(count, sizeof(float)); }

operand operand_new(int64_t count, int64_t width, int64_t pad)
{
    operand o = {.width = width};
    o.floats = (size_t)(count * (width + pad) + 1);
    o.rows =
        (locus_rows){.data = new_floats((int64_t)o.floats), .count = count, .stride = width + pad};
    for (size_t i = 0; i < o.floats; i++) o.rows.data[i] = canary;
    return o;
}

void operand_free(operand *o) { free(o->rows.data); }

void operand_fill(operand *o, uint64_t stream, double low, double high)
{
    uint64_t n = 0;
    for (int64_t i = 0; i < o->rows.count; i++)
        for (int64_t c = 0; c < o->width; c++)
            operand_row(o, i)[c] = (float)(low + (high - low) * test_uniform(stream, n++));
}

int operand_same_bits(const operand *a, const operand *b)
{
    return a->floats == b->floats &&
           memcmp(a->rows.data, b->rows.data, a->floats * sizeof(float)) == 0;
}

static int gaps_are_intact(const operand *o)
{
    size_t found = 0;
    for (size_t i = 0; i < o->floats; i++) found += o->rows.data[i] == canary;
    return found == o->floats - (size_t)(o->rows.count * o->width);
}

void floats_expect(const char *name, const float *got, const double *want, const float *plain,
                   int64_t count, double factor)
{
    const size_t n = (size_t)count;
    const comparison other = compare_f32_f64(plain, want, n), ours = compare_f32_f64(got, want, n);
    const double least = 1.1920929e-7, bound = factor * (other.worst > least ? other.worst : least);
    char text[256];
    if (count == 0) return;
    CHECK(isfinite(other.worst),
          "%s: the plain algorithm has a special value where double has none", name);
    CHECK(comparison_passes(&ours, n, bound, text, sizeof text), "%s: %s (plain error %.3g)", name,
          text, other.worst);
}

void operand_expect(const char *name, const operand *got, const double *want, const float *plain,
                    double factor)
{
    const int64_t count = got->rows.count * got->width;
    float *dense = new_floats(count);
    for (int64_t i = 0; i < got->rows.count; i++)
        memcpy(dense + i * got->width, operand_row(got, i), (size_t)got->width * sizeof(float));
    floats_expect(name, dense, want, plain, count, factor);
    CHECK(gaps_are_intact(got), "%s: a gap was written", name);
    free(dense);
}

void for_each_table(void (*test)(const locus_kernels *kernels))
{
    for (uint32_t k = 0; locus_kernels_at(k) != NULL; k++) {
        const locus_kernels *kernels = locus_kernels_at(k);
        if (locus_isa_available(kernels->isa))
            test(kernels);
        else if (check_begin("nn/%s", kernels->isa))
            check_skip("%s is not on this CPU", kernels->isa);
    }
}
