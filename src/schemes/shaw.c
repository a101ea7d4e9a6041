/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . (k_n + rel_k[r]),  out_m = sum_n a_mn (v_n + rel_v[r]),
 * r = clip(n - m, -clip_left, clip_right) + clip_left.
 * One table row per clipped distance, shared by the heads. */

static int64_t row(const locus_call *call, int64_t delta)
{
    const int64_t left = call->options.clip_left, right = call->options.clip_right;
    const int64_t rho = -delta;
    return (rho < -left ? -left : rho > right ? right : rho) + left;
}

static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    *low = -call->options.clip_right;
    *high = call->options.clip_left;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->R = call->options.clip_left + call->options.clip_right + 1;
    if (!locus_present(&shapes->rel_k) && !locus_present(&shapes->rel_v))
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensors rel_k and rel_v are both missing, expected at least one");
    return LOCUS_OK;
}

static const locus_option_info options[] = {
    {
        .name = "clip_left",
        .help = "largest distance to the left (keys before the query) with a row of its own",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .required = 1,
        .maximum = 1 << 20,
        .offset = offsetof(locus_options, clip_left),
    },
    {
        .name = "clip_right",
        .help = "largest distance to the right with a row of its own",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .required = 1,
        .maximum = 1 << 20,
        .offset = offsetof(locus_options, clip_right),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(rel_k),
        .help = "p^k, dotted with q; R = clip_left + clip_right + 1",
        .shape = "R D",
        .levels = LOCUS_BOTH,
    },
    {
        LOCUS_PARAMETER(rel_v),
        .help = "p^v, added to v",
        .shape = "R Dv",
        .levels = LOCUS_BOTH,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_shaw = {
    .info =
        {
            .name = "shaw",
            .title = "Shaw relative keys and values",
            .formula = "s = c q.(k + rel_k[r]),  out = sum a (v + rel_v[r])",
            .citation = "Shaw, Uszkoreit, Vaswani 2018, Self-Attention with Relative Position "
                        "Representations",
            .rule = "r = clip(n - m, -clip_left, clip_right) + clip_left",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION | LOCUS_TERM_VALUE,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .row = row,
    .places = 1,
    .reach = reach,
    .key_table = offsetof(locus_tensors, rel_k),
    .query_table = LOCUS_NO_TENSOR,
    .value_table = offsetof(locus_tensors, rel_v),
};
