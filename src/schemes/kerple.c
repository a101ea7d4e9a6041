/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n - p_h ln(1 + a_h |m - n|)      form = log
 * s = c q_m . k_n - a_h |m - n|^p_h              form = power
 * Kernels that are conditionally positive definite for a, p > 0 (p <= 2 in the power
 * form); the caller keeps them there, as the authors' code does by clamping. */

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    const double a = locus_get(&in->a, head, 0, 0, 0), p = locus_get(&in->p, head, 0, 0, 0);
    const double distance = fabs((double)(m - n));
    if (call->options.form == LOCUS_FORM_LOG) return -p * log1p(a * distance);
    return distance == 0.0 ? -0.0 * a : -a * pow(distance, p);
}

/* ln(1 + a r) for r near the middle c of a run: with y = a (r - c) / (1 + a c),
 *     ln(1 + a c) + ln(1 + y),   ln(1 + y) = y - y^2/2 + y^3/3 - ...
 * From FAR on |y| <= 8/264, and what follows y^6/6 is below 4e-12. */
enum { RUN = 16, FAR = 256 };
typedef struct log_run {
    int64_t middle;
    double log, slope; /* ln(1 + a c), a / (1 + a c) */
} log_run;

static double near_middle(const log_run *run, int64_t r)
{
    const double y = run->slope * (double)(r - run->middle);
    const double sum = 1.0 / 5 - y * (1.0 / 6);
    return run->log + y * (1 - y * (1.0 / 2 - y * (1.0 / 3 - y * (1.0 / 4 - y * sum))));
}

/* Runs begin at multiples of RUN, so that a value depends on its distance alone. */
static void bias_run(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n, int64_t count, float *values)
{
    const int64_t delta = m - n;
    const double a = locus_get(&in->a, head, 0, 0, 0), p = locus_get(&in->p, head, 0, 0, 0);
    log_run run = {.middle = -1};
    for (int64_t i = 0; i < count; i++) {
        const int64_t r = delta - i < 0 ? i - delta : delta - i;
        if (r < FAR || !(a > 0.0 && isfinite(a)) || call->options.form != LOCUS_FORM_LOG) {
            values[i] = (float)bias(call, in, head, delta - i, 0);
            continue;
        }
        const int64_t middle = r / RUN * RUN + RUN / 2;
        if (middle != run.middle) {
            const double at = 1.0 + a * (double)middle;
            run = (log_run){middle, log(at), a / at};
        }
        values[i] = (float)(-p * near_middle(&run, r));
    }
}

/* log:   d/da = -p r / (1 + a r),  d/dp = -ln(1 + a r)
 * power: d/da = -r^p,              d/dp = -a r^p ln r, both 0 at r = 0 */
static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    const double a = locus_get(&in->a, head, 0, 0, 0), p = locus_get(&in->p, head, 0, 0, 0);
    const int is_log = call->options.form == LOCUS_FORM_LOG;
    for (int64_t i = 0; i < count; i++) {
        const double r = fabs((double)(m - n - i));
        if (r == 0.0) continue;
        const double da = is_log ? -p * r / (1.0 + a * r) : -pow(r, p);
        const double dp = is_log ? -log1p(a * r) : -a * pow(r, p) * log(r);
        if (locus_present(&grad->a)) ((double *)grad->a.data)[head] += ds[i] * da;
        if (locus_present(&grad->p)) ((double *)grad->p.data)[head] += ds[i] * dp;
    }
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
    {LOCUS_BIAS_PARAMETER(a), .help = "per head", .shape = "H", .levels = LOCUS_BOTH,
     .required = 1},
    {LOCUS_BIAS_PARAMETER(p), .help = "per head", .shape = "H", .levels = LOCUS_BOTH,
     .required = 1},
    LOCUS_PLACE_TENSORS,
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
