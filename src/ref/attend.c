/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/ref.h"

#include <math.h>
#include <string.h>

#include "core/random.h"
#include "core/tensor.h"

/* For every query, over the keys n that it sees:
 *     a_n   = exp(s_n) / sum exp(s)            lse = ln sum exp(s)
 *     out   = sum a_n z_n (v_n + RV[r])        z: dropout's factor, 1 without dropout
 * and backwards:
 *     da_n  = z_n dout . (v_n + RV[r])         dv_n = dRV[r] = a_n z_n dout
 *     ds_n  = a_n (da_n - sum a da)            on to locus_ref_score_grad
 * A dropped pair (z = 0) contributes nothing, whatever its weight and value: NaN too. A query whose
 * lse is NaN has out NaN, even where all its pairs are dropped.
 * A logit of -inf has weight 0, also next to a NaN; ds is 0 where the weight is 0.
 * A query that sees no key, or nothing but logits of -inf: out 0, lse -inf, no gradient. */

/* ---- what the hooks say about each distance ---- */

static void ask_gain(ref_attention *at)
{
    const locus_call *call = at->call;
    for (int64_t x = 0; x < at->distances; x++) {
        double *gain = at->gain + x * call->D;
        for (int64_t d = 0; d < call->D; d++) gain[d] = 1.0;
        for (int64_t pair = 0; pair < call->pairs; pair++) {
            double frequency, log_gain;
            int64_t first, second;
            call->scheme->turn(call, pair, &frequency, &log_gain);
            locus_pair_columns(call, pair, &first, &second);
            gain[first] = gain[second] = exp((double)(call->least + x) * log_gain);
        }
    }
}

static int turn_decays(const locus_call *call)
{
    for (int64_t pair = 0; pair < call->pairs; pair++) {
        double frequency, log_gain;
        call->scheme->turn(call, pair, &frequency, &log_gain);
        if (log_gain != 0.0) return 1;
    }
    return 0;
}

static void ask_hooks(ref_attention *at, ref_memory *memory)
{
    const locus_call *call = at->call;
    const locus_scheme *scheme = call->scheme;
    const int64_t distances = at->distances;
    if (scheme->row != NULL) {
        at->row = locus_ref_take(memory, distances, 1, sizeof(int64_t));
        for (int64_t x = 0; at->row != NULL && x < distances; x++)
            at->row[x] = scheme->row(call, call->least + x);
    }
    if (scheme->bias != NULL) {
        at->bias = locus_ref_take(memory, call->H, distances, sizeof(double));
        for (int64_t h = 0; at->bias != NULL && h < call->H; h++)
            for (int64_t x = 0; x < distances; x++)
                at->bias[h * distances + x] = scheme->bias(call, at->in, h, call->least + x);
    }
    if (scheme->bias_grad != NULL) {
        at->dbias = locus_ref_take(memory, call->H, distances, sizeof(double));
        at->used = locus_ref_take(memory, call->H, distances, sizeof(uint8_t));
    }
    if (turn_decays(call)) {
        at->gain = locus_ref_take(memory, distances, call->D, sizeof(double));
        if (at->gain != NULL) ask_gain(at);
    }
}

/* The fold: db_h(delta) is the sum of ds over all pairs at that distance. */
static void tell_bias_grad(const ref_attention *at)
{
    const locus_call *call = at->call;
    for (int64_t h = 0; at->dbias != NULL && h < call->H; h++)
        for (int64_t x = 0; x < at->distances; x++) {
            const int64_t place = h * at->distances + x;
            if (at->used[place])
                call->scheme->bias_grad(call, at->in, h, call->least + x, at->dbias[place],
                                        at->grad);
        }
}

/* ---- one query row ---- */

static void load_query(ref_attention *at)
{
    const locus_call *call = at->call;
    const double *q = locus_ref_at(&at->in->q, at->b, at->h, at->i);
    for (int64_t d = 0; d < call->D; d++) at->q[d] = q[d];
    locus_ref_turn(call, at->q, call->query_offset + at->i, 1);
}

