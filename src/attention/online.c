/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/online.h"

#include <math.h>
#include <string.h>

#include "attention/few.h"
#include "core/tensor.h"

/* out[i] += sum of folded weights times value table entries */
static void flush_values(void *context, const locus_head *head, const locus_band *band,
                         const locus_strip *strip, int64_t count)
{
    const locus_block *entries = context;
    const int64_t Dv = head->plan->call.Dv;
    const locus_weights weights = locus_strip_weights(strip);
    locus_add_entries(head, entries, &weights, band->rows, count,
                      head->worker->out + band->first * Dv, Dv, Dv);
}

static float *out_row(const locus_head *head, const locus_results *results, int64_t row)
{
    return locus_f32(&results->out, head->b, head->h, row);
}

static void write_lse(const locus_head *head, const locus_results *results, int64_t first,
                      const float *lse, int64_t count)
{
    float *to = locus_f32(&results->lse, head->b, head->h, first);
    for (int64_t i = 0; i < count; i++) to[i * results->lse.stride[2]] = lse[i];
}

/* Rows from `first` on that see about the same columns, and the columns that one of them sees. */
enum { ROWS_ALIKE = 6 }; /* those of a register tile */
typedef struct some_rows {
    int64_t count, from, to;
} some_rows;

static some_rows rows_alike(const locus_tile *tile, int64_t first)
{
    const int64_t left = tile->rows - first;
    if (tile->whole) return (some_rows){left, 0, tile->columns};
    const int64_t count = locus_least(ROWS_ALIKE, left);
    return (some_rows){count, tile->from[first], tile->to[first + count - 1]};
}

/* Take `count` of the rows, or what is left. */
static locus_ahead share_of(locus_ahead *rows, int64_t count)
{
    locus_ahead share = *rows;
    share.count = locus_least(count, rows->count);
    rows->count -= share.count;
    rows->rows += share.count * rows->row;
    return share;
}

/* The rows of out and lse at once, where one key tile is all. */
static void write_values(locus_online *online, const locus_tile *tile, const float *weights,
                         const locus_block *values)
{
    const locus_head *head = online->head;
    const locus_worker *w = head->worker;
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t Dv = head->plan->call.Dv, stride = head->geometry->stride;
    locus_ahead ahead[2];
    locus_ahead_take(&w->progress->look, ahead);
    kernels->softmax_end(w->lse, w->factor, w->top, w->sum, tile->rows);
    const int64_t parts = tile->whole ? 1 : locus_ceil_div(tile->rows, ROWS_ALIKE);
    const int64_t each[2] = {locus_ceil_div(ahead[0].count, parts),
                             locus_ceil_div(ahead[1].count, parts)};
    for (int64_t i = 0; i < tile->rows;) {
        const some_rows rows = rows_alike(tile, i);
        const locus_ahead some[2] = {share_of(&ahead[0], each[0]), share_of(&ahead[1], each[1])};
        kernels->gemm_times(out_row(head, online->results, tile->query + i),
                            online->results->out.stride[2], weights + i * stride + rows.from,
                            stride, values->clean + rows.from * values->clean_row,
                            values->clean_row, rows.count, rows.to - rows.from, Dv, w->factor + i,
                            some);
        i += rows.count;
    }
    for (int64_t i = 0; i < tile->rows; i++)
        if (w->sum[i] == 0.0f)
            memset(out_row(head, online->results, tile->query + i), 0, (size_t)Dv * sizeof(float));
    write_lse(head, online->results, tile->query, w->lse, tile->rows);
    online->written = 1;
}

static void carry_out(const locus_head *head, int64_t rows)
{
    const locus_worker *w = head->worker;
    const int64_t Dv = head->plan->call.Dv;
    for (int64_t i = 0; i < rows; i++)
        if (w->carry[i] != 1.0f)
            head->plan->kernels->scale(w->out + i * Dv, w->out + i * Dv, w->carry[i], Dv);
}

/* out[i] = carry[i] out[i] + sum_j P[i][j] v_j */
static void mix_values(const locus_online *online, const locus_tile *tile, const float *weights,
                       const locus_block *values)
{
    const locus_head *head = online->head;
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t Dv = head->plan->call.Dv, stride = head->geometry->stride;
    for (int64_t i = 0; i < tile->rows;) {
        const some_rows rows = rows_alike(tile, i);
        float *out = head->worker->out + i * Dv;
        const float *some = weights + i * stride + rows.from;
        const float *seen = values->clean + rows.from * values->clean_row;
        if (online->out_holds)
            kernels->gemm_carry(out, Dv, some, stride, seen, values->clean_row, rows.count,
                                rows.to - rows.from, Dv, head->worker->carry + i);
        else
            kernels->gemm(out, Dv, some, stride, 1, seen, values->clean_row, rows.count,
                          rows.to - rows.from, Dv, 0);
        i += rows.count;
    }
}

