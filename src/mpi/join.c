/* SPDX-License-Identifier: Apache-2.0 */
#include "mpi/join.h"

#include <math.h>
#include <string.h>

#include "core/parallel.h"
#include "core/tensor.h"

/* Where lse is +inf or NaN, so is the sum, and out is NaN as one call would have it. */
static double join_lse(double a, double b)
{
    const double most = a > b || isnan(a) ? a : b;
    if (most == INFINITY || isnan(a) || isnan(b)) return a + b;
    return most + log(exp(a - most) + exp(b - most));
}

static void store_lse(const locus_results *r, int64_t b, int64_t h, int64_t m, double lse)
{
    const float rounded = (float)lse;
    *locus_f32(&r->lse, b, h, m) = rounded;
    *locus_f32(&r->lse_low, b, h, m) = isfinite(rounded) ? (float)(lse - (double)rounded) : 0.0f;
}

static double load_lse(const locus_results *r, int64_t b, int64_t h, int64_t m)
{
    return (double)*locus_f32(&r->lse, b, h, m) + (double)*locus_f32(&r->lse_low, b, h, m);
}

static void join_row(const locus_results *all, const locus_results *more, int64_t b, int64_t h,
                     int64_t m)
{
    const double old = load_lse(all, b, h, m), new = load_lse(more, b, h, m);
    if (new == -INFINITY) return;
    const double lse = join_lse(old, new);
    const float keep = (float)exp(old - lse), take = (float)exp(new - lse);
    float *y = locus_f32(&all->out, b, h, m);
    const float *x = locus_f32(&more->out, b, h, m);
    for (int64_t c = 0; c < all->out.shape[3]; c++)
        y[c] = old == -INFINITY ? x[c] : keep * y[c] + take * x[c];
    store_lse(all, b, h, m, lse);
}

typedef struct join_call {
    const locus_results *all, *more;
} join_call;

static void join_head(void *context, size_t index, uint32_t worker)
{
    const join_call *call = context;
    const locus_tensor *out = &call->all->out;
    const int64_t b = (int64_t)index / out->shape[1], h = (int64_t)index % out->shape[1];
    (void)worker;
    for (int64_t m = 0; m < out->shape[2]; m++) join_row(call->all, call->more, b, h, m);
}

void ring_join(const locus_results *all, const locus_results *more, uint32_t threads)
{
    join_call call = {all, more};
    locus_parallel_for(threads, (size_t)(all->out.shape[0] * all->out.shape[1]), join_head, &call);
}

void ring_join_begin(const locus_results *all, const locus_tensor *sink)
{
    const locus_tensor *out = &all->out;
    for (int64_t b = 0; b < out->shape[0]; b++)
        for (int64_t h = 0; h < out->shape[1]; h++)
            for (int64_t m = 0; m < out->shape[2]; m++) {
                float *row = locus_f32(out, b, h, m);
                for (int64_t c = 0; c < out->shape[3]; c++) row[c] = 0.0f;
                store_lse(all, b, h, m,
                          locus_present(sink) ? locus_get(sink, h, 0, 0, 0) : -INFINITY);
            }
}
