/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "core/tensor.h"
#include "schemes/scheme.h"

/* s = c q_m . k_n + f_h(z),  z = psi(m - n) / (psi(max(m, |threshold|)) + 1e-6),
 * psi(x) = ln(|c x| + 1),  f_h(z) = sum_f w_2[h,f] max(0, w_1[f] z + b_1[f]) + b_2[h].
 * Distances are seen relative to how far there is to look back, so that z stays in [0, 1] at any
 * length. The parameter c is called `slope` below, where c is the scale. */

enum { W_1, B_1, W_2, B_2, C, THRESHOLD };
#define IN(tensors, which) (&(tensors)->own[which])

/* The first layer is the same for all heads. */
typedef struct fire {
    const locus_tensor *w_1, *b_1, *w_2;
    double slope, reach, norm; /* c; max(m, |threshold|); psi(reach) + 1e-6 */
    int64_t features;
} fire;

static double psi(double slope, double x) { return log1p(fabs(slope * x)); }

static fire at_query(const locus_tensors *in, int64_t m)
{
    const double slope = locus_get(IN(in, C), 0, 0, 0, 0);
    const double threshold = fabs(locus_get(IN(in, THRESHOLD), 0, 0, 0, 0));
    const double reach = threshold <= (double)m ? (double)m : threshold; /* a NaN stays one */
    return (fire){
        IN(in, W_1),          IN(in, B_1), IN(in, W_2), slope, reach, psi(slope, reach) + 1e-6,
        IN(in, W_1)->shape[0]};
}

static double value(const fire *f, const locus_tensors *in, int64_t head, double z)
{
    double sum = locus_get(IN(in, B_2), head, 0, 0, 0);
    for (int64_t i = 0; i < f->features; i++) {
        const double x = locus_get(f->w_1, i, 0, 0, 0) * z + locus_get(f->b_1, i, 0, 0, 0);
        /* a NaN stays one */
        sum += locus_get(f->w_2, head, i, 0, 0) * (x <= 0.0 ? 0.0 : x);
    }
    return sum;
}

static double bias(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                   int64_t n)
{
    const fire f = at_query(in, m + call->key_offset);
    return value(&f, in, head, psi(f.slope, (double)(m - n)) / f.norm);
}

static void bias_run(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                     int64_t n, int64_t count, float *values)
{
    const fire f = at_query(in, m + call->key_offset);
    for (int64_t i = 0; i < count; i++)
        values[i] = (float)value(&f, in, head, psi(f.slope, (double)(m - n - i)) / f.norm);
}

/* grad[at] += number, where that gradient is wanted */
static void add(const locus_tensors *grad, int which, int64_t at, double number)
{
    const locus_tensor *t = IN(grad, which);
    if (locus_present(t)) ((double *)t->data)[at] += number;
}

/* d psi(x) / dc = sign(c) |x| / (|c x| + 1),  d psi(x) / dx = |c| / (|c x| + 1) for x > 0 */
static double psi_by_slope(double slope, double x)
{
    return copysign(fabs(x) / (fabs(slope * x) + 1.0), slope);
}

/* z = p / q: dz = (dp - z dq) / q, where q depends on the threshold only beyond m. */
static void pull_z(const fire *f, const locus_tensors *in, const locus_tensors *grad, int64_t m,
                   double distance, double z, double dz)
{
    const double threshold = locus_get(IN(in, THRESHOLD), 0, 0, 0, 0);
    const double by_slope = psi_by_slope(f->slope, distance) - z * psi_by_slope(f->slope, f->reach);
    add(grad, C, 0, dz * by_slope / f->norm);
    if (fabs(threshold) <= (double)m) return;
    const double by_reach = fabs(f->slope) / (fabs(f->slope * f->reach) + 1.0);
    add(grad, THRESHOLD, 0, -dz * z * copysign(by_reach, threshold) / f->norm);
}

static void bias_grad(const locus_call *call, const locus_tensors *in, int64_t head, int64_t m,
                      int64_t n, int64_t count, const double *ds, const locus_tensors *grad)
{
    const fire f = at_query(in, m + call->key_offset);
    for (int64_t k = 0; k < count; k++) {
        const double distance = (double)(m - n - k), z = psi(f.slope, distance) / f.norm;
        double dz = 0.0;
        if (ds[k] == 0.0) continue;
        for (int64_t i = 0; i < f.features; i++) {
            const double w_1 = locus_get(f.w_1, i, 0, 0, 0), w_2 = locus_get(f.w_2, head, i, 0, 0);
            const double x = w_1 * z + locus_get(f.b_1, i, 0, 0, 0);
            if (x <= 0.0) continue;
            add(grad, W_2, head * f.features + i, ds[k] * x);
            add(grad, W_1, i, ds[k] * w_2 * z);
            add(grad, B_1, i, ds[k] * w_2);
            dz += ds[k] * w_2 * w_1;
        }
        add(grad, B_2, head, ds[k]);
        pull_z(&f, in, grad, m + call->key_offset, distance, z, dz);
    }
}

static const locus_option_info options[] = {LOCUS_OPTION_END};
static const locus_tensor_info tensors[] = {
    {
        LOCUS_OWN_BIAS_PARAMETER(W_1, "w_1"),
        .help = "weights of the hidden features",
        .shape = "F",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_BIAS_PARAMETER(B_1, "b_1"),
        .help = "their biases",
        .shape = "F",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_BIAS_PARAMETER(W_2, "w_2"),
        .help = "weights of the features in each head",
        .shape = "H F",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_BIAS_PARAMETER(B_2, "b_2"),
        .help = "bias of each head",
        .shape = "H",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_BIAS_PARAMETER(C, "c"),
        .help = "how fast psi(x) = ln(|c x| + 1) grows",
        .shape = "1",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    {
        LOCUS_OWN_BIAS_PARAMETER(THRESHOLD, "threshold"),
        .help = "queries before it are normalised like the one at it",
        .shape = "1",
        .levels = LOCUS_BOTH,
        .required = 1,
    },
    LOCUS_PLACE_TENSORS,
    LOCUS_TENSOR_END,
};

const locus_scheme locus_scheme_fire = {
    .info =
        {
            .name = "fire",
            .title = "FIRE: functional interpolation of relative positions",
            .formula = "s = c q.k + f_h(psi(m-n) / psi(max(m, L)))",
            .citation = "Li et al. 2024, Functional Interpolation for Relative Positions Improves "
                        "Long Context Transformers",
            .rule = "psi(x) = ln(|c x| + 1), L = |threshold|, f_h = one hidden layer of max(0, .)",
            .scale = "1/sqrt(D)",
            .terms = LOCUS_TERM_CONTENT | LOCUS_TERM_BIAS,
            .traits = LOCUS_TRAIT_LEARNED | LOCUS_TRAIT_CAUSAL,
        },
    .options = options,
    .tensors = tensors,
    .default_scale = locus_scale_plain,
    .places = 1,
    .bias = bias,
    .bias_by_pair = 1,
    .bias_run = bias_run,
    .bias_grad = bias_grad,
    LOCUS_NO_TABLES,
};
