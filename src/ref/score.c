/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/ref.h"

#include <math.h>

#include "core/tensor.h"

/* With c the scale, r the row that serves distance m - n, and every term present only
 * where the scheme has it:
 *
 *     s(m, n) = cap(c (q_m + u) . k_n  +  c (q_m + w) . RK[r]  +  c RQ[r] . k_n
 *                   + position(m, n))  +  bias_dense(m, n)
 *
 *     position(m, n) = cls[0]                             with cls, where m = 0
 *                      cls[1]                             with cls, else where n = 0
 *                      c pos_q[m] . pos_k[n] + gate_m b_h(m, n)  otherwise
 *
 * A position query p_m takes the place of c (q_m + w) before RK; where positions are counted, that
 * term is counted.c's.
 *     cap(x) = C tanh(x / C) with a softcap C, else x
 *
 * q and k come here turned. A rotation that decays (xPos) multiplies column d of the
 * content product by exp((m - n) log_gain_d), m and n being the positions that rotations
 * see: the factors exp(m log_gain) of q and exp(-n log_gain) of k would overflow on their
 * own. */

void locus_ref_turn(const locus_call *call, double *row, int is_key, int64_t batch, int64_t number,
                    int64_t position, int direction)
{
    for (int64_t pair = 0; pair < call->pairs; pair++) {
        double frequency, log_gain;
        int64_t first, second;
        const int64_t axis = pair / (call->pairs / call->options.axes);
        const int64_t p = locus_call_position(call, is_key, batch, number, axis, position);
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
    const int64_t r = at->call->placed ? at->call->scheme->row(at->call, delta)
                                       : at->row[delta - at->call->least];
    if (r < 0) return NULL;
    return table->rank == 2 ? locus_ref_at(table, r, 0, 0) : locus_ref_at(table, at->h, r, 0);
}

/* The same of the second table of two axes; key n. */
static double *second_row(const ref_attention *at, const locus_tensors *from, int64_t n)
{
    const locus_scheme *scheme = at->call->scheme;
    const locus_tensor *table =
        scheme->second_table != 0 ? locus_tensor_slot(from, scheme->second_table) : NULL;
    if (table == NULL) return NULL;
    const int64_t r = scheme->second_row(at->call, locus_ref_distance(at, n, 1));
    return table->rank == 2 ? locus_ref_at(table, r, 0, 0) : locus_ref_at(table, at->h, r, 0);
}

int64_t locus_ref_distance(const ref_attention *at, int64_t n, int axis)
{
    const locus_call *call = at->call;
    const int64_t m = locus_ref_query_position(at), key = locus_ref_key_position(at, n);
    if (!call->placed) return m - key;
    return locus_call_place(call, 0, at->b, at->i, axis, m) -
           locus_call_place(call, 1, at->b, n, axis, key);
}

double *locus_ref_gate(const ref_attention *at, const locus_tensors *from)
{
    if (!locus_present(&from->gate)) return NULL;
    return (double *)from->gate.data + locus_offset(&from->gate, at->b, at->h, at->i, 0);
}

/* Element of a [B or 1, H or 1, Tq, Tk] tensor for the pair (row i, key n). */
static int64_t pair_offset(const ref_attention *at, const locus_tensor *t, int64_t n)
{
    return at->b * locus_broadcast_stride(t, 0) + at->h * locus_broadcast_stride(t, 1) +
           at->i * t->stride[2] + n * t->stride[3];
}

double locus_ref_sink(const ref_attention *at)
{
    const double *sink = locus_ref_at(&at->in->sink, 0, 0, 0);
    return sink != NULL ? sink[at->h] : -INFINITY;
}

/* Which row of `cls` replaces the position part of (m, n); -1: none does. */
static int cls_row(const ref_attention *at, int64_t m, int64_t n)
{
    if (!locus_present(&at->in->cls)) return -1;
    const int64_t origin = at->call->key_offset;
    const int64_t rows = at->in->cls.shape[0];
    if (m + origin == 0) return n + origin == 0 && rows > 2 ? 2 : 0;
    return n + origin == 0 ? 1 : -1;
}

/* The two positions that a bias by pair is asked at, which count from key row 0. */
static void placed_pair(const ref_attention *at, int64_t n, int64_t *m, int64_t *key)
{
    const locus_call *call = at->call;
    if (!call->placed) return;
    *m = locus_call_place(call, 0, at->b, at->i, 0, *m) - call->key_offset;
    *key = locus_call_place(call, 1, at->b, n, 0, *key) - call->key_offset;
}

static double bias_of(const ref_attention *at, int64_t m, int64_t key, int64_t n)
{
    const locus_call *call = at->call;
    if (at->bias != NULL) return at->bias[at->h * at->distances + (m - key - call->least)];
    if (call->scheme->bias == NULL) return 0.0;
    placed_pair(at, n, &m, &key);
    return call->scheme->bias(call, at->in, at->h, m, key);
}

static void position_parts(const ref_attention *at, int64_t m, int64_t n, int64_t number,
                           double parts[REF_PARTS])
{
    const double *k = at->k + number * at->call->D;
    const locus_call *call = at->call;
    const locus_tensors *in = at->in;
    const int reset = cls_row(at, m, n);
    if (reset >= 0) {
        parts[REF_RESET] = *(locus_ref_at(&in->cls, reset, 0, 0) + at->h);
        return;
    }
    if (locus_present(&in->pos_q)) {
        const int64_t row = at->split ? at->i : m + call->key_offset;
        const double *pq = locus_ref_at(&in->pos_q, at->h, row, 0);
        const double *pk = locus_ref_at(&in->pos_k, at->h, n + call->key_offset, 0);
        parts[REF_POSITION_POSITION] = call->scale * locus_ref_dot(pq, pk, call->D);
        if (at->split) {
            parts[REF_CONTENT_POSITION] = call->scale * locus_ref_dot(at->q, pk, call->D);
            parts[REF_POSITION_CONTENT] = call->scale * locus_ref_dot(pq, k, call->D);
        }
    }
    parts[REF_BIAS] = bias_of(at, m, n, number);
    const double *gate = locus_ref_gate(at, in);
    if (gate != NULL) parts[REF_BIAS] *= *gate;
}

/* How far apart the rotations of a pair are. */
static double turned_distance(const ref_attention *at, int64_t n)
{
    const locus_call *call = at->call;
    const int64_t m = locus_ref_query_position(at), key = locus_ref_key_position(at, n);
    return (double)(locus_call_position(call, 0, at->b, at->i, 0, m) -
                    locus_call_position(call, 1, at->b, n, 0, key));
}

/* What channel d of a pair's product is multiplied with. */
static double gain_of(const ref_attention *at, int64_t n, int64_t d)
{
    const int64_t D = at->call->D;
    if (at->decays == NULL) return exp(turned_distance(at, n) * at->log_gain[d]);
    return exp(at->decays[locus_ref_gate_row(at, -1) * D + d] -
               at->decays[locus_ref_gate_row(at, n) * D + d]);
}

static double content_product(const ref_attention *at, int64_t n)
{
    const int64_t D = at->call->D;
    const double *k = at->k + n * D;
    if (at->log_gain == NULL && at->decays == NULL) return locus_ref_dot(at->q, k, D);
    double sum = 0.0;
    for (int64_t d = 0; d < D; d++) sum += gain_of(at, n, d) * at->q[d] * k[d];
    return sum;
}

static void table_parts(const ref_attention *at, int64_t delta, int64_t n, double parts[REF_PARTS])
{
    const locus_tensors *in = at->in;
    const int64_t D = at->call->D;
    const double scale = at->call->scale, *k = at->k + n * D;
    if (at->call->scheme->counts) {
        parts[REF_CONTENT_POSITION] = locus_ref_counted_part(at, n);
        return;
    }
    const double *own = locus_ref_at(&in->pos_query, at->b, at->h, at->i);
    const double *rk = locus_ref_table_row(at, in, at->key_table, delta);
    const double *rq = locus_ref_table_row(at, in, at->query_table, delta);
    const double *w = locus_ref_at(&in->w, at->h, 0, 0);
    const double *second = second_row(at, in, n);
    if (second != NULL)
        parts[REF_CONTENT_POSITION] = locus_ref_dot(at->q, rk, D) + locus_ref_dot(at->q, second, D);
    else if (rk != NULL && own != NULL)
        parts[REF_CONTENT_POSITION] = locus_ref_dot(own, rk, in->pos_query.shape[3]);
    else if (rk != NULL)
        parts[REF_CONTENT_POSITION] = scale * locus_ref_dot(at->q, rk, D);
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

/* The parts that the softcap covers; their sum. */
static double capped_parts(const ref_attention *at, int64_t n, double parts[REF_PARTS])
{
    const locus_call *call = at->call;
    const int64_t m = locus_ref_query_position(at), key = locus_ref_key_position(at, n);
    const int64_t D = call->D;
    const double *k = at->k + n * D, *u = locus_ref_at(&at->in->u, at->h, 0, 0);
    const int sums = u != NULL || locus_present(&at->in->w);
    for (int part = 0; part < REF_PARTS; part++) parts[part] = 0.0;
    parts[REF_CONTENT] = call->scale * content_product(at, n);
    if (u != NULL) parts[REF_U_CONTENT] = call->scale * locus_ref_dot(u, k, D);
    const int64_t delta = locus_ref_distance(at, n, 0);
    table_parts(at, delta, n, parts);
    position_parts(at, m, key, n, parts);
    double sum = sums ? score_with_u_w(at, delta, k) : 0.0;
    for (int part = sums ? REF_POSITION_CONTENT : 0; part < REF_SOFTCAP; part++) sum += parts[part];
    return sum;
}

double locus_ref_parts(const ref_attention *at, int64_t n, double parts[REF_PARTS])
{
    const double sum = capped_parts(at, n, parts);
    if (locus_present(&at->in->bias_dense))
        parts[REF_DENSE] = locus_ref_pair_value(at, &at->in->bias_dense, n);
    const double cap = at->call->softcap;
    const double capped = cap > 0.0 ? cap * tanh(sum / cap) : sum;
    parts[REF_SOFTCAP] = cap > 0.0 ? capped - sum : 0.0;
    if (at->gates != NULL)
        parts[REF_GATES] =
            at->gates[locus_ref_gate_row(at, -1)] - at->gates[locus_ref_gate_row(at, n)];
    return capped + parts[REF_GATES] + parts[REF_DENSE];
}

/* ---- gradient; g = c ds is what reaches every scaled product ---- */

/* d/dq = d/du = gain k,  d/dk = gain (q + u) */
static void content_grad(const ref_attention *at, int64_t n, double g)
{
    const int64_t D = at->call->D;
    const double *k = at->k + n * D, *u = locus_ref_at(&at->in->u, at->h, 0, 0);
    double *dk = at->dk + n * D, *du = locus_ref_at(&at->grad->u, at->h, 0, 0);
    if (at->log_gain == NULL && at->decays == NULL) {
        locus_ref_add(at->dq, g, k, D);
        locus_ref_add(du, g, k, D);
        locus_ref_add(dk, g, at->q, D);
        if (u != NULL) locus_ref_add(dk, g, u, D);
        return;
    }
    for (int64_t d = 0; d < D; d++) {
        const double gain = gain_of(at, n, d), ds = g * gain * at->q[d] * k[d];
        at->dq[d] += g * gain * k[d];
        dk[d] += g * gain * at->q[d];
        if (at->ddecays == NULL) continue;
        at->ddecays[locus_ref_gate_row(at, -1) * D + d] += ds;
        at->ddecays[locus_ref_gate_row(at, n) * D + d] -= ds;
    }
}

/* Of two axes: d/dq = RK[r] + RK2[r2], unscaled. */
static void two_tables_grad(const ref_attention *at, int64_t n, double ds)
{
    const int64_t D = at->call->D, delta = locus_ref_distance(at, n, 0);
    locus_ref_add(at->dq, ds, locus_ref_table_row(at, at->in, at->key_table, delta), D);
    locus_ref_add(at->dq, ds, second_row(at, at->in, n), D);
    locus_ref_add(locus_ref_table_row(at, at->grad, at->key_table, delta), ds, at->q, D);
    locus_ref_add(second_row(at, at->grad, n), ds, at->q, D);
}

/* d/dp = RK[r],  d/dRK[r] = p */
static void pos_query_grad(const ref_attention *at, int64_t delta, double ds)
{
    const int64_t F = at->in->pos_query.shape[3];
    const double *rk = locus_ref_table_row(at, at->in, at->key_table, delta);
    const double *own = locus_ref_at(&at->in->pos_query, at->b, at->h, at->i);
    if (rk == NULL) return;
    locus_ref_add(locus_ref_at(&at->grad->pos_query, at->b, at->h, at->i), ds, rk, F);
    locus_ref_add(locus_ref_table_row(at, at->grad, at->key_table, delta), ds, own, F);
}

/* d/dq = d/dw = RK[r],  d/dRK[r] = q + w;   d/dk = RQ[r],  d/dRQ[r] = k */
static void tables_grad(const ref_attention *at, int64_t delta, int64_t n, double g)
{
    const int64_t D = at->call->D;
    const int own = locus_present(&at->in->pos_query);
    const double *rk = locus_ref_table_row(at, at->in, at->key_table, delta);
    const double *rq = locus_ref_table_row(at, at->in, at->query_table, delta);
    if (rk != NULL && !own) {
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

static void bias_grad(const ref_attention *at, int64_t m, int64_t key, int64_t n, double ds)
{
    const locus_call *call = at->call;
    const double *gate = locus_ref_gate(at, at->in);
    double *dgate = locus_ref_gate(at, at->grad);
    if (dgate != NULL) *dgate += ds * bias_of(at, m, key, n);
    if (gate != NULL) ds *= *gate;
    if (at->dbias != NULL) {
        const int64_t place = at->h * at->distances + (m - key - call->least);
        at->dbias[place] += ds;
        at->used[place] = 1;
    } else if (call->scheme->bias_grad != NULL) {
        placed_pair(at, n, &m, &key);
        call->scheme->bias_grad(call, at->in, at->h, m, key, 1, &ds, at->grad);
    }
}

static void position_grad(const ref_attention *at, int64_t m, int64_t n, int64_t number, double ds)
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
        const int64_t q_row = m + call->key_offset, k_row = n + call->key_offset;
        locus_ref_add(locus_ref_at(&grad->pos_q, at->h, q_row, 0), g,
                      locus_ref_at(&in->pos_k, at->h, k_row, 0), call->D);
        locus_ref_add(locus_ref_at(&grad->pos_k, at->h, k_row, 0), g,
                      locus_ref_at(&in->pos_q, at->h, q_row, 0), call->D);
    }
    bias_grad(at, m, n, number, ds);
}

/* d cap(x) / dx = 1 - tanh(x / C)^2 */
static double cap_slope(const ref_attention *at, int64_t n)
{
    const double cap = at->call->softcap;
    double parts[REF_PARTS];
    if (!(cap > 0.0)) return 1.0;
    const double t = tanh(capped_parts(at, n, parts) / cap);
    return 1.0 - t * t;
}

void locus_ref_score_grad(const ref_attention *at, int64_t n, double ds)
{
    const int64_t m = locus_ref_query_position(at), key = locus_ref_key_position(at, n);
    const int64_t delta = locus_ref_distance(at, n, 0);
    const double inner = ds * cap_slope(at, n), g = at->call->scale * inner;
    content_grad(at, n, g);
    if (at->call->scheme->second_table != 0)
        two_tables_grad(at, n, inner);
    else if (at->call->scheme->counts)
        locus_ref_counted_grad(at, n, inner);
    else
        tables_grad(at, delta, n, g);
    if (locus_present(&at->in->pos_query)) pos_query_grad(at, delta, inner);
    position_grad(at, m, key, n, inner);
    if (at->dgates != NULL) {
        at->dgates[locus_ref_gate_row(at, -1)] += ds;
        at->dgates[locus_ref_gate_row(at, n)] -= ds;
    }
    if (locus_present(&at->grad->bias_dense))
        ((double *)at->grad->bias_dense.data)[pair_offset(at, &at->grad->bias_dense, n)] += ds;
}
