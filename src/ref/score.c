/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/ref.h"

#include <math.h>

#include "core/tensor.h"

/* With c the scale, r the row that serves distance m - n, and every term present only
 * where the scheme has it:
 *
 *     s(m, n) = c (q_m + u) . k_n  +  c (q_m + w) . RK[r]  +  c RQ[r] . k_n
 *               + position(m, n)  +  bias_dense(m, n)
 *
 *     position(m, n) = cls[0]                            with cls, where m = 0
 *                      cls[1]                            with cls, else where n = 0
 *                      c pos_q[m] . pos_k[n] + b_h(m-n)  otherwise
 *
 * q and k come here turned. A rotation that decays (xPos) multiplies column d of the
 * content product by exp((m - n) log_gain_d): the factors exp(m log_gain) of q and
 * exp(-n log_gain) of k would overflow on their own. */

void locus_ref_turn(const locus_call *call, double *row, int64_t p, int direction)
{
    for (int64_t pair = 0; pair < call->pairs; pair++) {
        double frequency, log_gain;
        int64_t first, second;
        call->scheme->turn(call, pair, &frequency, &log_gain);
        locus_pair_columns(call, pair, &first, &second);
        const double angle = (double)p * frequency;
        const double cosine = cos(angle), sine = direction * sin(angle);
        const double x = row[first], y = row[second];
        row[first] = x * cosine - y * sine;
        row[second] = y * cosine + x * sine;
    }
}

double *locus_ref_table_row(const ref_attention *at, const locus_tensors *from, size_t offset,
                            int64_t delta)
{
    const locus_tensor *table = locus_tensor_slot(from, offset);
    if (table == NULL) return NULL;
    const int64_t r = at->row[delta - at->call->least];
    return table->rank == 2 ? locus_ref_at(table, r, 0, 0) : locus_ref_at(table, at->h, r, 0);
}

/* Element of a [B or 1, H or 1, Tq, Tk] tensor for the pair (row i, key n). */
static int64_t pair_offset(const ref_attention *at, const locus_tensor *t, int64_t n)
{
    return at->b * locus_broadcast_stride(t, 0) + at->h * locus_broadcast_stride(t, 1) +
           at->i * t->stride[2] + n * t->stride[3];
}

static double pair_value(const ref_attention *at, const locus_tensor *t, int64_t n)
{
    const int64_t offset = pair_offset(at, t, n);
    if (t->dtype == LOCUS_F32) return (double)((const float *)t->data)[offset];
    if (t->dtype == LOCUS_F64) return ((const double *)t->data)[offset];
    return (double)((const uint8_t *)t->data)[offset];
}

int locus_ref_visible(const ref_attention *at, int64_t n)
{
    const locus_tensors *in = at->in;
    const int64_t m = at->call->query_offset + at->i;
    if (!locus_in_window(at->call, m - n)) return 0;
    if (locus_present(&in->key_mask) && locus_get(&in->key_mask, at->b, n, 0, 0) == 0.0) return 0;
    if (locus_present(&in->mask) && pair_value(at, &in->mask, n) == 0.0) return 0;
    return !locus_present(&in->bias_dense) || pair_value(at, &in->bias_dense, n) != -INFINITY;
}

/* Which row of `cls` replaces the position part of (m, n); -1: none does. */
static int cls_row(const ref_attention *at, int64_t m, int64_t n)
{
    if (!locus_present(&at->in->cls)) return -1;
    return m == 0 ? 0 : n == 0 ? 1 : -1;
}

static void position_parts(const ref_attention *at, int64_t m, int64_t n, const double *k,
                           double parts[REF_PARTS])
{
    const locus_call *call = at->call;
    const locus_tensors *in = at->in;
    const int reset = cls_row(at, m, n);
    if (reset >= 0) {
        parts[REF_RESET] = *(locus_ref_at(&in->cls, reset, 0, 0) + at->h);
        return;
    }
    if (locus_present(&in->pos_q)) {
        const double *pq = locus_ref_at(&in->pos_q, at->h, at->split ? at->i : m, 0);
        const double *pk = locus_ref_at(&in->pos_k, at->h, n, 0);
        parts[REF_POSITION_POSITION] = call->scale * locus_ref_dot(pq, pk, call->D);
        if (at->split) {
            parts[REF_CONTENT_POSITION] = call->scale * locus_ref_dot(at->q, pk, call->D);
            parts[REF_POSITION_CONTENT] = call->scale * locus_ref_dot(pq, k, call->D);
        }
    }
    if (at->bias != NULL) parts[REF_BIAS] = at->bias[at->h * at->distances + (m - n - call->least)];
}

static double content_product(const ref_attention *at, int64_t delta, const double *k)
{
    const int64_t D = at->call->D;
    if (at->gain == NULL) return locus_ref_dot(at->q, k, D);
    const double *gain = at->gain + (delta - at->call->least) * D;
    double sum = 0.0;
    for (int64_t d = 0; d < D; d++) sum += gain[d] * at->q[d] * k[d];
    return sum;
}

static void table_parts(const ref_attention *at, int64_t delta, const double *k,
                        double parts[REF_PARTS])
{
    const locus_tensors *in = at->in;
    const int64_t D = at->call->D;
    const double scale = at->call->scale;
    const double *rk = locus_ref_table_row(at, in, at->key_table, delta);
    const double *rq = locus_ref_table_row(at, in, at->query_table, delta);
    const double *w = locus_ref_at(&in->w, at->h, 0, 0);
    if (rk != NULL) parts[REF_CONTENT_POSITION] = scale * locus_ref_dot(at->q, rk, D);
    if (rk != NULL && w != NULL) parts[REF_W_POSITION] = scale * locus_ref_dot(w, rk, D);
    if (rq != NULL) parts[REF_POSITION_CONTENT] = scale * locus_ref_dot(rq, k, D);
}