/* Fill score, visible and keep; the largest visible score (NaN if one is NaN). */
static double score_row(ref_attention *at)
{
    const locus_call *call = at->call;
    const uint32_t threshold = locus_dropout_threshold(call->dropout);
    double parts[REF_PARTS], largest = -INFINITY;
    for (int64_t n = 0; n < call->Tk; n++) {
        at->visible[n] = (uint8_t)locus_ref_visible(at, n);
        if (!at->visible[n]) continue;
        at->score[n] = locus_ref_parts(at, n, parts);
        at->keep[n] = 1.0;
        if (call->dropout > 0.0)
            at->keep[n] = locus_dropout_keeps(call->dropout_seed, threshold, (uint32_t)at->b,
                                              (uint32_t)at->h, (uint32_t)at->i, (uint32_t)n)
                              ? 1.0 / (1.0 - call->dropout)
                              : 0.0;
        if (at->score[n] > largest || isnan(at->score[n])) largest = at->score[n];
    }
    return largest;
}

/* Fill weight; returns lse. */
static double softmax_row(ref_attention *at, double largest)
{
    const int64_t Tk = at->call->Tk;
    double sum = 0.0;
    if (largest == -INFINITY) return -INFINITY;
    for (int64_t n = 0; n < Tk; n++) {
        if (!at->visible[n]) continue;
        at->weight[n] = at->score[n] == -INFINITY ? 0.0 : exp(at->score[n] - largest);
        sum += at->weight[n];
    }
    for (int64_t n = 0; n < Tk; n++)
        if (at->visible[n] && at->score[n] != -INFINITY) at->weight[n] /= sum;
    return largest + log(sum);
}

static double *value_row(const ref_attention *at, const locus_tensors *from, int64_t n)
{
    const locus_call *call = at->call;
    return locus_ref_at(&from->v, at->b, at->h / (call->H / call->Hk), n);
}

static void output_row(const ref_attention *at, double *out)
{
    const locus_call *call = at->call;
    const int64_t m = call->query_offset + at->i;
    for (int64_t n = 0; n < call->Tk; n++) {
        if (!at->visible[n] || at->keep[n] == 0.0) continue;
        const double a = at->keep[n] * at->weight[n];
        const double *rv = locus_ref_table_row(at, at->in, at->value_table, m - n);
        locus_ref_add(out, a, value_row(at, at->in, n), call->Dv);
        if (rv != NULL) locus_ref_add(out, a, rv, call->Dv);
    }
}

static void output_row_grad(const ref_attention *at, const double *dout)
{
    const locus_call *call = at->call;
    const int64_t m = call->query_offset + at->i, Dv = call->Dv;
    double mean = 0.0; /* sum a da */
    for (int64_t n = 0; n < call->Tk; n++) {
        if (!at->visible[n]) continue;
        const double *rv = locus_ref_table_row(at, at->in, at->value_table, m - n);
        double product = locus_ref_dot(dout, value_row(at, at->in, n), Dv);
        if (rv != NULL) product += locus_ref_dot(dout, rv, Dv);
        at->dweight[n] = at->keep[n] == 0.0 ? 0.0 : at->keep[n] * product;
        mean += at->weight[n] * at->dweight[n];
        if (at->keep[n] == 0.0) continue;
        const double az = at->weight[n] * at->keep[n];
        locus_ref_add(value_row(at, at->grad, n), az, dout, Dv);
        locus_ref_add(locus_ref_table_row(at, at->grad, at->value_table, m - n), az, dout, Dv);
    }
    for (int64_t n = 0; n < call->Tk; n++) {
        if (!at->visible[n]) continue;
        const double ds = at->weight[n] == 0.0 ? 0.0 : at->weight[n] * (at->dweight[n] - mean);
        locus_ref_score_grad(at, n, ds);
    }
}

