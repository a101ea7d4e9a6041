/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "schemes/scheme.h"

/* p_i holds sines and cosines of i w_t. Three tables are in use, and they are not
 * interchangeable (N = floor(width / 2), t = 0 .. N-1):
 *   paper  w_t = 10000^(-2t/width)      sin and cos interleaved
 *   half   w_t = 10000^(-2t/width)      all sines, then all cosines
 *   t2t    w_t = 10000^(-t/max(N-1,1))  all sines, then all cosines, then a zero if odd
 * An odd width gives `paper` and `half` one more sine than cosines. */

static double frequency(int64_t table, int64_t width, int64_t t)
{
    const double log_base = log(10000.0);
    if (table == LOCUS_TABLE_T2T) {
        const int64_t last = width / 2 - 1;
        return exp(-(double)t * log_base / (double)(last > 1 ? last : 1));
    }
    return exp(-2.0 * (double)t * log_base / (double)width);
}

void locus_sinusoid(int64_t table, int64_t width, int64_t position, double *out)
{
    const int64_t pairs = width / 2;
    const int64_t sines = table == LOCUS_TABLE_T2T ? pairs : (width + 1) / 2;
    for (int64_t t = 0; t < sines; t++) {
        const double angle = (double)position * frequency(table, width, t);
        const int64_t at = table == LOCUS_TABLE_PAPER ? 2 * t : t;
        const int64_t beside = table == LOCUS_TABLE_PAPER ? 2 * t + 1 : sines + t;
        out[at] = sin(angle);
        if (t < pairs) out[beside] = cos(angle);
    }
    if (table == LOCUS_TABLE_T2T && width % 2 != 0) out[width - 1] = 0.0;
}

static void embed(const locus_call *call, const locus_tensors *in, int64_t i, double *row)
{
    (void)in;
    locus_sinusoid(call->options.table, call->E, call->options.first_position + i, row);
}

static const locus_choice tables[] = {
    {"paper", LOCUS_TABLE_PAPER},
    {"t2t", LOCUS_TABLE_T2T},
    {"half", LOCUS_TABLE_HALF},
    {NULL, 0},
};

static const locus_option_info options[] = {
    {
        .name = "table",
        .help = "which of the three published tables",
        .kind = LOCUS_OPTION_CHOICE,
        .levels = LOCUS_LAYER,
        .required = 1,
        .maximum = LOCUS_TABLE_HALF,
        .choices = tables,
        .offset = offsetof(locus_options, table),
    },
    {
        .name = "first_position",
        .help = "position of row 0 (2 in the fairseq family)",
        .kind = LOCUS_OPTION_INTEGER,
        .levels = LOCUS_LAYER,
        .maximum = 1 << 30,
        .offset = offsetof(locus_options, first_position),
    },
    {
        .name = "x_scale",
        .help = "input is x_scale x + p (sqrt(E) in translation models)",
        .kind = LOCUS_OPTION_REAL,
        .levels = LOCUS_LAYER,
        .minimum = -1e30,
        .maximum = 1e30,
        .preset = 1.0,
        .offset = offsetof(locus_options, x_scale),
    },
    LOCUS_OPTION_END,
};
static const locus_tensor_info tensors[] = {LOCUS_TENSOR_END};

const locus_scheme locus_scheme_sinusoidal = {
    .info =
        {
            .name = "sinusoidal",
            .title = "Sinusoidal absolute positions",
            .formula = "s = c (Wq(x_m + p_m)).(Wk(x_n + p_n)),  p_i = sin, cos of i 10000^(-2t/E)",
            .citation = "Vaswani et al. 2017, Attention Is All You Need",
            .rule = "p_i is added before the q, k and v projections; in attend the same as none",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_INPUT,
        },
    .options = options,
    .tensors = tensors,
    .default_scale = locus_scale_plain,
    .embed = embed,
    LOCUS_NO_TABLES,
};
