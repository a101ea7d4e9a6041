/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/online.h"

#include <math.h>
#include <string.h>

#include "attention/entries.h"
#include "attention/gate_skip.h"
#include "attention/kept.h"

void locus_online_carve(const locus_plan *plan, locus_arena *arena, locus_online *online)
{
    const locus_geometry *g = &plan->forward;
    const int64_t Dv = plan->call.Dv;
    const int values = locus_value_table(plan, &plan->shapes) != NULL;
    locus_softmax_rows_carve(g, arena, &online->softmax);
    online->out = locus_take_floats(arena, (g->rows + LOCUS_LANES) * Dv);
    online->clean =
        locus_take_floats(arena, (locus_is_half(&plan->shapes.v) ? 2 : 1) * g->keys * Dv);
    online->fold_strips = locus_take_optional(arena, values, locus_strips_floats(plan, g));
}

/* out[i] += sum of folded weights times value table entries */
static void flush_values(void *context, const head_context *head, const locus_band *band,
                         const locus_strip *strip, int64_t count)
{
    const locus_online *online = context;
    const int64_t Dv = head->plan->call.Dv;
    const locus_weights weights = locus_strip_weights(strip);
    locus_add_entries(head, &online->value_table, &weights, band->rows, count,
                      (locus_sums){online->out + band->first * Dv, Dv}, Dv);
}

void locus_online_begin(locus_online *online, const head_context *head, int64_t first)
{
    const locus_tensor *table = locus_value_table(head->plan, head->in);
    online->head = online->scores.head = head;
    online->scores.queries = &online->queries;
    online->scores.max_lanes = online->softmax.max_lanes;
    locus_queries_reach(head, first, &online->queries);
    locus_shown_reach(head, &online->queries);
    locus_queries_load(head, &online->queries);
    locus_gates_lead(head, &online->queries, NULL);
    locus_scores_begin(&online->scores);
    locus_softmax_rows_begin(head, !online->without_sink, online->queries.count, &online->softmax);
    online->written = online->out_holds = 0;
    online->results = NULL;
    if (table == NULL) return;
    online->value_table = locus_entries(head, table, online->scores.tables->value_bad);
    online->value_table.of_weights = 1;
    locus_fold_begin(head, online->fold_strips, flush_values, online, &online->value_fold);
}

/* max + ln sum - lse, in double: what the float has lost */
static float rest_of(float lse, float max, float sum)
{
    return isfinite(lse) ? (float)((double)max - (double)lse + log((double)sum)) : 0.0f;
}

static void write_lse(const head_context *head, const locus_results *results, int64_t first,
                      const float *lse, const float *max, const float *sum, int64_t count)
{
    const locus_tensor *low = &results->lse_low;
    const int64_t at = locus_offset(&results->lse, head->b, head->h, first, 0);
    for (int64_t i = 0; i < count; i++)
        locus_put(&results->lse, at + i * results->lse.stride[2], lse[i]);
    if (!locus_present(low)) return;
    float *to = locus_query_row(head, low, first);
    for (int64_t i = 0; i < count; i++) to[i * low->stride[2]] = rest_of(lse[i], max[i], sum[i]);
}

/* Take `count` of the rows, or what is left. */
static locus_prefetch_rows share_of(locus_prefetch_rows *rows, int64_t count)
{
    locus_prefetch_rows share = *rows;
    share.count = min_i64(count, rows->count);
    rows->count -= share.count;
    rows->rows += share.count * rows->row_stride;
    return share;
}

/* The rows of out and lse at once, where one key tile is all. */
static void write_values(locus_online *online, const locus_tile *tile, const locus_operand *values)
{
    const head_context *head = online->head;
    const locus_kernels *kernels = head->plan->kernels;
    const locus_rows stored = locus_query_rows(head, &online->results->out, tile->query);
    const int64_t Dv = head->plan->call.Dv, stride = head->geometry->stride;
    const int in_place = stored.type == LOCUS_F32;
    float *out = in_place ? stored.data : online->out;
    const int64_t out_stride = in_place ? stored.stride : Dv;
    const locus_softmax_rows *s = &online->softmax;
    locus_prefetch_rows ahead[2];
    locus_prefetch_take(online->scores.prefetch, ahead);
    kernels->softmax_end(s->lse, s->factor, s->max, s->sum, tile->rows);
    const int64_t parts = tile->whole ? 1 : ceil_div(tile->rows, LOCUS_REGISTER_ROWS);
    const int64_t each[2] = {ceil_div(ahead[0].count, parts), ceil_div(ahead[1].count, parts)};
    for (int64_t i = 0, rows; i < tile->rows; i += rows) {
        int64_t from, to;
        rows = locus_rows_alike(tile, i, &from, &to);
        const locus_prefetch_rows some[2] = {share_of(&ahead[0], each[0]),
                                             share_of(&ahead[1], each[1])};
        kernels->gemm_factor(out + i * out_stride, out_stride,
                             online->scores.score + i * stride + from, stride,
                             values->clean + from * values->clean_stride, values->clean_stride,
                             rows, to - from, Dv, s->factor + i, some);
    }
    for (int64_t i = 0; i < tile->rows; i++)
        if (s->sum[i] == 0.0f) memset(out + i * out_stride, 0, (size_t)Dv * sizeof *out);
    if (!in_place) locus_store_rows(head->plan, stored, out, tile->rows, Dv);
    write_lse(head, online->results, tile->query, s->lse, s->max, s->sum, tile->rows);
    online->written = 1;
}

