/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c sum_d q_md k_nd e^(P_md - P_nd),  P_md - P_nd = log_decay[n+1][d] + ... + log_decay[m][d]:
 * every channel forgets (or grows) at a pace that each position says itself. One number for all
 * channels would be a factor of the score; FoX's gates (log_gate) are added to it instead. */

enum { B_D = LOCUS_OWN_TENSORS - 5, W_D, LOG_DECAY };

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    const locus_tensor *decay = &shapes->own[LOG_DECAY];
    if (call->level == LOCUS_LAYER) return LOCUS_OK;
    return locus_check_gates(call, "log_decay", decay->shape[2], error);
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_OWN_GATE_TENSOR(LOG_DECAY, "log_decay"),
        .help = "of each position, head and channel; numbers <= 0 forget",
        .shape = "B H N D",
        .levels = LOCUS_ATTEND,
        .required = 1,
    },
    {
        LOCUS_OWN_PARAMETER(W_D, "w_d"),
        .help = "makes log_decay = ln sigmoid(w_d x + b_d) of memory and x",
        .shape = "HD E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {
        LOCUS_OWN_PARAMETER(B_D, "b_d"),
        .help = "of w_d",
        .shape = "HD",
        .levels = LOCUS_LAYER,
    },
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_wall = {
    .info =
        {
            .name = "wall",
            .title = "Wall: a decay per channel",
            .formula = "s = c sum_d q_d k_d exp(log_decay[n+1..m][d])",
            .citation = "Wall attention 2026, as in flash-linear-attention (naive_wall_attn)",
            .rule = "",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED | LOCUS_TRAIT_CAUSAL,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .log_decay = LOCUS_OWN(LOG_DECAY),
    .decay_weight = LOCUS_OWN(W_D),
    .decay_bias = LOCUS_OWN(B_D),
    LOCUS_NO_TABLES,
};
