/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n - p_h ln(1 + a_h |m - n|)      form = log
 * s = c q_m . k_n - a_h |m - n|^p_h              form = power
 * Kernels that are conditionally positive definite for a, p > 0 (p <= 2 in the power
 * form); the caller keeps them there, as the authors' code does by clamping. */

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t delta)
{
    const double a = locus_get(&in->a, head, 0, 0, 0), p = locus_get(&in->p, head, 0, 0, 0);
    const double distance = fabs((double)delta);
    if (call->options.form == LOCUS_FORM_LOG) return -p * log1p(a * distance);
    return distance == 0.0 ? -0.0 * a : -a * pow(distance, p);
}

/* log:   d/da = -p r / (1 + a r),  d/dp = -ln(1 + a r)
 * power: d/da = -r^p,              d/dp = -a r^p ln r, both 0 at r = 0 */
static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t delta,
                      double ds, const locus_tensors *grad)
{
    const double a = locus_get(&in->a, head, 0, 0, 0), p = locus_get(&in->p, head, 0, 0, 0);
    const double r = fabs((double)delta);
    if (r == 0.0) return;
    const int is_log = call->options.form == LOCUS_FORM_LOG;
    const double da = is_log ? -p * r / (1.0 + a * r) : -pow(r, p);
    const double dp = is_log ? -log1p(a * r) : -a * pow(r, p) * log(r);
    if (locus_present(&grad->a)) ((double *)grad->a.data)[head] += ds * da;
    if (locus_present(&grad->p)) ((double *)grad->p.data)[head] += ds * dp;
}

static const locus_choice forms[] = {
    {"log", LOCUS_FORM_LOG},
    {"power", LOCUS_FORM_POWER},
    {NULL, 0},
};

static const locus_option_info options[] = {
    {
        .name = "form",
        .help = "which of the two kernels",
        .kind = LOCUS_OPTION_CHOICE,
        .levels = LOCUS_BOTH,
        .required = 1,
        .maximum = LOCUS_FORM_POWER,
        .choices = forms,
        .offset = offsetof(locus_options, form),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {
    {.name = "a", .help = "per head", .shape = "H", .levels = LOCUS_BOTH, .required = 1},
    {.name = "p", .help = "per head", .shape = "H", .levels = LOCUS_BOTH, .required = 1},
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_kerple = {
    .info =
        {
            .name = "kerple",
            .title = "KERPLE: kernelized relative biases",
            .formula = "s = c q.k - p_h ln(1 + a_h |m-n|)  or  - a_h |m-n|^p_h",
            .citation = "Chi et al. 2022, KERPLE: Kernelized Relative Positional Embedding for "
                        "Length Extrapolation",
            .rule = "",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_SYMMETRIC | LOCUS_TRAIT_LEARNED,
            .options = options,
            .tensors = tensors,
        },
    .default_scale = locus_scale_plain,
    .bias = bias,
    .bias_grad = bias_grad,
    LOCUS_NO_TABLES,
};
