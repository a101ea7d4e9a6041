/* SPDX-License-Identifier: Apache-2.0 */
#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + bias[dy + (Ry - 1)/2][dx + (Rx - 1)/2][h], dy and dx being the distances on the
 * two axes of the positions that the call brings. With the position y Rx + x of a row, one distance
 * tells both: row dy Rx + dx of Ry Rx. With `cls`, the first token has no place in the grid:
 * cls[2][h] where m = n = 0, else cls[0][h] where m = 0, else cls[1][h] where n = 0. */

static int64_t row_of(const locus_call *call, int64_t delta)
{
    return delta + (call->Ry * call->Rx - 1) / 2;
}

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    const int64_t row = row_of(call, m - n);
    return locus_get(&in->bias, row / call->Rx, row % call->Rx, head, 0);
}

static void bias_run(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n, int64_t count, float *values)
{
    for (int64_t i = 0; i < count; i++) values[i] = (float)bias(call, in, head, m, n + i);
}

static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    (void)in;
    if (!locus_present(&grad->bias)) return;
    double *column = (double *)grad->bias.data + head;
    for (int64_t i = 0; i < count; i++) column[row_of(call, m - n - i) * call->H] += ds[i];
}

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    call->Ry = shapes->bias.shape[0];
    call->Rx = shapes->bias.shape[1];
    LOCUS_TRY(locus_check_grid(call, 0, "bias", call->Ry, error));
    LOCUS_TRY(locus_check_grid(call, 1, "bias", call->Rx, error));
    call->grid_width = call->Rx;
    call->delta_high[0] = (call->Ry * call->Rx - 1) / 2;
    call->delta_low[0] = -call->delta_high[0];
    return LOCUS_OK;
}

static void reach(const locus_call *call, int64_t *low, int64_t *high)
{
    *low = call->delta_low[0];
    *high = call->delta_high[0];
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_BIAS_PARAMETER(bias),
        .help = "one number per dy, dx and head, unscaled; odd numbers of rows",
        .shape = "Ry Rx H",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_PARAMETER(cls),
        .help = "the bias of row m = 0, of column n = 0, and where they meet",
        .shape = "3 H",
        .levels = LOCUS_BOTH,
    },
    LOCUS_GRID_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_swin = {
    .info =
        {
            .name = "swin",
            .title = "Swin, BEiT: a bias by two axes",
            .formula = "s = c q.k + bias[dy][dx][h]",
            .citation = "Liu et al. 2021, Swin Transformer; Bao et al. 2022, BEiT",
            .rule = "row = d + (R - 1)/2 on each axis, no clipping",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .places = 2,
    .reach = reach,
    .bias = bias,
    .bias_run = bias_run,
    .bias_grad = bias_grad,
    LOCUS_NO_TABLES,
};
