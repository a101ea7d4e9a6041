/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/gate_skip.h"

#include <math.h>
#include <string.h>

#include "attention/gates.h"

int locus_gates_may_skip(const locus_plan *plan)
{
    const locus_call *call = &plan->call;
    const locus_tensors *s = &plan->shapes;
    const int grows = plan->gain != NULL || locus_present(&call->q_positions) ||
                      locus_present(&call->k_positions);
    const int hidden = locus_present(&s->mask) || locus_present(&s->key_mask) ||
                       locus_present(&s->bias_dense) || call->dropout > 0.0;
    const int more = plan->index != NULL || plan->has_bias || plan->has_pair_bias ||
                     plan->has_decay || locus_present(&s->pos_q) || call->softcap > 0.0;
    const int halves = locus_is_half(&s->q) || locus_is_half(&s->k);
    return plan->has_log_gate && !grows && !hidden && !more && !halves;
}

locus_gate_reach locus_gate_reach_of(const head_context *head, const float *rows, int64_t stride,
                                     int64_t first, int64_t count)
{
    const double *sums = locus_gate_sums_of(head, &head->in->log_gate);
    float squares[MAX_TILE_KEYS];
    locus_gate_reach reach = {0.0f, INFINITY};
    head->plan->kernels->row_dots(squares, rows, stride, rows, stride, count, head->plan->call.D);
    for (int64_t j = 0; j < count; j++) {
        if (!(squares[j] <= reach.norm)) reach.norm = squares[j]; /* a NaN comes through */
        if (isnan(squares[j])) break;
        if (!(sums[first + j] >= reach.least)) reach.least = sums[first + j];
        if (isnan(reach.least)) break;
    }
    reach.norm = sqrtf(reach.norm);
    return reach;
}

/* c q_m . k_m of the rows that have a key of their own. */
static void find_floors(const head_context *head, const locus_queries *q, float *floors)
{
    const locus_call *call = &head->plan->call;
    const locus_tensor *keys = &head->in->k;
    const int64_t from = min_i64(q->count, max_i64(0, -q->position));
    const int64_t to = max_i64(from, min_i64(q->count, call->Tk - q->position));
    for (int64_t i = 0; i < q->count; i++) floors[i] = -INFINITY;
    if (from == to) return;
    head->plan->kernels->row_dots(
        floors + from, locus_query_row(head, &head->in->q, q->first + from), head->in->q.stride[2],
        locus_key_row(head, keys, q->position + from), keys->stride[2], to - from, call->D);
    for (int64_t i = from; i < to; i++) floors[i] *= (float)call->scale;
}

void locus_gates_lead(const head_context *head, locus_queries *q, const float *lse)
{
    const double *sums = locus_gate_sums_of(head, &head->in->log_gate);
    float floors[MAX_TILE_ROWS];
    if (q->lead == NULL) return;
    if (lse == NULL) find_floors(head, q, floors);
    head->plan->kernels->row_dots(q->norms, q->content, q->row_stride, q->content, q->row_stride,
                                  q->count, head->plan->call.D);
    for (int64_t i = 0; i < q->count; i++) {
        const double least = (double)(lse != NULL ? lse[i] : floors[i]);
        const int64_t m = q->position + i;
        q->norms[i] = sqrtf(q->norms[i]) * fabsf(locus_panel_scale(head));
        q->lead[i] = m < 0 ? -INFINITY : sums[m] - least;
    }
}

int locus_gates_skip(const head_context *head, const locus_queries *q, const locus_keys *keys,
                     int64_t key_tile)
{
    if (q->lead == NULL || keys->gate_reaches == NULL) return 0;
    const int64_t first = key_tile * head->geometry->keys;
    const int64_t count = min_i64(head->geometry->keys, head->plan->call.Tk - first);
    /* a weight however small makes NaN of NaN */
    if (memchr(keys->value_bad + first, 1, (size_t)count) != NULL) return 0;
    const locus_gate_reach reach = keys->gate_reaches[key_tile];
    const double margin = log(0x1p26 * (double)head->plan->call.Tk);
    for (int64_t i = 0; i < q->count; i++)
        if (!((double)(q->norms[i] * reach.norm) + (q->lead[i] - reach.least) < -margin)) return 0;
    return 1;
}
