/* SPDX-License-Identifier: Apache-2.0 */
#include "support/compare.h"

#include <math.h>
#include <stdio.h>

#include "core/tensor.h"

static void widen(double *scale, double want)
{
    if (isfinite(want) && fabs(want) > *scale) *scale = fabs(want);
}

double comparison_scale_f64(const double *want, size_t count)
{
    double scale = 1;
    for (size_t i = 0; i < count; i++) widen(&scale, want[i]);
    return scale;
}

double comparison_scale_f32(const float *want, size_t count)
{
    double scale = 1;
    for (size_t i = 0; i < count; i++) widen(&scale, (double)want[i]);
    return scale;
}

comparison comparison_start(double scale) { return (comparison){.scale = scale, .at = SIZE_MAX}; }

static double error_of(double got, double want, double scale)
{
    if (isnan(got) || isnan(want)) return isnan(got) && isnan(want) ? 0 : (double)INFINITY;
    if (isinf(got) || isinf(want)) return got == want ? 0 : (double)INFINITY;
    return fabs(got - want) / scale;
}

void comparison_add(comparison *c, double got, double want)
{
    const double error = error_of(got, want, c->scale);
    if (c->at == SIZE_MAX || error > c->worst) {
        c->worst = error;
        c->at = c->compared;
        c->got = got;
        c->want = want;
    }
    c->compared++;
}

comparison compare_f32(const float *got, const float *want, size_t count)
{
    comparison c = comparison_start(comparison_scale_f32(want, count));
    for (size_t i = 0; i < count; i++) comparison_add(&c, (double)got[i], (double)want[i]);
    return c;
}

comparison compare_f64(const double *got, const double *want, size_t count)
{
    comparison c = comparison_start(comparison_scale_f64(want, count));
    for (size_t i = 0; i < count; i++) comparison_add(&c, got[i], want[i]);
    return c;
}

comparison compare_f32_f64(const float *got, const double *want, size_t count)
{
    comparison c = comparison_start(comparison_scale_f64(want, count));
    for (size_t i = 0; i < count; i++) comparison_add(&c, (double)got[i], want[i]);
    return c;
}

static int same_shape(const locus_tensor *a, const locus_tensor *b)
{
    if (a->rank == 0 || a->rank != b->rank) return 0;
    for (uint32_t i = 0; i < a->rank; i++)
        if (a->shape[i] != b->shape[i]) return 0;
    return 1;
}

/* Element `index` of a view in the order of its indices. */
static double element(const locus_tensor *t, int64_t index)
{
    int64_t at[LOCUS_MAX_RANK] = {0};
    for (uint32_t i = t->rank; i-- > 0;) {
        at[i] = index % t->shape[i];
        index /= t->shape[i];
    }
    return locus_get(t, at[0], at[1], at[2], at[3]);
}

comparison compare_tensors(const locus_tensor *got, const locus_tensor *want)
{
    comparison c = comparison_start(1);
    if (!same_shape(got, want)) return c;
    const int64_t count = locus_tensor_elements(want);
    for (int64_t i = 0; i < count; i++) widen(&c.scale, element(want, i));
    for (int64_t i = 0; i < count; i++) comparison_add(&c, element(got, i), element(want, i));
    return c;
}

int comparison_passes(const comparison *c, size_t expected, double tolerance, char *text,
                      size_t capacity)
{
    const int passes = expected > 0 && c->compared == expected && c->worst <= tolerance;
    if (text == NULL) return passes;
    if (c->compared != expected || expected == 0)
        snprintf(text, capacity, "compared %zu of %zu elements", c->compared, expected);
    else
        snprintf(text, capacity,
                 "worst error %.3g (tolerance %.3g) at element %zu: got %.9g, want %.9g", c->worst,
                 tolerance, c->at, c->got, c->want);
    return passes;
}
