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

/* ---- closed form ----
 *
 * f_h is linear between the kinks z = -b_1[f] / w_1[f], of which there are at most F: over a run of
 * keys it is a + b psi(m - n) / q, piece by piece. Numbers of a call, made once: psi and its
 * derivative by c at distances 0 .. N - 1; the kinks above 0 in order, and a point of every piece;
 * for each head a and b of every piece. */

typedef struct pieces {
    int64_t distances, count; /* N; pieces */
    double *psi, *by_slope;   /* [N] */
    double *kinks, *middles;  /* [F], [F + 1] */
    double *a, *b;            /* [H][F + 1] */
} pieces;

/* The first two numbers are N and how many pieces there are: a sequence of a ragged batch reads
 * those of the whole. */
static pieces pieces_at(const locus_call *call, const locus_tensors *in, const double *numbers)
{
    const int64_t F = IN(in, W_1)->shape[0], N = (int64_t)numbers[0];
    pieces p = {.distances = N,
                .count = (int64_t)numbers[1],
                .psi = (double *)(uintptr_t)numbers + 2};
    p.by_slope = p.psi + N;
    p.kinks = p.by_slope + N;
    p.middles = p.kinks + F;
    p.a = p.middles + F + 1;
    p.b = p.a + call->H * (F + 1);
    return p;
}

static int64_t distances_of(const locus_call *call) { return call->most >= 0 ? call->most + 1 : 0; }

static int64_t shared_count(const locus_call *call, const locus_tensors *shapes)
{
    const int64_t F = IN(shapes, W_1)->shape[0], N = distances_of(call);
    return 2 + 2 * N + 2 * F + 1 + 2 * call->H * (F + 1);
}

static int64_t find_kinks(const locus_tensors *in, double *kinks)
{
    int64_t count = 0;
    for (int64_t i = 0; i < IN(in, W_1)->shape[0]; i++) {
        const double kink =
            -locus_get(IN(in, B_1), i, 0, 0, 0) / locus_get(IN(in, W_1), i, 0, 0, 0);
        if (!(kink > 0.0) || isinf(kink)) continue;
        int64_t at = count++;
        for (; at > 0 && kinks[at - 1] > kink; at--) kinks[at] = kinks[at - 1];
        kinks[at] = kink;
    }
    return count;
}

/* a and b of the piece that z lies in. */
static void line_at(const locus_tensors *in, int64_t head, double z, double *a, double *b)
{
    *a = locus_get(IN(in, B_2), head, 0, 0, 0);
    *b = 0.0;
    for (int64_t i = 0; i < IN(in, W_1)->shape[0]; i++) {
        const double w = locus_get(IN(in, W_1), i, 0, 0, 0),
                     b_1 = locus_get(IN(in, B_1), i, 0, 0, 0);
        const double w_2 = locus_get(IN(in, W_2), head, i, 0, 0);
        if (w * z + b_1 <= 0.0) continue;
        *a += w_2 * b_1;
        *b += w_2 * w;
    }
}

static void share(const locus_call *call, const locus_tensors *in, double *numbers)
{
    numbers[0] = (double)distances_of(call);
    const pieces p = pieces_at(call, in, numbers);
    const double slope = locus_get(IN(in, C), 0, 0, 0, 0);
    const int64_t F = IN(in, W_1)->shape[0];
    for (int64_t x = 0; x < p.distances; x++) {
        p.psi[x] = psi(slope, (double)x);
        p.by_slope[x] = psi_by_slope(slope, (double)x);
    }
    const int64_t kinks = find_kinks(in, p.kinks);
    numbers[1] = (double)(kinks + 1);
    for (int64_t j = 0; j <= kinks; j++) {
        const double low = j > 0 ? p.kinks[j - 1] : 0.0, high = j < kinks ? p.kinks[j] : low + 2.0;
        p.middles[j] = 0.5 * (low + high);
        for (int64_t h = 0; h < call->H; h++)
            line_at(in, h, p.middles[j], &p.a[h * (F + 1) + j], &p.b[h * (F + 1) + j]);
    }
}

/* A run of keys cut into its pieces: distances from `distance` down. */
typedef struct walk {
    pieces p;
    fire f;
    int64_t distance, count; /* of the run */
    int64_t piece, at, end;  /* the piece of keys at .. end - 1 */
} walk;

