/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + c pos_q[m] . pos_k[n] + bias[bucket(n - m)][h],  c = 1/sqrt(2D).
 * With `cls`, the whole position part is cls[0][h] where m = 0, else cls[1][h] where
 * n = 0: the first token is a sentence mark that has no place among the others. */

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    return locus_present(&in->bias) ? locus_t5_bias(call, in, head, m, n) : 0.0;
}

static double scale_two(const locus_call *call, const locus_tensors *shapes)
{
    (void)shapes;
    return 1.0 / sqrt(2.0 * (double)call->D);
}

static locus_status need_rows(const char *name, int64_t rows, int64_t first, int64_t last,
                              locus_error *error)
{
    if (first <= last && (first < 0 || last >= rows))
        return locus_fail(error, LOCUS_ERR_RANGE,
                          "tensor %s: found rows for positions 0..%" PRId64
                          ", expected rows for %" PRId64 "..%" PRId64,
                          name, rows - 1, first, last);
    return LOCUS_OK;
}

/* The positions m and n of pairs that causal and window let through; both sets are
 * intervals because the distances are one. */
static locus_status check_sequence(const locus_sequence *s, int64_t origin, const char *query_name,
                                   int64_t query_rows, const char *key_name, int64_t key_rows,
                                   locus_error *error)
{
    if (s->least > s->most) return LOCUS_OK;
    const int64_t first = s->query_offset, last = first + s->queries - 1;
    const int64_t m_low = first > s->least ? first : s->least;
    const int64_t m_high = last < s->most + s->keys - 1 ? last : s->most + s->keys - 1;
    const int64_t n_high = last - s->least < s->keys - 1 ? last - s->least : s->keys - 1;
    LOCUS_TRY(need_rows(query_name, query_rows, m_low + origin, m_high + origin, error));
    return need_rows(key_name, key_rows, origin, n_high + origin, error);
}

static locus_status check_rows(const locus_call *call, const char *query_name, int64_t query_rows,
                               const char *key_name, int64_t key_rows, locus_error *error)
{
    for (int64_t i = 0; i < locus_sequence_count(call); i++) {
        const locus_sequence s = locus_call_sequence(call, i);
        LOCUS_TRY(check_sequence(&s, call->key_offset, query_name, query_rows, key_name, key_rows,
                                 error));
    }
    return LOCUS_OK;
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    if (locus_present(&shapes->bias)) LOCUS_TRY(locus_check_t5_options(call, error));
    if (call->level == LOCUS_LAYER)
        return check_rows(call, "pos", shapes->pos.shape[0], "pos", shapes->pos.shape[0], error);
    return check_rows(call, "pos_q", shapes->pos_q.shape[1], "pos_k", shapes->pos_k.shape[1],
                      error);
}

static const locus_option_info options[] = {LOCUS_BUCKET_OPTIONS("bias"), LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_PARAMETER(pos_q),
        .help = "projected position of the query, row = position",
        .shape = "H >=T D",
        .levels = LOCUS_ATTEND,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(pos_k),
        .help = "projected position of the key, row = position",
        .shape = "H >=T D",
        .levels = LOCUS_ATTEND,
        .required = 1,
    },
    {
        LOCUS_BIAS_PARAMETER(bias),
        .help = "T5's bucketed bias (TUPE-R), unscaled",
        .shape = "buckets H",
        .levels = LOCUS_BOTH,
    },
    {
        LOCUS_PARAMETER(cls),
        .help = "the position part of row m = 0 and of column n = 0",
        .shape = "2 H",
        .levels = LOCUS_BOTH,
    },
    {
        LOCUS_PARAMETER(pos),
        .help = "positions before their projections, row = position",
        .shape = ">=T E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(w_pq),
        .help = "projects pos to pos_q",
        .shape = "HD E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(w_pk),
        .help = "projects pos to pos_k",
        .shape = "HD E",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {LOCUS_PARAMETER(b_pq), .help = "bias of w_pq", .shape = "HD", .levels = LOCUS_LAYER},
    {LOCUS_PARAMETER(b_pk), .help = "bias of w_pk", .shape = "HD", .levels = LOCUS_LAYER},
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};
static const locus_projection projections[] = {
    {
        .table = offsetof(locus_tensors, pos_q),
        .source = offsetof(locus_tensors, pos),
        .weight = offsetof(locus_tensors, w_pq),
        .bias = offsetof(locus_tensors, b_pq),
        .shared_weight = LOCUS_NO_TENSOR,
        .shared_bias = LOCUS_NO_TENSOR,
    },
    {
        .table = offsetof(locus_tensors, pos_k),
        .source = offsetof(locus_tensors, pos),
        .weight = offsetof(locus_tensors, w_pk),
        .bias = offsetof(locus_tensors, b_pk),
        .shared_weight = LOCUS_NO_TENSOR,
        .shared_bias = LOCUS_NO_TENSOR,
    },
    LOCUS_PROJECTION_END,
};

const locus_scheme locus_scheme_tupe = {
    .info =
        {
            .name = "tupe",
            .title = "TUPE: untied positional projections",
            .formula = "s = c (q.k + pos_q[m].pos_k[n]) + bias[bucket(n-m)][h]",
            .citation = "Ke, He, Liu 2021, Rethinking Positional Encoding in Language "
                        "Pre-training",
            .rule = "row = position; with cls the position part of m = 0 is cls[0], else of "
                    "n = 0 cls[1]",
            .scale = "1/sqrt(2D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_POSITION_POSITION | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = scale_two,
    .bias = bias,
    .bias_grad = locus_t5_bias_grad,
    .bias_row = locus_t5_bias_row,
    .places = 1,
    .reach = locus_t5_reach,
    LOCUS_NO_TABLES,
    .projections = projections,
};
