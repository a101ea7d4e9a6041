/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c ((q_m + u) . k_n + (q_m + w) . rel_k[clip(m - n, -clamp, clamp) - delta_min]).
 * In a layer rel_k = R W_r^T, where row delta of R is the sinusoid of delta; with the
 * interleaved table (`paper`) this is Conformer's form. */

static int64_t clamped(const locus_call *call, int64_t delta)
{
    const int64_t clamp = call->options.clamp;
    if (clamp == 0) return delta;
    return delta < -clamp ? -clamp : delta > clamp ? clamp : delta;
}

enum { MAX_SINUSOIDS = 1 << 20 }; /* that a layer makes, where positions may lie anywhere */

static int64_t row(const locus_call *call, int64_t delta)
{
    return clamped(call, delta) - call->options.delta_min;
}

static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    locus_reach_of_entries(call, call->R, low, high);
    if (call->options.clamp == 0) return;
    *low = -call->options.clamp;
    *high = call->options.clamp;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    const int empty = call->delta_low[0] > call->delta_high[0];
    const int64_t first = empty ? 0 : clamped(call, call->delta_low[0]);
    const int64_t last = empty ? -1 : clamped(call, call->delta_high[0]);
    if (call->level == LOCUS_LAYER) { /* the layer makes just the rows that are needed */
        call->options.delta_min = first;
        call->R = last - first + 1;
        if (call->R <= MAX_SINUSOIDS || !call->placed) return LOCUS_OK;
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "tensor %s: found distances %" PRId64 "..%" PRId64
                          ", expected at most %d of them in a layer",
                          locus_present(&call->q_positions) ? "q_positions" : "k_positions", first,
                          last, (int)MAX_SINUSOIDS);
    }
    call->R = shapes->rel_k.shape[1];
    const int64_t lowest = call->options.delta_min, highest = lowest + call->R - 1;
    if (!empty && (first < lowest || last > highest))
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "tensor rel_k: found rows for m - n in %" PRId64 "..%" PRId64
                          " (delta_min %" PRId64 ", %" PRId64 " rows), expected %" PRId64
                          "..%" PRId64,
                          lowest, highest, lowest, call->R, first, last);
    return LOCUS_OK;
}

static const locus_choice tables[] = {
    {"half", LOCUS_TABLE_HALF},
    {"paper", LOCUS_TABLE_PAPER},
    {NULL, 0},
};

static const locus_option_info options[] = {
    {
        .name = "delta_min",
        .help = "the distance m - n of row 0 of rel_k",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_ATTEND,
        .required = 1,
        .minimum = -4294967296.0,
        .maximum = 4294967296.0,
        .offset = offsetof(locus_options, delta_min),
    },
    {
        .name = "clamp",
        .help = "distances beyond it share one row; 0 = none",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .maximum = 1 << 20,
        .offset = offsetof(locus_options, clamp),
    },
    {
        .name = "table",
        .help = "layout of the sinusoid: half (Transformer-XL) or paper (Conformer)",
        .kind = LOCUS_OPTION_CHOICE,
        .levels = LOCUS_LAYER,
        .required = 1,
        .maximum = LOCUS_TABLE_HALF,
        .preset = LOCUS_TABLE_HALF,
        .choices = tables,
        .offset = offsetof(locus_options, table),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(rel_k),
        .help = "projected sinusoids W_r R, row 0 is distance delta_min",
        .shape = "H R D",
        .levels = LOCUS_ATTEND,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(u),
        .help = "added to q in the content term (r_w_bias)",
        .shape = "H D",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(w),
        .help = "added to q in the position term (r_r_bias)",
        .shape = "H D",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(w_r),
        .help = "projects the sinusoid of the distance to rel_k",
        .shape = "HD E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};
static const locus_projection projections[] = {
    {
        .table = offsetof(locus_tensors, rel_k),
        .source = LOCUS_SINUSOID,
        .weight = offsetof(locus_tensors, w_r),
        .bias = LOCUS_NO_TENSOR,
        .shared_weight = LOCUS_NO_TENSOR,
        .shared_bias = LOCUS_NO_TENSOR,
    },
    LOCUS_PROJECTION_END,
};

const locus_scheme locus_scheme_transformer_xl = {
    .info =
        {
            .name = "transformer_xl",
            .title = "Transformer-XL, XLNet, Conformer",
            .formula = "s = c ((q + u).k + (q + w).(Wr R[m-n]))",
            .citation = "Dai et al. 2019, Transformer-XL: Attentive Language Models beyond a "
                        "Fixed-Length Context; Gulati et al. 2020, Conformer",
            .rule = "row = clip(m - n, -clamp, clamp) - delta_min; R[r] = sinusoid of r",
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
    .projections = projections,
};