/* c (q_m + u) . k_n + c (q_m + w) . RK[r], added up before they are multiplied: an infinity in k
 * or RK then has one sign, where the products with q and with u may have two. */
static double score_with_u_w(const ref_attention *at, int64_t delta, const double *k)
{
    const double *rk = locus_ref_table_row(at, at->in, at->key_table, delta);
    const double *u = locus_ref_at(&at->in->u, at->h, 0, 0);
    const double *w = locus_ref_at(&at->in->w, at->h, 0, 0);
    double sum = 0.0;
    for (int64_t d = 0; d < at->call->D; d++) {
        sum += (u != NULL ? at->q[d] + u[d] : at->q[d]) * k[d];
        if (rk != NULL) sum += (w != NULL ? at->q[d] + w[d] : at->q[d]) * rk[d];
    }
    return at->call->scale * sum;
}

double locus_ref_parts(const ref_attention *at, int64_t n, double parts[REF_PARTS])
{
    const locus_call *call = at->call;
    const int64_t m = call->query_offset + at->i, D = call->D;
    const double *k = at->k + n * D, *u = locus_ref_at(&at->in->u, at->h, 0, 0);
    const int sums = u != NULL || locus_present(&at->in->w);
    for (int part = 0; part < REF_PARTS; part++) parts[part] = 0.0;
    parts[REF_CONTENT] = call->scale * content_product(at, m - n, k);
    if (u != NULL) parts[REF_U_CONTENT] = call->scale * locus_ref_dot(u, k, D);
    table_parts(at, m - n, k, parts);
    position_parts(at, m, n, k, parts);
    if (locus_present(&at->in->bias_dense))
        parts[REF_DENSE] = pair_value(at, &at->in->bias_dense, n);
    double score = sums ? score_with_u_w(at, m - n, k) : 0.0;
    for (int part = sums ? REF_POSITION_CONTENT : 0; part < REF_PARTS; part++) score += parts[part];
    return score;
}

/* ---- gradient; g = c ds is what reaches every scaled product ---- */

/* d/dq = d/du = gain k,  d/dk = gain (q + u) */
static void content_grad(const ref_attention *at, int64_t delta, int64_t n, double g)
{
    const int64_t D = at->call->D;
    const double *k = at->k + n * D, *u = locus_ref_at(&at->in->u, at->h, 0, 0);
    double *dk = at->dk + n * D, *du = locus_ref_at(&at->grad->u, at->h, 0, 0);
    if (at->gain == NULL) {
        locus_ref_add(at->dq, g, k, D);
        locus_ref_add(du, g, k, D);
        locus_ref_add(dk, g, at->q, D);
        if (u != NULL) locus_ref_add(dk, g, u, D);
        return;
    }
    const double *gain = at->gain + (delta - at->call->least) * D;
    for (int64_t d = 0; d < D; d++) {
        at->dq[d] += g * gain[d] * k[d];
        dk[d] += g * gain[d] * at->q[d];
    }
}

/* d/dq = d/dw = RK[r],  d/dRK[r] = q + w;   d/dk = RQ[r],  d/dRQ[r] = k */
static void tables_grad(const ref_attention *at, int64_t delta, int64_t n, double g)
{
    const int64_t D = at->call->D;
    const double *rk = locus_ref_table_row(at, at->in, at->key_table, delta);
    const double *rq = locus_ref_table_row(at, at->in, at->query_table, delta);
    if (rk != NULL) {
        const double *w = locus_ref_at(&at->in->w, at->h, 0, 0);
        double *drk = locus_ref_table_row(at, at->grad, at->key_table, delta);
        locus_ref_add(at->dq, g, rk, D);
        locus_ref_add(locus_ref_at(&at->grad->w, at->h, 0, 0), g, rk, D);
        locus_ref_add(drk, g, at->q, D);
        if (w != NULL) locus_ref_add(drk, g, w, D);
    }
    if (rq != NULL) {
        locus_ref_add(at->dk + n * D, g, rq, D);
        locus_ref_add(locus_ref_table_row(at, at->grad, at->query_table, delta), g, at->k + n * D,
                      D);
    }
}

static void position_grad(const ref_attention *at, int64_t m, int64_t n, double ds)
{
    const locus_call *call = at->call;
    const locus_tensors *in = at->in, *grad = at->grad;
    const int reset = cls_row(at, m, n);
    if (reset >= 0) {
        double *dcls = locus_ref_at(&grad->cls, reset, 0, 0);
        if (dcls != NULL) dcls[at->h] += ds;
        return;
    }
    if (locus_present(&in->pos_q)) {
        const double g = call->scale * ds;
        locus_ref_add(locus_ref_at(&grad->pos_q, at->h, m, 0), g,
                      locus_ref_at(&in->pos_k, at->h, n, 0), call->D);
        locus_ref_add(locus_ref_at(&grad->pos_k, at->h, n, 0), g,
                      locus_ref_at(&in->pos_q, at->h, m, 0), call->D);
    }
    if (at->dbias != NULL) {
        const int64_t place = at->h * at->distances + (m - n - call->least);
        at->dbias[place] += ds;
        at->used[place] = 1;
    }
}

void locus_ref_score_grad(const ref_attention *at, int64_t n, double ds)
{
    const int64_t m = at->call->query_offset + at->i;
    const double g = at->call->scale * ds;
    content_grad(at, m - n, n, g);
    tables_grad(at, m - n, n, g);
    position_grad(at, m, n, ds);
    if (locus_present(&at->grad->bias_dense))
        ((double *)at->grad->bias_dense.data)[pair_offset(at, &at->grad->bias_dense, n)] += ds;
}
