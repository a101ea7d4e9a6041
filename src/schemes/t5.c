/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + bias[bucket(n - m)][h], the bias unscaled, c = 1.
 * Half of the buckets of a side hold one distance each, the other half grow by a
 * constant factor up to max_distance; whatever is farther shares the last one. */

int64_t locus_t5_bucket(int64_t rho, int64_t buckets, int64_t max_distance, int bidirectional)
{
    const int64_t side = bidirectional ? buckets / 2 : buckets;
    const int64_t base = bidirectional && rho > 0 ? side : 0;
    const int64_t distance = rho < 0 ? -rho : bidirectional ? rho : 0;
    const int64_t single = side / 2; /* distances below it have their own bucket */
    if (distance < single) return base + distance;
    if (distance >= max_distance) return base + side - 1;
    int exact;
    const int64_t steps = locus_log_steps(distance, single, max_distance, side - single, &exact);
    return base + (single + steps < side - 1 ? single + steps : side - 1);
}

int64_t locus_t5_bias_row(const locus_call *call, int64_t delta)
{
    const locus_options *o = &call->options;
    return locus_t5_bucket(-delta, o->buckets, o->max_distance, o->bidirectional != 0);
}

void locus_t5_reach(const locus_call *call, int64_t *low, int64_t *high)
{
    *high = call->options.max_distance;
    *low = -*high;
}

double locus_t5_bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n)
{
    return locus_get(&in->bias, locus_t5_bias_row(call, m - n), head, 0, 0);
}

void locus_t5_bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                        int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    (void)in;
    if (!locus_present(&grad->bias)) return;
    double *column = (double *)grad->bias.data + head;
    for (int64_t i = 0; i < count; i++)
        column[locus_t5_bias_row(call, m - n - i) * call->H] += ds[i];
}

locus_status locus_check_t5_options(const locus_call *call, locus_error *error)
{
    const locus_options *o = &call->options;
    const int64_t side = o->bidirectional ? o->buckets / 2 : o->buckets;
    if (o->bidirectional && (o->buckets % 2 != 0 || o->buckets < 4))
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option buckets: found %" PRId64
                          ", expected an even number of at least 4 when bidirectional",
                          o->buckets);
    if (o->max_distance <= side / 2)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option max_distance: found %" PRId64 ", expected more than %" PRId64
                          " (half of the %" PRId64 " buckets of one side)",
                          o->max_distance, side / 2, side);
    return LOCUS_OK;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    (void)shapes;
    return locus_check_t5_options(call, error);
}

static double scale_one(const locus_call *call, const locus_tensors *shapes)
{
    (void)call;
    (void)shapes;
    return 1.0;
}

static const locus_option_info options[] = {LOCUS_BUCKET_OPTIONS(NULL), LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_BIAS_PARAMETER(bias),
        .help = "one bias per bucket and head, unscaled",
        .shape = "buckets H",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_t5 = {
    .info =
        {
            .name = "t5",
            .title = "T5 relative bias",
            .formula = "s = c q.k + bias[bucket(n-m)][h]",
            .citation = "Raffel et al. 2020, Exploring the Limits of Transfer Learning with a "
                        "Unified Text-to-Text Transformer",
            .rule = "bucket: exact below a quarter (half if causal) of the buckets, then "
                    "logarithmic up to max_distance",
            .scale = "1",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = scale_one,
    .bias = locus_t5_bias,
    .bias_grad = locus_t5_bias_grad,
    .bias_row = locus_t5_bias_row,
    .places = 1,
    .reach = locus_t5_reach,
    LOCUS_NO_TABLES,
};
