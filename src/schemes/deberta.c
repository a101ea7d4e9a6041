/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c (q_m . k_n + q_m . rel_k[t] + k_n . rel_q[t]),
 * t = clip(beta(m - n) + span, 0, 2 span - 1), the same row for both cross terms (the
 * released code, not the paper's equation 4), c = 1/sqrt(D (1 + tables)).
 * beta is the identity up to half of the buckets, then logarithmic, rounded up:
 *     beta = sign (mid + ceil(log(a / mid) / log((max_distance - 1) / mid) (mid - 1))). */

int64_t locus_deberta_beta(int64_t delta, int64_t buckets, int64_t max_distance)
{
    const int64_t mid = buckets / 2;
    const int64_t distance = delta < 0 ? -delta : delta;
    if (buckets == 0 || distance <= mid) return delta;
    int exact;
    const int64_t steps = locus_log_steps(distance, mid, max_distance - 1, mid - 1, &exact);
    const int64_t beta = mid + steps + (exact ? 0 : 1);
    return delta < 0 ? -beta : beta;
}

static int64_t row(const locus_call *call, int64_t delta)
{
    const locus_options *o = &call->options;
    /* From max_distance on |beta| >= 2 mid, which is span: the end rows, without a logarithm. */
    if (o->buckets >= 4 && o->buckets / 2 * 2 == o->span &&
        (delta >= o->max_distance || -delta >= o->max_distance))
        return delta < 0 ? 0 : 2 * o->span - 1;
    const int64_t t = locus_deberta_beta(delta, o->buckets, o->max_distance) + o->span;
    return t < 0 ? 0 : t > 2 * o->span - 1 ? 2 * o->span - 1 : t;
}

/* Twice max_distance: |beta| is at least span there, whichever way it is rounded. */
static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    const locus_options *o = &call->options;
    *high = o->buckets == 0 ? o->span : 2 * o->max_distance;
    *low = -*high;
}

static int tables(const locus_call *call, const locus_tensors *shapes)
{
    if (call->level == LOCUS_LAYER) return (call->options.c2p != 0) + (call->options.p2c != 0);
    return locus_present(&shapes->rel_k) + locus_present(&shapes->rel_q);
}

static double default_scale(const locus_call *call, const locus_tensors *shapes)
{
    return 1.0 / sqrt((double)call->D * (1.0 + tables(call, shapes)));
}

static locus_status check_options(const locus_options *o, locus_error *error)
{
    if (o->buckets == 0) return LOCUS_OK;
    if (o->buckets < 2 || o->span != o->buckets)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option span: found %" PRId64 " beside buckets %" PRId64
                          ", expected span = buckets >= 2 (or buckets 0)",
                          o->span, o->buckets);
    /* At max_distance = mid + 1 the logarithm in the denominator is 0. */
    if (o->max_distance <= o->buckets / 2 + 1)
        return locus_fail(error, LOCUS_ERR_OPTION,
                          "option max_distance: found %" PRId64 ", expected more than %" PRId64
                          " (half of the buckets, plus 1)",
                          o->max_distance, o->buckets / 2 + 1);
    return LOCUS_OK;
}

/* A bias or weight of a table's own projection makes sense only beside the table. */
static locus_status check_own(const locus_tensor *weight, const locus_tensor *bias,
                              const char *weight_name, const char *bias_name, int used,
                              const char *option, locus_error *error)
{
    if (locus_present(bias) && !locus_present(weight))
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found without %s, expected both",
                          bias_name, weight_name);
    if (locus_present(weight) && !used)
        return locus_fail(error, LOCUS_ERR_TENSOR, "tensor %s: found beside %s = 0, expected none",
                          weight_name, option);
    return LOCUS_OK;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->R = 2 * call->options.span;
    LOCUS_TRY(check_options(&call->options, error));
    if (tables(call, shapes) == 0)
        return call->level == LOCUS_LAYER
                   ? locus_fail(error, LOCUS_ERR_OPTION,
                                "options c2p and p2c: found 0 and 0, expected at least one 1")
                   : locus_fail(error, LOCUS_ERR_TENSOR,
                                "tensors rel_k and rel_q are both missing, expected at least one");
    if (call->level != LOCUS_LAYER) return LOCUS_OK;
    LOCUS_TRY(check_own(&shapes->w_rk, &shapes->b_rk, "w_rk", "b_rk", call->options.c2p != 0, "c2p",
                        error));
    return check_own(&shapes->w_rq, &shapes->b_rq, "w_rq", "b_rq", call->options.p2c != 0, "p2c",
                     error);
}

