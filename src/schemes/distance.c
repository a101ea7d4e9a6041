/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + bias[h][(m - n) - delta_min]: any function of the distance, as numbers that
 * the caller brings. Their gradient is the sum of ds by distance, so that whatever made them
 * (an MLP in a framework) can be trained. With clamp, distances beyond the ends take the end
 * row. */

static int64_t entry_of(const locus_call *call, int64_t delta)
{
    const int64_t entry = delta - call->options.delta_min;
    if (call->options.clamp == 0) return entry;
    return entry < 0 ? 0 : entry >= call->R ? call->R - 1 : entry;
}

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    return locus_get(&in->bias, head, entry_of(call, m - n), 0, 0);
}

static void bias_run(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++) values[i] = (float)bias(call, in, head, m, n + i);
}

static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    (void)in;
    if (!locus_present(&grad->bias)) return;
    double *row = (double *)grad->bias.data + head * call->R;
    for (int64_t i = 0; i < count; i++) row[entry_of(call, m - n - i)] += ds[i];
}

static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    locus_reach_of_entries(call, call->R, low, high);
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->R = shapes->bias.shape[1];
    return locus_check_distances(call, "bias", call->R, error);
}

static const locus_option_info options[] = {
    LOCUS_DELTA_MIN_OPTION("the distance m - n of entry 0 of bias"),
    LOCUS_CLAMP_OPTION,
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_BIAS_PARAMETER(bias),
        .help = "one number per head and distance, unscaled",
        .shape = "H R",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_distance = {
    .info =
        {
            .name = "distance",
            .title = "Any function of the distance",
            .formula = "s = c q.k + bias[h][m-n]",
            .citation = "numbers of the caller, as in Kazemnejad et al. 2023, The Impact of "
                        "Positional Encoding on Length Generalization in Transformers",
            .rule = "entry = (m - n) - delta_min; with clamp, distances beyond the ends take the "
                    "end entry",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .places = 1,
    .reach = reach,
    .bias = bias,
    .bias_run = bias_run,
    .bias_grad = bias_grad,
    LOCUS_NO_TABLES,
};