/* The weights go to the entries of the value table, which wait in the fold. */
static void fold_values(locus_online *online, const locus_tile *tile)
{
    const head_context *head = online->head;
    const locus_softmax_rows *s = &online->softmax;
    const float *weights = online->scores.score;
    const int64_t Dv = head->plan->call.Dv;
    for (int64_t i = 0; online->out_holds && i < tile->rows; i++)
        if (s->rescale[i] != 1.0f)
            locus_strips_scale(head, online->value_fold.strips, i, s->rescale[i]);
    locus_fold_tile_weights(head, tile, weights,
                            head->plan->call.dropout > 0.0 ? NULL : s->tile_sum,
                            &online->value_fold);
    locus_patch(head, tile, weights, (locus_sums){online->out, Dv}, locus_by_row(),
                &online->value_table, locus_by_entry(head->plan, tile), Dv);
}

/* out[i] = rescale[i] out[i] + sum_j P[i][j] (v_j + RV[row(delta)]) */
static void add_values(locus_online *online, const locus_tile *tile)
{
    const head_context *head = online->head;
    const int64_t Dv = head->plan->call.Dv;
    locus_scores *scores = &online->scores;
    if (head->plan->call.dropout > 0.0)
        locus_tile_drop(head, tile, scores->score, scores->score, NULL);
    const locus_operand values = online->path->values(scores, tile, online->clean);
    if (online->results != NULL && !values.any_bad) {
        write_values(online, tile, &values);
        return;
    }
    online->path->add_values(scores, tile, &values, online->out,
                             online->out_holds ? online->softmax.rescale : NULL);
    locus_patch(head, tile, scores->score, (locus_sums){online->out, Dv}, locus_by_row(), &values,
                locus_by_column(), Dv);
    if (locus_value_table(head->plan, head->in) != NULL) fold_values(online, tile);
    online->out_holds = 1;
}

void locus_online_step(locus_online *online, int64_t key_tile)
{
    locus_tile tile;
    if (locus_gates_skip(online->head, &online->queries, online->scores.keys, key_tile)) return;
    if (!locus_tile_begin(online->head, &online->queries, key_tile, &tile)) return;
    const int has_max = online->path->scores(&online->scores, &tile);
    locus_softmax_rows_step(online->head, &tile, online->scores.score, has_max, &online->softmax);
    if (online->kept != NULL)
        locus_kept_step(online->head, &online->queries, &tile, online->scores.score,
                        &online->softmax, !online->out_holds, online->kept);
    add_values(online, &tile);
}

void locus_online_end(locus_online *online)
{
    const locus_plan *plan = online->head->plan;
    const size_t bytes = (size_t)(online->queries.count * plan->call.Dv) * sizeof(float);
    if (!online->out_holds && !online->written) memset(online->out, 0, bytes); /* no key seen */
    if (locus_value_table(plan, online->head->in) != NULL)
        locus_fold_end(online->head, online->queries.count, &online->value_fold);
}

/* out / sum and lse = max + ln sum; a row that saw nothing has sum 0. */
void locus_write_rows(const head_context *head, const locus_results *results, int64_t first,
                      int64_t count, const float *max, const float *sum, float *out)
{
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t Dv = head->plan->call.Dv;
    const locus_rows stored = locus_query_rows(head, &results->out, first);
    const int in_place = stored.type == LOCUS_F32;
    for (int64_t at = 0; at < count; at += LOCUS_LANES) {
        const int64_t some = min_i64(LOCUS_LANES, count - at);
        float lse[LOCUS_LANES], factor[LOCUS_LANES];
        kernels->softmax_end(lse, factor, max + at, sum + at, some);
        write_lse(head, results, first + at, lse, max + at, sum + at, some);
        for (int64_t i = at; i < at + some; i++) {
            float *to = in_place ? (float *)stored.data + i * stored.stride : out + i * Dv;
            if (sum[i] == 0.0f)
                memset(to, 0, (size_t)Dv * sizeof *to);
            else
                kernels->scale(to, out + i * Dv, factor[i - at], Dv);
        }
    }
    if (!in_place) locus_store_rows(head->plan, stored, out, count, Dv);
}

void locus_online_write(const locus_online *online, const locus_results *results)
{
    const locus_queries *q = &online->queries;
    if (online->kept != NULL)
        locus_kept_end(online->head, q, &online->softmax, online->out_holds || online->written,
                       online->kept);
    if (!online->written)
        locus_write_rows(online->head, results, q->first, q->count, online->softmax.max,
                         online->softmax.sum, online->out);
}
