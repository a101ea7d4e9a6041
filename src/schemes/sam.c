/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + q_m . rel_h[dy + (Ry - 1)/2] + q_m . rel_w[dx + (Rx - 1)/2],
 * dy and dx being the distances on the two axes of the positions that the call brings. A table of
 * all (dy, dx) would have Ry Rx rows; two tables that are added have Ry + Rx. The query meets them
 * unscaled, as the published code has it. */

enum { REL_W = LOCUS_OWN_TENSORS - 2, REL_H };

static int64_t row_y(const locus_call *call, int64_t delta) { return delta + (call->Ry - 1) / 2; }
static int64_t row_x(const locus_call *call, int64_t delta) { return delta + (call->Rx - 1) / 2; }

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    const locus_tensor *h = &shapes->own[REL_H], *w = &shapes->own[REL_W];
    call->Ry = h->shape[h->rank - 2];
    call->Rx = w->shape[w->rank - 2];
    call->R = call->Ry > call->Rx ? call->Ry : call->Rx;
    LOCUS_TRY(locus_check_grid(call, 0, "rel_h", call->Ry, error));
    return locus_check_grid(call, 1, "rel_w", call->Rx, error);
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_OWN_PARAMETER(REL_H, "rel_h"),
        .help = "dotted with q by the distance on axis y; an odd number of rows",
        .shape = "Ry D, H Ry D",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_PARAMETER(REL_W, "rel_w"),
        .help = "the same on axis x",
        .shape = "Rx D, H Rx D",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    LOCUS_GRID_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_sam = {
    .info =
        {
            .name = "sam",
            .title = "SAM, ViTDet: two axes, decomposed",
            .formula = "s = c q.k + q.rel_h[dy] + q.rel_w[dx]",
            .citation = "Li et al. 2022, MViTv2: Improved Multiscale Vision Transformers; Kirillov "
                        "et al. 2023, Segment Anything",
            .rule = "row = d + (R - 1)/2 on each axis, no clipping",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_CONTENT_POSITION,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .row = row_y,
    .second_row = row_x,
    .places = 2,
    .key_table = LOCUS_OWN(REL_H),
    .second_table = LOCUS_OWN(REL_W),
    .query_table = LOCUS_NO_TENSOR,
    .value_table = LOCUS_NO_TENSOR,
};