static void attend_row(ref_attention *at, const locus_results *results, const locus_tensor *dout)
{
    const locus_call *call = at->call;
    double *out = locus_ref_at(&results->out, at->b, at->h, at->i);
    load_query(at);
    const double lse = softmax_row(at, score_row(at));
    ((double *)results->lse.data)[locus_offset(&results->lse, at->b, at->h, at->i, 0)] = lse;
    for (int64_t d = 0; d < call->Dv; d++) out[d] = isnan(lse) ? lse : 0.0;
    if (lse == -INFINITY) return;
    output_row(at, out);
    if (at->grad == NULL) return;
    memset(at->dq, 0, (size_t)call->D * sizeof *at->dq);
    output_row_grad(at, locus_ref_at(dout, at->b, at->h, at->i));
    locus_ref_turn(call, at->dq, call->query_offset + at->i, -1);
    locus_ref_add(locus_ref_at(&at->grad->q, at->b, at->h, at->i), 1.0, at->dq, call->D);
}

/* ---- one head ---- */

static void attend_head(ref_attention *at, const locus_results *results, const locus_tensor *dout)
{
    const locus_call *call = at->call;
    const int64_t kv_head = at->h / (call->H / call->Hk);
    for (int64_t n = 0; n < call->Tk; n++) {
        double *k = at->k + n * call->D;
        memcpy(k, locus_ref_at(&at->in->k, at->b, kv_head, n), (size_t)call->D * sizeof *k);
        locus_ref_turn(call, k, n, 1);
    }
    memset(at->dk, 0, (size_t)(call->Tk * call->D) * sizeof *at->dk);
    for (at->i = 0; at->i < call->Tq; at->i++) attend_row(at, results, dout);
    for (int64_t n = 0; at->grad != NULL && n < call->Tk; n++) {
        double *dk = at->dk + n * call->D;
        locus_ref_turn(call, dk, n, -1);
        locus_ref_add(locus_ref_at(&at->grad->k, at->b, kv_head, n), 1.0, dk, call->D);
    }
}

static void take_rows(ref_attention *at, ref_memory *memory)
{
    const locus_call *call = at->call;
    at->k = locus_ref_take(memory, call->Tk, call->D, sizeof(double));
    at->dk = locus_ref_take(memory, call->Tk, call->D, sizeof(double));
    at->q = locus_ref_take(memory, call->D, 1, sizeof(double));
    at->dq = locus_ref_take(memory, call->D, 1, sizeof(double));
    at->score = locus_ref_take(memory, call->Tk, 1, sizeof(double));
    at->weight = locus_ref_take(memory, call->Tk, 1, sizeof(double));
    at->keep = locus_ref_take(memory, call->Tk, 1, sizeof(double));
    at->dweight = locus_ref_take(memory, call->Tk, 1, sizeof(double));
    at->visible = locus_ref_take(memory, call->Tk, 1, sizeof(uint8_t));
}

ref_attention locus_ref_begin(const locus_call *call, const locus_tensors *in,
                              const locus_tensors *grad, ref_memory *memory)
{
    const locus_scheme *scheme = call->scheme;
    ref_attention at = {
        .call = call,
        .in = in,
        .grad = grad,
        .key_table = scheme->key_table,
        .query_table = scheme->query_table,
        .value_table = scheme->value_table,
        .distances = call->least > call->most ? 0 : call->most - call->least + 1,
    };
    ask_hooks(&at, memory);
    return at;
}

locus_status locus_ref_attend(const locus_call *call, const locus_tensors *in,
                              const locus_results *results, const locus_tensor *dout,
                              const locus_tensors *grad, ref_memory *memory)
{
    ref_attention at = locus_ref_begin(call, in, dout != NULL ? grad : NULL, memory);
    take_rows(&at, memory);
    if (memory->failed) return LOCUS_ERR_MEMORY;
    for (at.b = 0; at.b < call->B; at.b++)
        for (at.h = 0; at.h < call->H; at.h++) attend_head(&at, results, dout);
    if (at.grad != NULL) tell_bias_grad(&at);
    return LOCUS_OK;
}
