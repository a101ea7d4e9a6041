/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n - slope_h |m - n|.
 * Published slopes: 2^(-8 (h + 1) / H) for H a power of two. Otherwise, with P the
 * power of two below H: the P slopes of P heads, then every other one of the slopes of
 * 2P heads. Given as a tensor, the slopes are trainable. */

double locus_alibi_slope(int64_t head, int64_t heads)
{
    int64_t power = 1;
    while (2 * power <= heads) power *= 2;
    if (head < power) return exp2(-8.0 * (double)(head + 1) / (double)power);
    return exp2(-8.0 * (double)(2 * (head - power) + 1) / (double)(2 * power));
}

static double slope_of(const locus_call *call, const locus_tensors *in, int64_t head)
{
    return locus_present(&in->slopes) ? locus_get(&in->slopes, head, 0, 0, 0)
                                      : locus_alibi_slope(head, call->H);
}

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    return -slope_of(call, in, head) * fabs((double)(m - n));
}

static void bias_run(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n, int64_t count, float *values)
{
    const double slope = slope_of(call, in, head);
    for (int64_t i = 0; i < count; i++) values[i] = (float)(-slope * fabs((double)(m - n - i)));
}

static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    (void)call;
    (void)in;
    if (!locus_present(&grad->slopes)) return;
    for (int64_t i = 0; i < count; i++)
        ((double *)grad->slopes.data)[head] -= ds[i] * fabs((double)(m - n - i));
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_BIAS_PARAMETER(slopes),
        .help = "one slope per head; absent: the published ones",
        .shape = "H",
        .levels = LOCUS_BOTH,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_alibi = {
    .info =
        {
            .name = "alibi",
            .title = "ALiBi: linear biases",
            .formula = "s = c q.k - slope_h |m-n|",
            .citation = "Press, Smith, Lewis 2022, Train Short, Test Long: Attention with Linear "
                        "Biases Enables Input Length Extrapolation",
            .rule = "slope_h = 2^(-8(h+1)/H), H a power of two",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_SYMMETRIC | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .default_scale = locus_scale_plain,
    .places = 1,
    .bias = bias,
    .bias_run = bias_run,
    .bias_grad = bias_grad,
    LOCUS_NO_TABLES,
};
