/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "schemes/scheme.h"

/* BERT's relative_key: s = c (q_m . k_n + q_m . rel_k[m - n + P - 1]), a table of
 * 2P - 1 rows and no clipping. relative_key_query adds c k_n . rel_k[same row]. */

static int64_t row(const locus_call *call, int64_t delta) { return delta + (call->R - 1) / 2; }

static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    *high = (call->R - 1) / 2;
    *low = -*high;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->R = shapes->rel_k.shape[0];
    const int64_t most = (call->R - 1) / 2;
    const int64_t low = call->delta_low[0], high = call->delta_high[0];
    if (call->R % 2 == 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor rel_k: found %" PRId64 " rows, expected an odd number (2P - 1)",
                          call->R);
    if (low <= high && (low < -most || high > most))
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "tensor rel_k: found %" PRId64 " rows for distances -%" PRId64
                          "..%" PRId64 ", expected rows for m - n in %" PRId64 "..%" PRId64,
                          call->R, most, most, low, high);
    return LOCUS_OK;
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(rel_k),
        .help = "one row per distance, R = 2P - 1, shared by the heads",
        .shape = "R D",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

#define SHARED_INFO                                                                                \
    .citation = "Huang et al. 2020, Improve Transformer Models with Better Relative Position "     \
                "Embeddings",                                                                      \
    .rule = "row = (m - n) + P - 1, no clipping", .scale = "1/sqrt(D)",                            \
    .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED

const locus_scheme locus_scheme_relative_key = {
    .info =
        {
            .name = "relative_key",
            .title = "BERT relative keys",
            .formula = "s = c (q.k + q.rel_k[m-n])",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION,
            SHARED_INFO,
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

const locus_scheme locus_scheme_relative_key_query = {
    .info =
        {
            .name = "relative_key_query",
            .title = "BERT relative keys and queries",
            .formula = "s = c (q.k + q.rel_k[m-n] + k.rel_k[m-n])",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION | LOCUS_TERM_POSITION_CONTENT,
            SHARED_INFO,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .row = row,
    .places = 1,
    .reach = reach,
    .key_table = offsetof(locus_tensors, rel_k),
    .query_table = offsetof(locus_tensors, rel_k),
    .value_table = LOCUS_NO_TENSOR,
};
