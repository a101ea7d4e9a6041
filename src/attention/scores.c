/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/scores.h"

#include <string.h>

#include "attention/counted.h"
#include "attention/decays.h"

void locus_scores_carve(const locus_plan *plan, const locus_geometry *g, locus_arena *arena,
                        locus_scores *scores)
{
    const int64_t rows = g->rows + LOCUS_LANES;
    const int relative = plan->index != NULL;
    memset(scores, 0, sizeof *scores);
    locus_take_floats(arena, LOCUS_LANES);
    scores->score = locus_take_floats(arena, rows * g->stride);
    scores->strip_room = locus_take_optional(arena, relative, LOCUS_STRIP_ROOM);
    scores->strips = locus_take_optional(arena, relative, locus_strips_floats(plan, g));
    scores->pair_bias = locus_take_optional(arena, plan->has_pair_bias || plan->has_gate, g->keys);
    scores->with_gain =
        locus_take_optional(arena, plan->gain != NULL || plan->has_decay, rows * plan->call.D);
    locus_counted_carve(plan, g, g == &plan->backward, arena, &scores->counted);
    scores->decay_room = locus_take_optional(arena, plan->has_decay, locus_decay_room(plan));
}

void locus_scores_begin(locus_scores *scores)
{
    locus_strips_begin(scores->head, scores->strips, scores->key_strips);
    locus_counted_begin(scores);
}

const float *locus_content_rows(locus_scores *s, const locus_tile *tile)
{
    const locus_plan *plan = s->head->plan;
    const locus_queries *q = s->queries;
    const int64_t D = plan->call.D;
    if (plan->has_decay) return locus_decayed_rows(s, tile);
    if (!locus_rows_have_gain(plan, q, tile->key)) return q->content;
    for (int64_t i = 0; i < tile->rows; i++)
        plan->kernels->mul_gain(s->with_gain + i * D, q->content + i * q->row_stride,
                                locus_row_gain(plan, q, i, tile->key), D, 0);
    return s->with_gain;
}

const float *locus_tile_bias(const locus_plan *plan, const float *bias, const locus_tile *tile)
{
    if (bias == NULL || plan->place_axes > 0) return bias;
    return bias + locus_z_of(plan, tile->delta_00);
}

void locus_reset_positions(const locus_scores *s, const locus_tile *tile)
{
    const locus_tensor *cls = &s->head->in->cls;
    const float *at = (const float *)cls->data + s->head->h * cls->stride[1];
    const int64_t stride = s->head->geometry->stride;
    const int64_t first = locus_position_row(s->head->plan, s->queries->position);
    for (int64_t i = 0; i < tile->rows; i++) {
        float *row = s->pos_scores + i * stride;
        if (first + i == 0)
            for (int64_t j = 0; j < tile->columns; j++) row[j] = at[0];
        else if (locus_position_row(s->head->plan, tile->key) == 0)
            row[0] = at[cls->stride[0]];
    }
}
