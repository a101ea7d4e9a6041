/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + (1 - w) q_m . rel_k[i] + w q_m . rel_k[i + 1],
 *     p = min(R - 1, sum of sigmoid(c q_m . k_t) over the keys t that m sees, n <= t <= m),
 *     i = floor(p), w = p - i.
 * A position counts what the query cares for between the key and itself: words, sentences, or
 * nothing. The query meets the table unscaled, as the paper's listing has it. */

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    const locus_tensor *table = &shapes->rel_k;
    call->R = table->shape[table->rank - 2];
    if (call->key_offset != 0)
        return locus_fail(error, LOCUS_ERR_UNSUPPORTED,
                          "key_offset: found %" PRId64
                          " with scheme cope, expected 0 (a query counts among all its keys)",
                          call->key_offset);
    if (call->R >= 1) return LOCUS_OK;
    return locus_fail(error, LOCUS_ERR_TENSOR, "tensor rel_k: found no row, expected at least 1");
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(rel_k),
        .help = "dotted with q at counted positions; the last row serves all beyond",
        .shape = "R D, H R D",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_cope = {
    .info =
        {
            .name = "cope",
            .title = "CoPE: positions that the query counts",
            .formula = "s = c q.k + (1-w) q.rel_k[i] + w q.rel_k[i+1]",
            .citation = "Golovneva et al. 2024, Contextual Position Encoding: Learning to Count "
                        "What's Important",
            .rule = "i + w = min(R - 1, sum of sigmoid(c q.k_t) over seen t = n..m)",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED | LOCUS_TRAIT_CAUSAL |
                      LOCUS_TRAIT_COUNTED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .counts = 1,
    .key_table = offsetof(locus_tensors, rel_k),
    .query_table = LOCUS_NO_TENSOR,
    .value_table = LOCUS_NO_TENSOR,
};
