/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/softmax_rows.h"

#include <math.h>

void locus_softmax_rows_carve(const locus_geometry *geometry, locus_arena *arena,
                              locus_softmax_rows *rows)
{
    const int64_t count = geometry->rows + LOCUS_LANES;
    *rows = (locus_softmax_rows){
        .max = locus_take_floats(arena, count),
        .sum = locus_take_floats(arena, count),
        .rescale = locus_take_floats(arena, count),
        .tile_sum = locus_take_floats(arena, count),
        .max_lanes = locus_take_floats(arena, count * LOCUS_LANES),
        .lse = locus_take_floats(arena, count),
        .factor = locus_take_floats(arena, count),
    };
}

void locus_softmax_rows_begin(const head_context *head, int with_sink, int64_t count,
                              locus_softmax_rows *rows)
{
    const float sink = with_sink ? locus_head_sink(head) : -INFINITY;
    for (int64_t i = 0; i < count; i++) {
        rows->max[i] = sink;
        rows->sum[i] = sink == -INFINITY ? 0.0f : 1.0f;
    }
}

void locus_softmax_rows_step(const head_context *head, const locus_tile *tile, float *scores,
                             int has_max, locus_softmax_rows *rows)
{
    head->plan->kernels->softmax_step(scores, head->geometry->stride, tile->rows, tile->columns,
                                      locus_tile_seen(tile), has_max ? rows->max_lanes : NULL,
                                      rows->max, rows->sum, rows->rescale, rows->tile_sum);
}