/* out[i] = carry[i] out[i] + sum_j P[i][j] (v_j + RV[row(delta)]); the second part waits in
 * the fold. */
static void add_values(locus_online *online, const locus_tile *tile)
{
    const locus_head *head = online->head;
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const int64_t Dv = plan->call.Dv;
    const float *weights = w->score;
    if (plan->call.dropout > 0.0) locus_tile_drop(head, tile, w->score, w->score, NULL);
    const locus_block values = locus_value_block(head, tile, w->clean[0]);
    if (online->results != NULL && !values.any_bad) {
        write_values(online, tile, weights, &values);
        return;
    }
    const int64_t carried = online->out_holds ? tile->rows : 0;
    if (head->unpacked) {
        carry_out(head, carried);
        locus_few_values(head, tile, weights, &values);
    } else
        mix_values(online, tile, weights, &values);
    online->out_holds = 1;
    locus_patch(head, tile, weights, w->out, Dv, locus_by_row(), &values, locus_by_column(), Dv);
    if (locus_value_table(plan, head->in) == NULL) return;

    for (int64_t i = 0; i < carried; i++)
        if (w->carry[i] != 1.0f) locus_strips_scale(head, &online->value_fold, i, w->carry[i]);
    locus_strips_fold(head, tile, weights, plan->call.dropout > 0.0 ? NULL : w->part,
                      &online->value_fold, flush_values, &online->value_table);
    locus_patch(head, tile, weights, w->out, Dv, locus_by_row(), &online->value_table,
                locus_by_entry(head, tile), Dv);
}

void locus_online_begin(locus_online *online, const locus_head *head, int64_t first)
{
    const locus_worker *w = head->worker;
    const locus_tensor *table = locus_value_table(head->plan, head->in);
    online->head = head;
    locus_rows_reach(head, first, &online->rows);
    locus_rows_load(head, &online->rows);
    online->written = 0;
    online->results = NULL;
    online->out_holds = head->unpacked;
    if (head->unpacked)
        memset(w->out, 0, (size_t)(online->rows.count * head->plan->call.Dv) * sizeof *w->out);
    for (int64_t i = 0; i < online->rows.count; i++) {
        w->top[i] = -INFINITY;
        w->sum[i] = 0.0f;
    }
    if (head->plan->index == NULL) return;
    if (table != NULL) {
        online->value_table = locus_entries(head, table, w->value_table_bad);
        online->value_table.of_weights = 1;
    }
    locus_strips_begin(head, w->strips[0], &online->key_strips);
    locus_strips_begin(head, w->strips[1], &online->value_fold);
}

void locus_online_step(locus_online *online, int64_t key_tile)
{
    const locus_worker *w = online->head->worker;
    locus_head head = *online->head;
    head.key_strips = &online->key_strips;
    const locus_finish finish = {.greatest = w->greatest};
    locus_tile tile;
    if (!locus_tile_begin(&head, &online->rows, key_tile, &tile)) return;
    if (head.unpacked && head.tables == NULL) head.bias = locus_few_bias(&head, &tile);
    const int found = locus_tile_scores(&head, &online->rows, &tile, &finish);
    head.plan->kernels->softmax_step(w->score, head.geometry->stride, tile.rows, tile.columns,
                                     locus_tile_seen(&tile), found ? w->greatest : NULL, w->top,
                                     w->sum, w->carry, w->part);
    add_values(online, &tile);
}

void locus_online_flush(locus_online *online)
{
    const locus_head *head = online->head;
    if (locus_value_table(head->plan, head->in) != NULL)
        locus_strips_flush(head, online->rows.count, &online->value_fold, flush_values,
                           &online->value_table);
}

/* out / sum and lse = top + ln sum; a row that saw nothing has sum 0. */
void locus_online_write(const locus_head *head, const locus_rows *rows,
                        const locus_results *results, const float *top, const float *sum,
                        const float *out)
{
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t Dv = head->plan->call.Dv;
    for (int64_t first = 0; first < rows->count; first += LOCUS_LANES) {
        const int64_t count = locus_least(LOCUS_LANES, rows->count - first);
        float lse[LOCUS_LANES], factor[LOCUS_LANES];
        kernels->softmax_end(lse, factor, top + first, sum + first, count);
        write_lse(head, results, rows->first + first, lse, count);
        for (int64_t i = 0; i < count; i++) {
            float *to = out_row(head, results, rows->first + first + i);
            if (sum[first + i] == 0.0f)
                memset(to, 0, (size_t)Dv * sizeof *to);
            else
                kernels->scale(to, out + (first + i) * Dv, factor[i], Dv);
        }
    }
}
