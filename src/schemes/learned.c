/* SPDX-License-Identifier: Apache-2.0 */
#include "core/tensor.h"
#include "schemes/scheme.h"

/* p_i = pos[i]: a trainable row per position, added before the projections. */

static void embed(const locus_call *call, const locus_tensors *in, int64_t i, double *row)
{
    for (int64_t e = 0; e < call->E; e++) row[e] = locus_get(&in->pos, i, e, 0, 0);
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(pos),
        .help = "row i is added to row i of x",
        .shape = ">=T E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_learned = {
    .info =
        {
            .name = "learned",
            .title = "Learned absolute positions",
            .formula = "s = c (Wq(x_m + pos[m])).(Wk(x_n + pos[n]))",
            .citation = "Gehring et al. 2017, Convolutional Sequence to Sequence Learning; "
                        "Devlin et al. 2019, BERT",
            .rule = "pos[i] is added before the q, k and v projections; in attend the same as none",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_INPUT,
            .traits = LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .default_scale = locus_scale_plain,
    .embed = embed,
    LOCUS_NO_TABLES,
};