/* 0: the run leaves the numbers, or some are NaN or infinite: pair by pair, then. */
static int begin_walk(const locus_call *call, const locus_tensors *in, const double *numbers,
                      int64_t m, int64_t n, int64_t count, walk *w)
{
    *w = (walk){.p = pieces_at(call, in, numbers),
                .f = at_query(in, m + call->key_offset),
                .distance = m - n,
                .count = count};
    const double *psis = w->p.psi;
    if (m - n >= w->p.distances || m - n - (count - 1) < 0) return 0;
    if (!isfinite(w->f.norm) || !isfinite(psis[w->p.distances - 1])) return 0;
    w->piece = w->p.count - 1;
    return 1;
}

/* The next piece; 0: there is none. */
static int next_piece(walk *w)
{
    const double *psis = w->p.psi;
    w->at = w->end;
    if (w->at >= w->count) return 0;
    const int64_t x = w->distance - w->at, least = w->distance - (w->count - 1);
    while (w->piece > 0 && psis[x] <= w->p.kinks[w->piece - 1] * w->f.norm) w->piece--;
    const double kink = w->piece > 0 ? w->p.kinks[w->piece - 1] * w->f.norm : -1.0;
    int64_t low = least - 1, high = x; /* psi(high) > kink >= psi(low) */
    if (psis[least] > kink) low = high = least;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (psis[middle] > kink)
            high = middle;
        else
            low = middle;
    }
    w->end = w->distance - high + 1;
    return 1;
}

static void shared_run(const locus_call *call, const locus_tensors *in, const double *numbers,
                       int64_t head, int64_t m, int64_t n, int64_t count, float *values)
{
    walk w;
    if (!begin_walk(call, in, numbers, m, n, count, &w)) {
        bias_run(call, in, head, m, n, count, values);
        return;
    }
    while (next_piece(&w)) {
        const int64_t line = head * (w.f.features + 1) + w.piece;
        const double a = w.p.a[line], b = w.p.b[line] / w.f.norm;
        const double *psis = w.p.psi + w.distance;
        for (int64_t i = w.at; i < w.end; i++) values[i] = (float)(a + b * psis[-i]);
    }
}

/* Of one piece: sums of ds, of ds z, and of ds dpsi/dc. */
static void pull_piece(const walk *w, const locus_tensors *in, int64_t head, int64_t m,
                       const double sums[3], const locus_tensors *grad)
{
    const fire *f = &w->f;
    const double b = w->p.b[head * (f->features + 1) + w->piece], middle = w->p.middles[w->piece];
    for (int64_t i = 0; i < f->features; i++) {
        const double w_1 = locus_get(f->w_1, i, 0, 0, 0), b_1 = locus_get(f->b_1, i, 0, 0, 0);
        const double w_2 = locus_get(f->w_2, head, i, 0, 0);
        if (w_1 * middle + b_1 <= 0.0) continue;
        add(grad, W_2, head * f->features + i, w_1 * sums[1] + b_1 * sums[0]);
        add(grad, W_1, i, w_2 * sums[1]);
        add(grad, B_1, i, w_2 * sums[0]);
    }
    add(grad, B_2, head, sums[0]);
    add(grad, C, 0, b * (sums[2] - sums[1] * psi_by_slope(f->slope, f->reach)) / f->norm);
    const double threshold = locus_get(IN(in, THRESHOLD), 0, 0, 0, 0);
    if (fabs(threshold) <= (double)m) return;
    const double by_reach = fabs(f->slope) / (fabs(f->slope * f->reach) + 1.0);
    add(grad, THRESHOLD, 0, -b * sums[1] * copysign(by_reach, threshold) / f->norm);
}

static void shared_grad(const locus_call *call, const locus_tensors *in, const double *numbers,
                        int64_t head, int64_t m, int64_t n, int64_t count, const double *ds,
                        const locus_tensors *grad)
{
    walk w;
    if (!begin_walk(call, in, numbers, m, n, count, &w)) {
        bias_grad(call, in, head, m, n, count, ds, grad);
        return;
    }
    while (next_piece(&w)) {
        const double *psis = w.p.psi + w.distance, *by_slope = w.p.by_slope + w.distance;
        double sums[3] = {0.0, 0.0, 0.0};
        for (int64_t i = w.at; i < w.end; i++) {
            sums[0] += ds[i];
            sums[1] += ds[i] * psis[-i];
            sums[2] += ds[i] * by_slope[-i];
        }
        sums[1] /= w.f.norm;
        pull_piece(&w, in, head, m + call->key_offset, sums, grad);
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
    .shared_count = shared_count,
    .share = share,
    .shared_run = shared_run,
    .shared_grad = shared_grad,
    LOCUS_NO_TABLES,
};
