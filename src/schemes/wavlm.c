/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>

#include "core/error.h"
#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + gate_m bias[bucket(n - m)][h], the bias unscaled: T5's buckets, and how much
 * a query makes of them. A layer makes the gate of a head from its own D columns x_h of x, before
 * any projection:
 *     y = w_g x_h + b_g           8 numbers
 *     a = sigma(y0 + y1 + y2 + y3),  b = sigma(y4 + y5 + y6 + y7)
 *     gate = a (b g_scale[h] - 1) + 2 */

enum { W_G = 6, B_G, G_SCALE, HALF = 4 };
#define IN(tensors, which) (&(tensors)->own[which])

static double sigmoid(double x) { return 1.0 / (1.0 + exp(-x)); }

/* Only the sums of outputs 0 .. 3 and 4 .. 7 count: y of locus_gate_rule. */
static double weight(const locus_call *call, const locus_tensors *in, int64_t head, int64_t output,
                     int64_t column)
{
    double sum = 0.0;
    (void)head;
    for (int64_t o = output * HALF; o < (output + 1) * HALF; o++)
        sum += column == call->D ? locus_get(IN(in, B_G), o, 0, 0, 0)
                                 : locus_get(IN(in, W_G), o, column, 0, 0);
    return sum;
}

static void weight_grad(const locus_call *call, int64_t head, int64_t output, int64_t column,
                        double dweight, const locus_tensors *grad)
{
    double *dw = IN(grad, W_G)->data, *db = IN(grad, B_G)->data;
    (void)head;
    for (int64_t o = output * HALF; o < (output + 1) * HALF; o++) {
        if (column == call->D && db != NULL) db[o] += dweight;
        if (column < call->D && dw != NULL) dw[o * call->D + column] += dweight;
    }
}

static double gate(const locus_call *call, const locus_tensors *in, int64_t head, const double *y)
{
    const double scale = locus_get(IN(in, G_SCALE), head, 0, 0, 0);
    (void)call;
    return sigmoid(y[0]) * (sigmoid(y[1]) * scale - 1.0) + 2.0;
}

static void gate_grad(const locus_call *call, const locus_tensors *in, int64_t head,
                      const double *y, double dgate, double *dy, const locus_tensors *grad)
{
    const double scale = locus_get(IN(in, G_SCALE), head, 0, 0, 0);
    const double a = sigmoid(y[0]), b = sigmoid(y[1]);
    double *dscale = IN(grad, G_SCALE)->data;
    (void)call;
    dy[0] = dgate * (b * scale - 1.0) * a * (1.0 - a);
    dy[1] = dgate * a * scale * b * (1.0 - b);
    if (dscale != NULL) dscale[head] += dgate * a * b;
}

static const locus_gate_rule rule = {weight, gate, gate_grad, weight_grad};

static locus_status check(locus_call *call, const locus_tensors *shapes, locus_error *error)
{
    (void)shapes;
    if (call->level == LOCUS_LAYER && call->E != call->H * call->D)
        return locus_fail(error, LOCUS_ERR_TENSOR,
                          "tensor x: found width %" PRId64 ", expected %" PRId64
                          " (each head's gate reads its own columns)",
                          call->E, call->H * call->D);
    return locus_check_t5_options(call, error);
}

static const locus_option_info options[] = {LOCUS_BUCKET_OPTIONS_OF(NULL, 320, 800),
                                            LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_QUERY_TENSOR(gate),
        .help = "multiplies the bias of its query, any sign",
        .shape = "B H Tq",
        .required = 1,
    },
    {
        LOCUS_BIAS_PARAMETER(bias),
        .help = "one bias per bucket and head, unscaled",
        .shape = "buckets H",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_PARAMETER(W_G, "w_g"),
        .help = "makes gates of a head's columns of x",
        .shape = "8 D",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {
        LOCUS_OWN_PARAMETER(B_G, "b_g"),
        .help = "its bias",
        .shape = "8",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    {
        LOCUS_OWN_PARAMETER(G_SCALE, "g_scale"),
        .help = "how far a gate may rise",
        .shape = "H",
        .levels = LOCUS_LAYER,
        .required = 1,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_wavlm = {
    .info =
        {
            .name = "wavlm",
            .title = "WavLM gated relative bias",
            .formula = "s = c q.k + gate_m bias[bucket(n-m)][h]",
            .citation = "Chen et al. 2022, WavLM: Large-Scale Self-Supervised Pre-Training for "
                        "Full Stack Speech Processing",
            .rule = "bucket: that of T5; a layer makes gate_m of x_m",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_RELATIVE | LOCUS_TRAIT_LEARNED,
        },
    .options = options,
    .tensors = tensors,
    .check = check,
    .default_scale = locus_scale_plain,
    .bias = locus_t5_bias,
    .bias_grad = locus_t5_bias_grad,
    .bias_row = locus_t5_bias_row,
    .places = 1,
    .reach = locus_t5_reach,
    .gate = &rule,
    LOCUS_NO_TABLES,
};
