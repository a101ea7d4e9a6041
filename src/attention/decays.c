/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/decays.h"

#include <math.h>
#include <string.h>

#include "attention/gates.h"

/* Exponents of factors: where rows and keys lie on both sides of the reference, and at most. */
static const float DECAY_MILD = 40.0f, DECAY_MOST = 60.0f;

/* ---- sums ---- */

const double *locus_decay_sums_at(const head_context *head, int64_t position)
{
    return locus_gate_sums_of(head, locus_log_decay(head->plan, head->in)) +
           position * head->plan->call.D;
}

int64_t locus_decay_reference(const head_context *head, int64_t n)
{
    const int64_t keys = head->geometry->keys;
    return min_i64((n / keys + 1) * keys, head->plan->call.Tk) - 1;
}

static locus_decay_range find_range(const double *to, const double *from, int64_t count)
{
    locus_decay_range range = {-INFINITY, 0.0f};
    for (int64_t d = 0; d < count; d++) {
        const double x = to[d] - from[d];
        const double spread = isnan(x) ? INFINITY : fabs(x);
        if (x > (double)range.most) range.most = (float)x;
        if (spread > (double)range.spread) range.spread = (float)spread;
    }
    return range;
}

static locus_decay_range join_ranges(locus_decay_range a, locus_decay_range b)
{
    return (locus_decay_range){fmaxf(a.most, b.most), fmaxf(a.spread, b.spread)};
}

/* Of keys [first, end) to position r. */
static locus_decay_range range_of_keys(const head_context *head, int64_t first, int64_t end,
                                       int64_t r)
{
    locus_decay_range range = {-INFINITY, 0.0f};
    for (int64_t n = first; n < end; n++)
        range = join_ranges(range, find_range(locus_decay_sums_at(head, r),
                                              locus_decay_sums_at(head, n), head->plan->call.D));
    return range;
}

locus_decay_range locus_decay_range_of(const head_context *head, int64_t first)
{
    const int64_t r = locus_decay_reference(head, first);
    return range_of_keys(head, first, r + 1, r);
}

void locus_decay_keys(const head_context *head, float *keys, int64_t first, int64_t count)
{
    const int64_t D = head->plan->call.D;
    const double *reference = locus_decay_sums_at(head, locus_decay_reference(head, first));
    for (int64_t j = 0; j < count; j++)
        head->plan->kernels->decay(keys + j * D, keys + j * D, reference,
                                   locus_decay_sums_at(head, first + j), D, 0);
}

/* with_gain = c e^(P_m - P_r) of rows from `first` on; and how far their exponents go. */
static locus_decay_range decay_rows(const locus_scores *s, int64_t first, int64_t r)
{
    const head_context *head = s->head;
    const locus_queries *q = s->queries;
    const int64_t D = head->plan->call.D;
    locus_decay_range range = {-INFINITY, 0.0f};
    for (int64_t i = first; i < q->count; i++) {
        const double *row = locus_decay_sums_at(head, locus_decay_row_position(q, i));
        range = join_ranges(range, find_range(row, locus_decay_sums_at(head, r), D));
        head->plan->kernels->decay(s->with_gain + i * D, q->content + i * q->row_stride, row,
                                   locus_decay_sums_at(head, r), D, 0);
    }
    return range;
}

const float *locus_decayed_rows(locus_scores *s, const locus_tile *tile)
{
    const int64_t r = locus_decay_reference(s->head, tile->key);
    const locus_decay_range rows = decay_rows(s, 0, r);
    const locus_decay_range keys = s->keys->decay_ranges[tile->key / s->head->geometry->keys];
    const int mild = rows.spread <= DECAY_MILD && keys.spread <= DECAY_MILD;
    const int behind = s->queries->position >= r;
    s->steep = behind ? rows.most > DECAY_MOST || keys.most > DECAY_MOST : !mild;
    return s->with_gain;
}

/* ---- panels of a steep tile ---- */

