/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/counted.h"

#include <math.h>
#include <string.h>

void locus_counted_carve(const locus_plan *plan, const locus_geometry *g, int backward,
                         locus_arena *arena, locus_counted *c)
{
    const int64_t rows = g->rows + LOCUS_LANES, pairs = rows * g->stride;
    *c = (locus_counted){.count = NULL};
    if (!plan->counts) return;
    const int masks = locus_present(&plan->shapes.mask) || locus_present(&plan->shapes.key_mask) ||
                      locus_present(&plan->shapes.bias_dense);
    c->count = locus_take(arena, rows, sizeof *c->count);
    c->gate = locus_take_floats(arena, pairs);
    c->hidden = locus_take_optional(arena, masks, pairs);
    if (!backward) return;
    c->total = locus_take(arena, rows, sizeof *c->total);
    c->behind = locus_take(arena, rows, sizeof *c->behind);
    c->low = locus_take(arena, pairs, sizeof *c->low);
    c->first_bad = locus_take(arena, rows, sizeof *c->first_bad);
    c->share = locus_take_floats(arena, pairs);
}

void locus_counted_begin(const locus_scores *s)
{
    const locus_counted *c = &s->counted;
    const size_t bytes = (size_t)s->head->geometry->rows * sizeof *c->count;
    if (c->count == NULL) return;
    memset(c->count, 0, bytes);
    if (c->behind != NULL) memset(c->behind, 0, bytes);
}

/* Room where pairs that masks hide are -inf; NULL: none is. */
static const float *find_hidden(const locus_scores *s, const locus_tile *tile)
{
    const int masked = locus_present(&s->head->in->bias_dense) || tile->key_masked || tile->masked;
    float *hidden = s->counted.hidden;
    if (!masked) return NULL;
    memset(hidden, 0, (size_t)(tile->rows * s->head->geometry->stride) * sizeof *hidden);
    locus_tile_mask(s->head, tile, hidden);
    return hidden;
}

/* Products of row i with the table. */
static float *products_of(const locus_strip *strips, int64_t i)
{
    const locus_strip *strip = &strips[i / BAND_ROWS];
    return strip->data + i % BAND_ROWS * strip->row_stride;
}

/* Row i of the tile, from its nearest key on. */
static void add_row(const locus_scores *s, const locus_tile *tile, int64_t i, const float *hidden)
{
    const locus_counted *c = &s->counted;
    const int64_t at = i * s->head->geometry->stride, last = s->head->plan->row_count - 1;
    const float *y = products_of(s->key_strips, i);
    float *score = s->score + at;
    double count = c->count[i];
    for (int64_t j = tile->to[i]; j-- > tile->from[i];) {
        const int is_hidden = hidden != NULL && hidden[at + j] == -INFINITY;
        if (!is_hidden) count += (double)c->gate[at + j];
        const int is_cut = count >= (double)last;
        const int64_t low = is_cut ? last : isnan(count) ? 0 : (int64_t)count;
        const float share = is_cut ? 0.0f : (float)(count - (double)low);
        if (c->low != NULL) {
            c->low[at + j] = is_hidden ? -1 : (int32_t)low;
            c->share[at + j] = share;
        }
        score[j] += is_cut || share == 0.0f ? y[low] : (1.0f - share) * y[low] + share * y[low + 1];
    }
    c->count[i] = count;
}

void locus_add_counted(const locus_scores *s, const locus_tile *tile)
{
    const float *hidden = find_hidden(s, tile);
    const int64_t stride = s->head->geometry->stride;
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t at = i * stride + tile->from[i];
        s->head->plan->kernels->sigmoid(s->counted.gate + at, s->score + at,
                                        tile->to[i] - tile->from[i]);
        add_row(s, tile, i, hidden);
    }
}

/* ---- backward ---- */

/* dp of a pair of the row whose products are y. */
static float place_grad(const float *y, int32_t low, int64_t last, float ds)
{
    return low >= last ? 0.0f : ds * (y[low + 1] - y[low]);
}

void locus_counted_begin_sum(const locus_scores *s)
{
    const locus_counted *c = &s->counted;
    for (int64_t i = 0; i < s->head->geometry->rows; i++) {
        c->total[i] = 0.0;
        c->first_bad[i] = INT32_MAX;
    }
}

/* From the first dp that is not finite on, sums are not either; before it, they lack nothing. */
void locus_counted_sum(const locus_scores *s, const locus_tile *tile, const float *grad)
{
    const locus_counted *c = &s->counted;
    const int64_t stride = s->head->geometry->stride, last = s->head->plan->row_count - 1;
    for (int64_t i = 0; i < tile->rows; i++) {
        const float *y = products_of(s->key_strips, i);
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) {
            const int64_t at = i * stride + j;
            if (c->low[at] < 0) continue;
            const float dp = place_grad(y, c->low[at], last, grad[at]);
            if (isfinite(dp))
                c->total[i] += (double)dp;
            else
                c->first_bad[i] = (int32_t)min_i64(c->first_bad[i], tile->key + j);
        }
    }
}

static void spread_row(const locus_scores *s, const locus_tile *tile, int64_t i, float *grad,
                       float *dy)
{
    const locus_counted *c = &s->counted;
    const int64_t stride = s->head->geometry->stride, last = s->head->plan->row_count - 1;
    const float *y = products_of(s->key_strips, i);
    double behind = c->behind[i];
    for (int64_t j = tile->to[i]; j-- > tile->from[i];) {
        const int64_t at = i * stride + j;
        const float ds = grad[at], share = c->share[at], gate = c->gate[at];
        const int32_t low = c->low[at];
        if (low < 0) continue;
        const int bad = tile->key + j >= c->first_bad[i];
        grad[at] = ds + gate * (1.0f - gate) * (bad ? NAN : (float)(c->total[i] - behind));
        const float dp = place_grad(y, low, last, ds);
        if (isfinite(dp)) behind += (double)dp;
        dy[low] += (1.0f - share) * ds;
        if (low < last && !isnan(share)) dy[low + 1] += share * ds;
    }
    c->behind[i] = behind;
}

void locus_counted_spread(const locus_scores *s, const locus_tile *tile, float *grad,
                          const locus_strip *strips)
{
    for (int64_t i = 0; i < tile->rows; i++) spread_row(s, tile, i, grad, products_of(strips, i));
}
