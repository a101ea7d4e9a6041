/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + p_m . rel_k[m - n]  where 0 <= m - n < R, and nothing is added elsewhere.
 * p is a query of its own, F numbers projected from x beside q: a row of rel_k is what the F
 * profiles say about one distance, and p mixes the profiles. F may be far below D. */

static int64_t row(const locus_call *call, int64_t delta)
{
    return delta >= 0 && delta < call->R ? delta : -1;
}

/* What lies beyond both ends is one step away from a row. */
static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    *low = -1;
    *high = call->R;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->R = shapes->rel_k.shape[shapes->rel_k.rank - 2];
    if (call->R < 1)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor rel_k: found 0 rows, expected at least 1");
    return locus_check_pos_query(call, shapes, error);
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_QUERY_TENSOR(pos_query),
        .help = "the query that meets rel_k, unscaled",
        .shape = "B H Tq F",
        .required = 1,
    },
    {
        LOCUS_PARAMETER(rel_k),
        .help = "row = distance; nothing beyond the last",
        .shape = "R F, H R F",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(w_r),
        .help = "makes pos_query of x",
        .shape = "HF E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {LOCUS_PARAMETER(b_r), .help = "its bias", .shape = "HF", .levels = LOCUS_LAYER},
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_inkling = {
    .info =
        {
            .name = "inkling",
            .title = "Inkling: a query for positions",
            .formula = "s = c q.k + p.rel_k[m-n]",
            .citation = "Thinking Machines Lab 2026, Inkling (model code in transformers)",
            .rule = "row = m - n where 0 <= m - n < R, else nothing is added",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION,
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
    .value_table = LOCUS_NO_TENSOR,
};
