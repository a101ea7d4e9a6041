/* SPDX-License-Identifier: Apache-2.0 */
#include "ref/ref.h"

#include <math.h>
#include <string.h>

#include "core/random.h"
#include "core/tensor.h"

/* For every query, over the keys n that it sees, with t the sink (-inf where there is none):
 *     a_n   = exp(s_n) / Z                     Z = sum exp(s) + exp(t), lse = ln Z
 *     out   = sum a_n z_n (v_n + RV[r])        z: dropout's factor, 1 without dropout
 * and backwards:
 *     da_n  = z_n dout . (v_n + RV[r])         dv_n = dRV[r] = a_n z_n dout
 *     ds_n  = a_n (da_n - sum a da + dlse)     on to locus_ref_score_grad
 *     dt    = exp(t) / Z (dlse - sum a da)
 * A dropped pair (z = 0) contributes nothing, whatever its weight and value: NaN too. A query whose
 * lse is NaN has out NaN, even where all its pairs are dropped.
 * A logit of -inf has weight 0, also next to a NaN; ds is 0 where the weight is 0.
 * A query that sees no key, or nothing but logits of -inf: out 0, lse t, and no gradient but
 * that of t. */

/* ---- what the hooks say about each distance ---- */

/* The logarithm of what a column grows by per position; NULL where none grows. */
static double *ask_gain(const locus_call *call, ref_memory *memory)
{
    double *gains = locus_ref_take(memory, call->D, 1, sizeof(double));
    int grows = 0;
    for (int64_t pair = 0; gains != NULL && pair < call->pairs; pair++) {
        double frequency, log_gain;
        int64_t first, second;
        call->scheme->turn(call, pair, &frequency, &log_gain);
        locus_pair_columns(call, pair, &first, &second);
        gains[first] = gains[second] = log_gain;
        grows = grows || log_gain != 0.0;
    }
    return grows ? gains : NULL;
}

static void ask_hooks(ref_attention *at, ref_memory *memory)
{
    const locus_call *call = at->call;
    const locus_scheme *scheme = call->scheme;
    const int64_t distances = at->distances;
    at->log_gain = ask_gain(call, memory);
    if (call->placed) return; /* pair by pair */
    if (scheme->row != NULL) {
        at->row = locus_ref_take(memory, distances, 1, sizeof(int64_t));
        for (int64_t x = 0; at->row != NULL && x < distances; x++)
            at->row[x] = scheme->row(call, call->least + x);
    }
    if (scheme->bias != NULL && !scheme->bias_by_pair) {
        at->bias = locus_ref_take(memory, call->H, distances, sizeof(double));
        for (int64_t h = 0; at->bias != NULL && h < call->H; h++)
            for (int64_t x = 0; x < distances; x++)
                at->bias[h * distances + x] = scheme->bias(call, at->in, h, call->least + x, 0);
    }
    if (scheme->bias_grad != NULL && !scheme->bias_by_pair) {
        at->dbias = locus_ref_take(memory, call->H, distances, sizeof(double));
        at->used = locus_ref_take(memory, call->H, distances, sizeof(uint8_t));
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
                call->scheme->bias_grad(call, at->in, h, call->least + x, 0, 1, &at->dbias[place],
                                        at->grad);
        }
}

/* ---- one query row ---- */

static void load_query(ref_attention *at)
{
    const locus_call *call = at->call;
    const double *q = locus_ref_at(&at->in->q, at->b, at->h, at->i);
    for (int64_t d = 0; d < call->D; d++) at->q[d] = q[d];
    locus_ref_turn(call, at->q, 0, at->b, at->i, locus_ref_query_position(at), 1);
}

/* Dropout counts rows and keys inside a sequence, and sequences instead of batch entries. */
static int keeps(const ref_attention *at, int64_t n)
{
    const locus_call *call = at->call;
    const int64_t batch = call->first_batch + (call->sequences > 0 ? at->s : at->b);
    const int64_t row = call->first_query + at->i - at->sequence.first_query;
    const int64_t key = call->key_offset + locus_ref_key_position(at, n);
    return locus_dropout_keeps(call->dropout_seed, locus_dropout_threshold(call->dropout),
                               (uint32_t)batch, (uint32_t)at->h, (uint32_t)row, (uint32_t)key);
}

/* Fill score, visible and keep; the largest visible score (NaN if one is NaN), or the sink. */
static double score_row(ref_attention *at)
{
    const locus_call *call = at->call;
    double parts[REF_PARTS], largest = locus_ref_sink(at);
    locus_ref_count_row(at);
    for (int64_t n = 0; n < call->Tk; n++) {
        at->visible[n] = (uint8_t)locus_ref_visible(at, n);
        if (!at->visible[n]) continue;
        at->score[n] = locus_ref_parts(at, n, parts);
        at->keep[n] = 1.0;
        if (call->dropout > 0.0) at->keep[n] = keeps(at, n) ? 1.0 / (1.0 - call->dropout) : 0.0;
        if (at->score[n] > largest || isnan(at->score[n])) largest = at->score[n];
    }
    return largest;
}

/* Fill weight; returns lse. */
static double softmax_row(ref_attention *at, double largest)
{
    const int64_t Tk = at->call->Tk;
    if (largest == -INFINITY) return -INFINITY;
    double sum = exp(locus_ref_sink(at) - largest);
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
    for (int64_t n = 0; n < call->Tk; n++) {
        if (!at->visible[n] || at->keep[n] == 0.0) continue;
        const double a = at->keep[n] * at->weight[n];
        const double *rv =
            locus_ref_table_row(at, at->in, at->value_table, locus_ref_distance(at, n, 0));
        locus_ref_add(out, a, value_row(at, at->in, n), call->Dv);
        if (rv != NULL) locus_ref_add(out, a, rv, call->Dv);
    }
}

