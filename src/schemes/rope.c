/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "schemes/scheme.h"

/* Pair t of q_m and k_n is turned by theta_scale m base^(-2t/width): y0 = x0 cos - x1
 * sin, y1 = x1 cos + x0 sin, so q.k depends on m - n. Columns from `width` on pass
 * through. `interleaved` pairs columns 2t, 2t+1, `half` pairs t, t + width/2.
 * `frequencies` stand in for base^(-2t/width), `q_positions` and `k_positions` for m and n.
 * With several axes the pairs are that many equal runs: run a turns by position a, and its
 * pair j by base^(-2j axes/width). */

static void turn(const locus_call *call, int64_t pair, double *frequency, double *log_gain)
{
    *frequency = call->options.theta_scale * locus_turn_frequency(call, pair);
    *log_gain = 0.0;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    (void)shapes;
    const locus_options *o = &call->options;
    const int64_t width = o->width == 0 ? call->D : o->width;
    if (width % 2 != 0 || width < 2 || width > call->D)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option width: found %" PRId64 ", expected an even number in 2..%" PRId64
                          " (D)",
                          width, call->D);
    call->pairs = width / 2;
    if (call->pairs % o->axes != 0)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option axes: found %" PRId64 ", expected a divisor of the %" PRId64
                          " pairs",
                          o->axes, call->pairs);
    return locus_check_turns(call, error);
}

static const locus_choice pairings[] = {
    {"half", LOCUS_PAIRING_HALF},
    {"interleaved", LOCUS_PAIRING_INTERLEAVED},
    {NULL, 0},
};

static const locus_option_info options[] = {
    LOCUS_BASE_OPTION,
    {
        .name = "width",
        .help = "turned columns, even; default D",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .minimum = 2,
        .maximum = 1024,
        .offset = offsetof(locus_options, width),
    },
    {
        .name = "pairing",
        .help = "which columns form a pair: half (NeoX, Llama) or interleaved (RoFormer, GPT-J)",
        .kind = LOCUS_OPTION_CHOICE,
        .levels = LOCUS_BOTH,
        .required = 1,
        .maximum = LOCUS_PAIRING_INTERLEAVED,
        .choices = pairings,
        .offset = offsetof(locus_options, pairing),
    },
    {
        .name = "theta_scale",
        .help = "positions are multiplied by it (linear scaling by f: 1/f)",
        .kind = LOCUS_OPTION_REAL,
        .levels = LOCUS_BOTH,
        .minimum = -1e6,
        .maximum = 1e6,
        .preset = 1.0,
        .offset = offsetof(locus_options, theta_scale),
    },
    {
        .name = "axes",
        .help = "runs of pairs, each turned by positions of its own (2: height and width)",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .minimum = 1,
        .maximum = 512,
        .preset = 1,
        .offset = offsetof(locus_options, axes),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {LOCUS_TURN_TENSORS, LOCUS_TENSOR_END};

const locus_scheme locus_scheme_rope = {
    .info =
        {
            .name = "rope",
            .title = "RoPE: rotary positions",
            .formula = "s = c (Rot(m) q).(Rot(n) k)",
            .citation = "Su et al. 2021, RoFormer: Enhanced Transformer with Rotary Position "
                        "Embedding",
            .rule = "pair t turns by theta_scale position base^(-2t/width)",
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
