/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "core/tensor.h"
#include "ref/ref.h"

/* Counted positions. For the keys t that query m sees, with g_t = sigma(c q_m . k_t):
 *     P_n = sum of g_t over n <= t <= m       p_n = min(R - 1, P_n), i = floor(p_n), w = p_n - i
 *     s_n += (1 - w) q . RK[i] + w q . RK[i + 1]
 * and backwards, with ds_n the gradient of s_n:
 *     dp_n = ds_n q . (RK[i + 1] - RK[i])     0 where p_n was cut
 *     dg_t = sum of dp_n over n <= t          d(c q . k_t) += dg_t g_t (1 - g_t) */

static double gate(const ref_attention *at, int64_t t)
{
    const int64_t D = at->call->D;
    return 1.0 / (1.0 + exp(-at->call->scale * locus_ref_dot(at->q, at->k + t * D, D)));
}

void locus_ref_count_row(const ref_attention *at)
{
    const int64_t Tk = at->call->Tk;
    double count = 0.0;
    if (at->place == NULL) return;
    for (int64_t t = Tk; t-- > 0;) {
        if (!locus_ref_visible(at, t)) continue;
        count += gate(at, t);
        at->place[t] = count;
        if (at->dplace != NULL) at->dplace[t] = 0.0;
    }
}

/* The rows that serve key n, and how far between them it stands; `cut`: beyond the last. */
typedef struct mixture {
    int64_t low, high;
    double share; /* of `high` */
    int cut;
} mixture;

static mixture mixture_at(const ref_attention *at, int64_t n)
{
    const int64_t last = at->call->R - 1;
    const double p = at->place[n];
    if (p >= (double)last) return (mixture){last, last, 0.0, 1};
    if (isnan(p)) return (mixture){0, 0, p, 0};
    const int64_t low = (int64_t)floor(p);
    return (mixture){low, low + 1, p - (double)low, 0};
}

static double *row_of(const ref_attention *at, const locus_tensors *from, int64_t r)
{
    const locus_tensor *table = locus_tensor_slot(from, at->key_table);
    if (table == NULL) return NULL;
    return table->rank == 2 ? locus_ref_at(table, r, 0, 0) : locus_ref_at(table, at->h, r, 0);
}

double locus_ref_counted_part(const ref_attention *at, int64_t n)
{
    const int64_t D = at->call->D;
    const mixture mix = mixture_at(at, n);
    const double low = locus_ref_dot(at->q, row_of(at, at->in, mix.low), D);
    if (mix.share == 0.0) return low;
    const double high = locus_ref_dot(at->q, row_of(at, at->in, mix.high), D);
    return (1.0 - mix.share) * low + mix.share * high;
}

void locus_ref_counted_grad(const ref_attention *at, int64_t n, double ds)
{
    const int64_t D = at->call->D;
    const mixture mix = mixture_at(at, n);
    const double *low = row_of(at, at->in, mix.low), *high = row_of(at, at->in, mix.high);
    locus_ref_add(at->dq, (1.0 - mix.share) * ds, low, D);
    locus_ref_add(at->dq, mix.share * ds, high, D);
    locus_ref_add(row_of(at, at->grad, mix.low), (1.0 - mix.share) * ds, at->q, D);
    locus_ref_add(row_of(at, at->grad, mix.high), mix.share * ds, at->q, D);
    if (!mix.cut)
        at->dplace[n] += ds * (locus_ref_dot(at->q, high, D) - locus_ref_dot(at->q, low, D));
}

void locus_ref_count_grad(const ref_attention *at)
{
    const locus_call *call = at->call;
    double total = 0.0;
    if (at->place == NULL) return;
    for (int64_t t = 0; t < call->Tk; t++) {
        if (!at->visible[t]) continue;
        total += at->dplace[t];
        const double g = gate(at, t), dlogit = call->scale * total * g * (1.0 - g);
        if (total == 0.0) continue;
        locus_ref_add(at->dq, dlogit, at->k + t * call->D, call->D);
        locus_ref_add(at->dk + t * call->D, dlogit, at->q, call->D);
    }
}