static const locus_option_info options[] = {
    {
        .name = "span",
        .help = "half of the table rows; with buckets 0 also the clip",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .required = 1,
        .minimum = 1,
        .maximum = 1 << 20,
        .offset = offsetof(locus_options, span),
    },
    {
        .name = "buckets",
        .help = "log buckets, equal to span; 0 = plain clip",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .maximum = 65536,
        .offset = offsetof(locus_options, buckets),
    },
    {
        .name = "max_distance",
        .help = "the distance that reaches the last bucket; unused when buckets is 0",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_BOTH,
        .maximum = 1 << 20,
        .offset = offsetof(locus_options, max_distance),
    },
    {
        .name = "c2p",
        .help = "1: content to position, q.rel_k",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_LAYER,
        .maximum = 1,
        .preset = 1,
        .offset = offsetof(locus_options, c2p),
    },
    {
        .name = "p2c",
        .help = "1: position to content, k.rel_q",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_LAYER,
        .maximum = 1,
        .preset = 1,
        .offset = offsetof(locus_options, p2c),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(rel_k),
        .help = "c2p: projected positions dotted with q",
        .shape = "H R D",
        .levels = LOCUS_ATTEND,
    },
    {
        LOCUS_PARAMETER(rel_q),
        .help = "p2c: projected positions dotted with k",
        .shape = "H R D",
        .levels = LOCUS_ATTEND,
    },
    {
        LOCUS_PARAMETER(rel),
        .help = "relative positions before their projections, R = 2 span",
        .shape = "R E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(w_rk),
        .help = "projects rel to rel_k; absent: w_k, b_k do",
        .shape = "HD E",
        .levels = LOCUS_LAYER,
    },
    {
        LOCUS_PARAMETER(w_rq),
        .help = "projects rel to rel_q; absent: w_q, b_q do",
        .shape = "HD E",
        .levels = LOCUS_LAYER,
    },
    {LOCUS_PARAMETER(b_rk), .help = "bias of w_rk", .shape = "HD", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(b_rq), .help = "bias of w_rq", .shape = "HD", .levels = LOCUS_LAYER},
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};
static const locus_projection projections[] = {
    {
        .table = offsetof(locus_tensors, rel_k),
        .source = offsetof(locus_tensors, rel),
        .weight = offsetof(locus_tensors, w_rk),
        .bias = offsetof(locus_tensors, b_rk),
        .shared_weight = offsetof(locus_tensors, w_k),
        .shared_bias = offsetof(locus_tensors, b_k),
    },
    {
        .table = offsetof(locus_tensors, rel_q),
        .source = offsetof(locus_tensors, rel),
        .weight = offsetof(locus_tensors, w_rq),
        .bias = offsetof(locus_tensors, b_rq),
        .shared_weight = offsetof(locus_tensors, w_q),
        .shared_bias = offsetof(locus_tensors, b_q),
    },
    LOCUS_PROJECTION_END,
};

const locus_scheme locus_scheme_deberta = {
    .info =
        {
            .name = "deberta",
            .title = "DeBERTa disentangled attention",
            .formula = "s = c (q.k + q.rel_k[t] + k.rel_q[t])",
            .citation = "He et al. 2021, DeBERTa: Decoding-enhanced BERT with Disentangled "
                        "Attention",
            .rule = "t = clip(beta(m - n) + span, 0, 2 span - 1); beta: exact to buckets/2, then "
                    "logarithmic, rounded up",
            .scale = "1/sqrt(D (1 + tables))",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION | LOCUS_TERM_POSITION_CONTENT,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = default_scale,
    .row = row,
    .places = 1,
    .reach = reach,
    .key_table = offsetof(locus_tensors, rel_k),
    .query_table = offsetof(locus_tensors, rel_q),
    .value_table = LOCUS_NO_TENSOR,
    .projections = projections,
};