int64_t locus_decay_room(const locus_plan *plan)
{
    return 2 * DECAY_PANEL * plan->call.D + locus_panel_floats(DECAY_PANEL, plan->call.D);
}

locus_decay_panel locus_decay_panel_at(const locus_scores *s, const locus_tile *tile,
                                       int64_t column, int pairs_only)
{
    const head_context *head = s->head;
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D, rows = tile->rows;
    locus_decay_panel p = {.column = column, .count = min_i64(DECAY_PANEL, tile->columns - column)};
    p.reference = tile->key + column + p.count - 1;
    p.first = min_i64(rows, max_i64(0, p.reference - s->queries->position));
    p.stored = s->decay_room;
    p.keys = p.stored + DECAY_PANEL * D;
    p.packed = p.keys + DECAY_PANEL * D;
    const locus_rows stored = locus_stored_keys(head, &head->in->k, tile->key + column);
    locus_load_rows(plan, p.stored, stored, p.count, D);
    const locus_decay_range keys =
        range_of_keys(head, tile->key + column, p.reference + 1, p.reference);
    const locus_decay_range range = join_ranges(keys, decay_rows(s, p.first, p.reference));
    if (pairs_only || range.most > DECAY_MOST) p.first = rows;
    for (int64_t j = 0; p.first < rows && j < p.count; j++)
        plan->kernels->decay(p.keys + j * D, p.stored + j * D,
                             locus_decay_sums_at(head, p.reference),
                             locus_decay_sums_at(head, tile->key + column + j), D, 0);
    return p;
}

int64_t locus_decay_row_reach(const locus_tile *tile, const locus_decay_panel *p, int64_t i,
                              int64_t *to)
{
    const int64_t from = max_i64(tile->from[i], p->column);
    *to = min_i64(tile->to[i], p->column + p->count);
    return from;
}

/* Scores of row i, pair by pair. */
static void score_pairs(const locus_scores *s, const locus_tile *tile, const locus_decay_panel *p,
                        int64_t i)
{
    const head_context *head = s->head;
    const locus_kernels *kernels = head->plan->kernels;
    const locus_queries *q = s->queries;
    const int64_t D = head->plan->call.D, stride = head->geometry->stride;
    const locus_prefetch_rows none = {0};
    int64_t to;
    const int64_t from = locus_decay_row_reach(tile, p, i, &to);
    if (from >= to) return;
    for (int64_t j = from; j < to; j++)
        kernels->decay(p->keys + (j - from) * D, p->stored + (j - p->column) * D,
                       locus_decay_sums_at(head, locus_decay_row_position(q, i)),
                       locus_decay_sums_at(head, tile->key + j), D, 0);
    float *row = s->score + i * stride + from;
    kernels->dots(row, stride, q->content + i * q->row_stride, D, p->keys, D, LOCUS_F32, 1, D,
                  to - from, NULL, 0, none);
    kernels->scale(row, row, locus_panel_scale(head), to - from);
}

void locus_steep_scores(const locus_scores *s, const locus_tile *tile)
{
    const head_context *head = s->head;
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t D = head->plan->call.D, stride = head->geometry->stride;
    for (int64_t column = 0; column < tile->columns; column += DECAY_PANEL) {
        const locus_decay_panel p = locus_decay_panel_at(s, tile, column, 0);
        if (p.first < tile->rows) {
            kernels->pack(p.packed, p.keys, D, p.count, D, locus_panel_scale(head));
            const locus_product_tile product = {.c = s->score + p.first * stride + column,
                                                .c_stride = stride,
                                                .a = s->with_gain + p.first * D,
                                                .a_stride = D,
                                                .panels = p.packed,
                                                .rows = tile->rows - p.first,
                                                .inner = D,
                                                .columns = p.count};
            kernels->product(&product);
        }
        for (int64_t i = 0; i < p.first; i++) score_pairs(s, tile, &p, i);
    }
}
