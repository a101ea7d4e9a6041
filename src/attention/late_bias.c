/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/late_bias.h"

#include <string.h>

#include "attention/placed.h"

/* values[0 .. count - 1] = b(m, n) .. b(m, n + count - 1) */
static void fill_run(const locus_scores *s, int64_t m, int64_t n, int64_t count, float *values)
{
    const head_context *head = s->head;
    const locus_call *call = &head->plan->call;
    const locus_scheme *scheme = call->scheme;
    if (s->shared != NULL)
        scheme->shared_run(call, head->in, s->shared, head->h, m, n, count, values);
    else if (scheme->bias_run != NULL)
        scheme->bias_run(call, head->in, head->h, m, n, count, values);
    else
        for (int64_t i = 0; i < count; i++)
            values[i] = (float)scheme->bias(call, head->in, head->h, m, n + i);
}

/* Row i, run by run. */
static const float *fill_row(const locus_scores *s, const locus_tile *tile, int64_t i)
{
    int64_t m, n, count;
    for (int64_t j = tile->from[i]; j < tile->to[i]; j += count) {
        count = locus_placed_run(s->head, tile, i, j, &m, &n);
        fill_run(s, m, n, count, s->pair_bias + (j - tile->from[i]));
    }
    return s->pair_bias;
}

/* The row without what its reset pairs have: that of m = 0 has nothing else, the others lack n = 0. */
static void add_placed_row(const locus_scores *s, const locus_tile *tile, const float *by_z,
                           int64_t i, float *row)
{
    const locus_plan *plan = s->head->plan;
    if (plan->index != NULL && locus_key_table(plan, s->head->in) != NULL)
        locus_placed_add_strip(s->head, tile, i, s->key_strips, row);
    if (plan->has_bias) locus_placed_add(s->head, tile, 0, i, by_z, row);
}

/* cls in the place of a bias; where there are rows of positions, they were replaced with them. */
static float reset_of(const locus_scores *s, int number)
{
    const locus_tensor *cls = &s->head->in->cls;
    if (locus_present(&s->head->in->pos_q)) return 0.0f;
    return *locus_f32(cls, number < cls->shape[0] ? number : 0, s->head->h, 0);
}

static void add_placed(const locus_scores *s, const locus_tile *tile, const float *by_z, int64_t i,
                       float *row)
{
    const locus_plan *plan = s->head->plan;
    const int resets = plan->has_reset && tile->from[i] < tile->to[i];
    const int first_row = resets && locus_position_row(plan, s->queries->position + i) == 0;
    const int first_key = resets && tile->from[i] == 0 && locus_position_row(plan, tile->key) == 0;
    const float content = first_key ? row[0] : 0.0f;
    if (!first_row)
        add_placed_row(s, tile, by_z, i, row);
    else
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) row[j] += reset_of(s, 0);
    if (first_key) row[0] = content + reset_of(s, first_row ? 2 : 1);
}

const float *locus_gated_bias(const locus_scores *s, const locus_tile *tile, const float *by_z,
                              int64_t i)
{
    const int64_t from = tile->from[i], count = tile->to[i] - from;
    if (s->head->plan->place_axes == 0) return by_z - i + from;
    memset(s->pair_bias + from, 0, (size_t)count * sizeof *s->pair_bias);
    locus_placed_add(s->head, tile, 0, i, by_z, s->pair_bias);
    return s->pair_bias + from;
}

void locus_add_late_bias(const locus_scores *s, const locus_tile *tile, const float *by_z)
{
    const locus_plan *plan = s->head->plan;
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        float *row = s->score + i * s->head->geometry->stride;
        if (count <= 0) continue;
        if (plan->has_pair_bias)
            plan->kernels->add(row + from, fill_row(s, tile, i), count);
        else if (plan->has_gate)
            plan->kernels->add_affine(row + from, locus_gated_bias(s, tile, by_z, i),
                                      locus_gate_of(s->head, tile->query + i), 0.0f, count);
        else if (plan->place_axes > 0)
            add_placed(s, tile, by_z, i, row);
        else
            plan->kernels->add(row + from, by_z - i + from, count);
    }
}
