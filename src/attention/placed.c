/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/placed.h"

static int is_by_entry(const locus_plan *plan)
{
    return plan->place_axes != 1 || plan->row_count == plan->table_span;
}

void locus_placed_expand(const locus_plan *plan, const locus_strip *strip, int64_t rows)
{
    if (is_by_entry(plan)) return;
    for (int64_t i = 0; i < rows; i++) {
        float *row = strip->data + i * strip->row_stride;
        for (int64_t z = plan->table_span; z-- > 0;) row[z] = row[plan->index[z]];
    }
}

void locus_placed_gather(const locus_plan *plan, const locus_strip *strip, int64_t rows)
{
    if (is_by_entry(plan)) return;
    for (int64_t i = 0; i < rows; i++) {
        float *row = strip->data + i * strip->row_stride;
        int64_t entry = -1;
        for (int64_t z = 0; z < plan->table_span; z++) {
            const float sum = row[z];
            for (; entry < plan->index[z];) row[++entry] = 0.0f;
            row[entry] += sum;
        }
        for (; ++entry < plan->row_count;) row[entry] = 0.0f;
    }
}

/* What a row of a tile is looked up by. */
typedef struct look {
    const int32_t *places;
    const uint8_t *kinds;
    int32_t shift, last;
} look;

static look look_at(const head_context *head, const locus_tile *tile, int axis, int64_t i)
{
    const locus_place_axis *p = &head->plan->places[axis];
    return (look){p->key + head->b * p->key_batch + tile->key,
                  p->kinds + head->b * p->kinds_batch + tile->key / LOCUS_LANES,
                  p->query[head->b * p->query_batch + tile->query + i], (int32_t)(p->count - 1)};
}

void locus_placed_add(const head_context *head, const locus_tile *tile, int axis, int64_t i,
                      const float *x, float *to)
{
    const look l = look_at(head, tile, axis, i);
    head->plan->kernels->add_places(to, x, l.places, l.kinds, l.shift, l.last, tile->from[i],
                                    tile->to[i]);
}

static float *strip_row(const locus_plan *plan, const locus_strip *strips, int64_t i, int axis)
{
    const locus_strip *strip = &strips[i / BAND_ROWS];
    return strip->data + i % BAND_ROWS * strip->row_stride + plan->places[axis].first;
}

void locus_placed_add_strip(const head_context *head, const locus_tile *tile, int64_t i,
                            const locus_strip *strips, float *to)
{
    for (int axis = 0; axis < head->plan->place_axes; axis++)
        locus_placed_add(head, tile, axis, i, strip_row(head->plan, strips, i, axis), to);
}

void locus_placed_fold(const head_context *head, const locus_tile *tile, int64_t i, const float *T,
                       const locus_strip *strips)
{
    for (int axis = 0; axis < head->plan->place_axes; axis++) {
        const look l = look_at(head, tile, axis, i);
        head->plan->kernels->fold_places(strip_row(head->plan, strips, i, axis), T, l.places,
                                         l.kinds, l.shift, l.last, tile->from[i], tile->to[i]);
    }
}

static int32_t cut(int32_t z, int32_t last) { return z < 0 ? 0 : z > last ? last : z; }

void locus_placed_sum(const head_context *head, const locus_tile *tile, int64_t i, const float *T,
                      double *sums)
{
    const look l = look_at(head, tile, 0, i);
    for (int64_t j = tile->from[i]; j < tile->to[i]; j++)
        sums[cut(l.places[j] + l.shift, l.last)] += (double)T[j];
}

void locus_placed_entries(const head_context *head, const locus_tile *tile, int64_t i,
                          int32_t *entries)
{
    const look l = look_at(head, tile, 0, i);
    for (int64_t j = 0; j < tile->columns; j++)
        entries[j] = head->plan->index[cut(l.places[j] + l.shift, l.last)];
}

int64_t locus_placed_run(const head_context *head, const locus_tile *tile, int64_t i, int64_t j,
                         int64_t *m, int64_t *n)
{
    const locus_call *call = &head->plan->call;
    const int64_t key = tile->key + j, most = tile->to[i] - j;
    const int64_t own = call->query_offset + tile->query + i;
    int64_t count = 1;
    *m = own;
    *n = key;
    if (!call->placed) return most;
    const int64_t first = locus_call_place(call, 1, head->b, key, 0, key);
    while (count < most &&
           locus_call_place(call, 1, head->b, key + count, 0, key + count) == first + count)
        count++;
    *m = locus_call_place(call, 0, head->b, tile->query + i, 0, own) - call->key_offset;
    *n = first - call->key_offset;
    return count;
}
