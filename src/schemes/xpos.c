/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "schemes/scheme.h"

/* RoPE (interleaved, whole width) with a decay per pair: q_m is multiplied by
 * zeta_t^(m / scale_base), k_n by zeta_t^(-n / scale_base), zeta_t = (2t + 0.4 D) /
 * (1.4 D) < 1, so the product carries zeta_t^((m - n) / scale_base). Made for causal
 * attention: for keys after the query it grows. */

static void turn(const locus_call *call, int64_t pair, double *frequency, double *log_gain)
{
    const double width = (double)call->D;
    const double zeta = (2.0 * (double)pair + 0.4 * width) / (1.4 * width);
    *frequency = locus_turn_frequency(call, pair);
    *log_gain = log(zeta) / call->options.scale_base;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    (void)shapes;
    if (call->D % 2 != 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor q: found width %" PRId64 ", expected an even number", call->D);
    call->options.pairing = LOCUS_PAIRING_INTERLEAVED;
    call->options.axes = 1;
    call->pairs = call->D / 2;
    return locus_check_turns(call, error);
}

static const locus_option_info options[] = {
    LOCUS_BASE_OPTION,
    {
        .name = "scale_base",
        .help = "positions over which the decay acts",
        .kind = LOCUS_OPTION_REAL,
        .levels = LOCUS_BOTH,
        .minimum = 1e-3,
        .maximum = 1e30,
        .preset = 512.0,
        .offset = offsetof(locus_options, scale_base),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {LOCUS_TURN_TENSORS, LOCUS_TENSOR_END};

const locus_scheme locus_scheme_xpos = {
    .info =
        {
            .name = "xpos",
            .title = "xPos: rotary positions with decay",
            .formula = "s = c (zeta^(m/b) Rot(m) q).(zeta^(-n/b) Rot(n) k)",
            .citation = "Sun et al. 2022, A Length-Extrapolatable Transformer",
            .rule = "pair t turns by position base^(-2t/D), zeta_t = (2t + 0.4 D) / (1.4 D), "
                    "b = scale_base",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_ROTATION,
            .traits = LOCUS_TRAIT_RELATIVE,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .turn = turn,
    LOCUS_NO_TABLES,
};
