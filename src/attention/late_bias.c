/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/late_bias.h"

/* b(m, n) .. b(m, n + count - 1) in pair_bias. */
static const float *fill_run(const locus_scores *s, int64_t m, int64_t n, int64_t count)
{
    const head_context *head = s->head;
    const locus_call *call = &head->plan->call;
    const locus_scheme *scheme = call->scheme;
    if (scheme->bias_run != NULL)
        scheme->bias_run(call, head->in, head->h, m, n, count, s->pair_bias);
    else
        for (int64_t i = 0; i < count; i++)
            s->pair_bias[i] = (float)scheme->bias(call, head->in, head->h, m, n + i);
    return s->pair_bias;
}

void locus_add_late_bias(const locus_scores *s, const locus_tile *tile, const float *by_z)
{
    const locus_plan *plan = s->head->plan;
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        if (count <= 0) continue;
        const float *bias = plan->has_pair_bias
                                ? fill_run(s, s->queries->position + i, tile->key + from, count)
                                : by_z - i + from;
        plan->kernels->add(s->score + i * s->head->geometry->stride + from, bias, count);
    }
}
