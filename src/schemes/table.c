/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* Any map of distances to rows, r = rows[(m - n) - delta_min], and up to four tables:
 *     s   = c (q_m . k_n + q_m . rel_k[r] + k_n . rel_q[r]) + bias[r][h]
 *     out = sum_n a_mn (v_n + rel_v[r])
 * With pos_query p, rel_k is met by p_m, unscaled, in the place of c q_m.
 * Every clip and bucket rule is one of these maps. With clamp, distances beyond the ends take
 * the end of `rows`. */

static int64_t row(const locus_call *call, int64_t delta)
{
    const int64_t last = call->rows.shape[0] - 1, at = delta - call->options.delta_min;
    if (at >= 0 && at <= last) return locus_whole(&call->rows, at);
    if (call->options.clamp == 0 || last < 0) return -1;
    return locus_whole(&call->rows, at < 0 ? 0 : last);
}

static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    locus_reach_of_entries(call, call->rows.shape[0], low, high);
}

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    return locus_present(&in->bias) ? locus_get(&in->bias, row(call, m - n), head, 0, 0) : 0.0;
}

static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    (void)in;
    if (!locus_present(&grad->bias)) return;
    double *column = (double *)grad->bias.data + head;
    for (int64_t i = 0; i < count; i++) column[row(call, m - n - i) * call->H] += ds[i];
}

/* R: the rows of whichever table there is; all others must agree. */
static int64_t count_rows(const locus_tensors *shapes)
{
    const locus_tensor *const tables[] = {&shapes->rel_k, &shapes->rel_q, &shapes->rel_v,
                                          &shapes->bias};
    for (size_t i = 0; i < 4; i++)
        if (locus_present(tables[i])) return tables[i]->shape[tables[i]->rank == 3 ? 1 : 0];
    return -1;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->R = count_rows(shapes);
    if (call->R < 0)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensors rel_k, rel_q, rel_v and bias are all missing, expected at least "
                          "one");
    for (int64_t i = 0; i < call->rows.shape[0]; i++)
        if (locus_whole(&call->rows, i) < 0 || locus_whole(&call->rows, i) >= call->R)
            return locus_fail(error, LOCUS_ERR_RANGE,
                              "tensor rows: found %" PRId64 " at %" PRId64
                              ", expected a row in 0..%" PRId64,
                              locus_whole(&call->rows, i), i, call->R - 1);
    LOCUS_TRY(locus_check_pos_query(call, shapes, error));
    return locus_check_distances(call, "rows", call->rows.shape[0], error);
}

static const locus_option_info options[] = {
    LOCUS_DELTA_MIN_OPTION("the distance m - n of entry 0 of rows"),
    LOCUS_CLAMP_OPTION,
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PLAN_TENSOR(rows, 1u << LOCUS_I64),
        .help = "the table row that serves each distance, from delta_min on",
        .shape = "N",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(rel_k),
        .help = "dotted with q, or with pos_query",
        .shape = "R D, H R D, R F, H R F",
        .levels = LOCUS_BOTH,
    },
    {
        LOCUS_QUERY_TENSOR(pos_query),
        .help = "a query of its own for rel_k, in the place of c q",
        .shape = "B H Tq D, B H Tq F",
    },
    {
        LOCUS_QUERY_PROJECTION(w_r),
        .help = "makes pos_query of x",
        .shape = "HD E, HF E",
    },
    {
        LOCUS_QUERY_PROJECTION(b_r),
        .help = "its bias",
        .shape = "HD, HF",
    },
    {
        LOCUS_PARAMETER(rel_q),
        .help = "dotted with k",
        .shape = "R D, H R D",
        .levels = LOCUS_BOTH,
    },
    {LOCUS_PARAMETER(rel_v), .help = "added to v", .shape = "R Dv", .levels = LOCUS_BOTH},
    {
        LOCUS_BIAS_PARAMETER(bias),
        .help = "one number per row and head, unscaled",
        .shape = "R H",
        .levels = LOCUS_BOTH,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_table = {
    .info =
        {
            .name = "table",
            .title = "Any map of distances to rows",
            .formula = "s = c (q.k + q.rel_k[r] + k.rel_q[r]) + bias[r][h], r = rows[m-n]",
            .citation = "the map of the caller; clips and buckets of Shaw et al. 2018, Raffel et "
                        "al. 2020 and He et al. 2021 are examples",
            .rule = "r = rows[(m - n) - delta_min]; with clamp, distances beyond the ends take the "
                    "end entry",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION |
                     LOCUS_TERM_POSITION_CONTENT | LOCUS_TERM_BIAS | LOCUS_TERM_VALUE,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .row = row,
    .places = 1,
    .reach = reach,
    .bias = bias,
    .bias_grad = bias_grad,
    .bias_row = row,
    .key_table = offsetof(locus_tensors, rel_k),
    .query_table = offsetof(locus_tensors, rel_q),
    .value_table = offsetof(locus_tensors, rel_v),
};