/* dsink += exp(sink - lse) (dlse - sum a da) */
static void sink_grad(const ref_attention *at, double lse, double mean, double dlse)
{
    double *dsink = locus_ref_at(&at->grad->sink, 0, 0, 0);
    if (dsink != NULL) dsink[at->h] += exp(locus_ref_sink(at) - lse) * (dlse - mean);
}

static void output_row_grad(const ref_attention *at, const double *dout, double lse, double dlse)
{
    const locus_call *call = at->call;
    const int64_t Dv = call->Dv;
    double mean = 0.0; /* sum a da */
    for (int64_t n = 0; n < call->Tk; n++) {
        if (!at->visible[n]) continue;
        const int64_t delta = locus_ref_distance(at, n, 0);
        const double *rv = locus_ref_table_row(at, at->in, at->value_table, delta);
        double product = locus_ref_dot(dout, value_row(at, at->in, n), Dv);
        if (rv != NULL) product += locus_ref_dot(dout, rv, Dv);
        at->dweight[n] = at->keep[n] == 0.0 ? 0.0 : at->keep[n] * product;
        mean += at->weight[n] * at->dweight[n];
        if (at->keep[n] == 0.0) continue;
        const double az = at->weight[n] * at->keep[n];
        locus_ref_add(value_row(at, at->grad, n), az, dout, Dv);
        locus_ref_add(locus_ref_table_row(at, at->grad, at->value_table, delta), az, dout, Dv);
    }
    for (int64_t n = 0; n < call->Tk; n++) {
        if (!at->visible[n]) continue;
        const double ds =
            at->weight[n] == 0.0 ? 0.0 : at->weight[n] * (at->dweight[n] - mean + dlse);
        locus_ref_score_grad(at, n, ds);
    }
    locus_ref_count_grad(at);
    sink_grad(at, lse, mean, dlse);
}

/* The gradient of lse of the row at work; 0 where nobody gave one. */
static double dlse_of(const ref_attention *at, const locus_results *dresults)
{
    const locus_tensor *dlse = &dresults->lse;
    if (!locus_present(dlse)) return 0.0;
    return ((const double *)dlse->data)[locus_offset(dlse, at->b, at->h, at->i, 0)];
}

static void attend_row(ref_attention *at, const locus_results *results,
                       const locus_results *dresults)
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
    output_row_grad(at, locus_ref_at(&dresults->out, at->b, at->h, at->i), lse,
                    dlse_of(at, dresults));
    locus_ref_turn(call, at->dq, 0, at->b, at->i, locus_ref_query_position(at), -1);
    locus_ref_add(locus_ref_at(&at->grad->q, at->b, at->h, at->i), 1.0, at->dq, call->D);
}

/* ---- one head ---- */

/* The keys of the sequence at work, turned. */
static void load_keys(ref_attention *at)
{
    const locus_call *call = at->call;
    const int64_t kv_head = at->h / (call->H / call->Hk), first = at->sequence.first_key;
    for (int64_t n = first; n < first + at->sequence.keys; n++) {
        double *k = at->k + n * call->D;
        memcpy(k, locus_ref_at(&at->in->k, at->b, kv_head, n), (size_t)call->D * sizeof *k);
        locus_ref_turn(call, k, 1, at->b, n, n - first, 1);
        memset(at->dk + n * call->D, 0, (size_t)call->D * sizeof *at->dk);
    }
}

static void store_key_gradients(ref_attention *at)
{
    const locus_call *call = at->call;
    const int64_t kv_head = at->h / (call->H / call->Hk), first = at->sequence.first_key;
    for (int64_t n = first; n < first + at->sequence.keys; n++) {
        double *dk = at->dk + n * call->D;
        locus_ref_turn(call, dk, 1, at->b, n, n - first, -1);
        locus_ref_add(locus_ref_at(&at->grad->k, at->b, kv_head, n), 1.0, dk, call->D);
    }
}

static void attend_head(ref_attention *at, const locus_results *results,
                        const locus_results *dresults)
{
    for (at->s = 0; at->s < locus_sequence_count(at->call); at->s++) {
        at->sequence = locus_call_sequence(at->call, at->s);
        const int64_t first = at->sequence.first_query, past = first + at->sequence.queries;
        load_keys(at);
        locus_ref_sum_gates(at);
        for (at->i = first; at->i < past; at->i++) attend_row(at, results, dresults);
        if (at->grad != NULL) store_key_gradients(at);
        if (at->grad != NULL) locus_ref_gates_grad(at);
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
    locus_ref_take_gates(at, memory);
    if (!call->scheme->counts) return;
    at->place = locus_ref_take(memory, call->Tk, 1, sizeof(double));
    at->dplace = locus_ref_take(memory, call->Tk, 1, sizeof(double));
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
                              const locus_results *results, const locus_results *dresults,
                              const locus_tensors *grad, ref_memory *memory)
{
    ref_attention at = locus_ref_begin(call, in, dresults != NULL ? grad : NULL, memory);
    take_rows(&at, memory);
    if (memory->failed) return LOCUS_ERR_MEMORY;
    for (at.b = 0; at.b < call->B; at.b++)
        for (at.h = 0; at.h < call->H; at.h++) attend_head(&at, results, dresults);
    if (at.grad != NULL) tell_bias_grad(&at);
    return LOCUS_OK;
}
