/* SPDX-License-Identifier: Apache-2.0 */
#include "schemes/scheme.h"

/* s = c q_m . k_n. Order enters through the causal mask alone. */

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {LOCUS_TENSOR_END};

const locus_scheme locus_scheme_none = {
    .info =
        {
            .name = "none",
            .title = "No positions",
            .formula = "s = c q.k",
            .citation = "Vaswani et al. 2017, Attention Is All You Need; Kazemnejad et al. 2023, "
                        "The Impact of Positional Encoding on Length Generalization (NoPE)",
            .rule = "",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_SYMMETRIC,
        },
    .options = options,
    .tensors = tensors,
    .default_scale = locus_scale_plain,
    LOCUS_NO_TABLES,
};
