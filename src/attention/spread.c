/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/spread.h"

#include <math.h>
#include <string.h>

#include "attention/bias_parameters.h"
#include "attention/counted.h"
#include "attention/decay_spread.h"
#include "attention/entry_run.h"
#include "attention/gates.h"
#include "attention/key_side.h"
#include "attention/late_bias.h"
#include "attention/placed.h"
#include "attention/sums.h"

/* ---- operands ---- */

/* Rows of the query tile as operands. */
static locus_operand dout_operand(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const int64_t Dv = w->head.plan->call.Dv;
    locus_operand dout = locus_operand_of(rows->dout, rows->dout_stride, rows->queries.count, Dv,
                                          rows->dout_bad, w->clean_dout);
    dout.of_weights = 1;
    return dout;
}
static locus_operand row_operand(const locus_backward_worker *w, const locus_gradient_rows *rows,
                                 const float *data, const uint8_t *bad)
{
    const int64_t D = w->head.plan->call.D;
    return locus_operand_of(data, D, rows->queries.count, D, bad, w->clean_rows);
}
static locus_operand position_operand(const locus_backward_worker *w,
                                      const locus_gradient_rows *rows)
{
    const locus_queries *q = &rows->queries;
    return locus_operand_of(q->with_position, q->position_stride, q->count, w->head.plan->key_width,
                            q->position_bad, w->clean_rows);
}

/* ---- relative tables ---- */

/* to[entry] += sum_r strip[r][entry] from_r over the rows of a band and `count` entries */
static void add_to_entries(const head_context *head, const locus_band *band,
                           const locus_strip *strip, int64_t count, const locus_operand *from,
                           locus_sums to, int64_t width)
{
    head->plan->kernels->gemm(to.data + strip->first * to.row_stride, to.row_stride, strip->data, 1,
                              strip->row_stride, from->clean + band->first * from->clean_stride,
                              from->clean_stride, count, band->rows, width, 1);
}

static void flush_values(void *context, const head_context *head, const locus_band *band,
                         const locus_strip *strip, int64_t count)
{
    const locus_backward_worker *w = context;
    const locus_operand dout = dout_operand(w, w->folded);
    add_to_entries(head, band, strip, count, &dout, w->slot->value_table, head->plan->call.Dv);
}

/* 1 where a gradient is wanted that goes through dposition. */
static int wants_position(const locus_backward_worker *w)
{
    const locus_wanted *wanted = &w->call->wanted;
    return w->head.plan->own_query ? wanted->pos_query : wanted->q || wanted->w;
}

/* dposition += folded dS times entries; d(entries) += folded dS times position. */
static void flush_keys(void *context, const head_context *head, const locus_band *band,
                       const locus_strip *strip, int64_t count)
{
    const locus_backward_worker *w = context;
    const int64_t D = head->plan->key_width;
    const locus_operand entries =
        locus_entries(head, locus_key_table(head->plan, head->in), w->tables.key_bad);
    const locus_weights weights = locus_strip_weights(strip);
    if (wants_position(w))
        locus_add_entries(head, &entries, &weights, band->rows, count,
                          (locus_sums){w->folded->dposition + band->first * D, D}, D);
    if (w->slot->key_table.data == NULL) return;
    const locus_operand position = position_operand(w, w->folded);
    add_to_entries(head, band, strip, count, &position, w->slot->key_table, D);
}

void locus_spread_begin(locus_backward_worker *w, locus_gradient_rows *rows)
{
    w->folded = rows;
    locus_fold_begin(&w->head, w->key_fold_room, flush_keys, w, &w->key_fold);
    locus_fold_begin(&w->head, w->value_fold_room, flush_values, w, &w->value_fold);
}

void locus_spread_end(locus_backward_worker *w, locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const int64_t count = rows->queries.count;
    const size_t bytes = (size_t)(count * plan->call.D) * sizeof(float);
    if (rows->fresh) { /* they see nothing */
        memset(rows->dcontent, 0, bytes);
        if (rows->dpos_q != NULL) memset(rows->dpos_q, 0, bytes);
    }
    if (plan->index == NULL) return;
    locus_fold_end(&w->head, count, &w->value_fold);
    locus_fold_end(&w->head, count, &w->key_fold);
}

static void spread_values(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const head_context *head = &w->head;
    const locus_slot *slot = w->slot;
    const int64_t Dv = head->plan->call.Dv;
    if (slot->v.data == NULL && slot->value_table.data == NULL) return;
    const locus_operand dout = dout_operand(w, rows);
    if (slot->v.data != NULL)
        locus_add_to_keys(head, &w->tile, w->weights, slot->v, &dout, Dv, w->fresh_keys);
    if (slot->value_table.data == NULL) return;
    locus_entry_run_begin(head, &w->tile, w->weights);
    locus_entry_run_to_entries(head, &w->tile, w->weights, &dout, slot->value_table, Dv);
    locus_fold_outside_run(head, &w->tile, w->weights, &w->value_fold);
    locus_patch(head, &w->tile, w->weights, slot->value_table, locus_by_entry(head->plan, &w->tile),
                &dout, locus_by_row(), Dv);
}

static void spread_key_table(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const head_context *head = &w->head;
    const locus_slot *slot = w->slot;
    const int to_rows = wants_position(w);
    const int64_t D = head->plan->key_width;
    const locus_tensor *table = locus_key_table(head->plan, head->in);
    if (table == NULL || !(to_rows || slot->key_table.data != NULL)) return;
    const locus_sums dposition = {rows->dposition, D};
    const locus_operand entries = locus_entries(head, table, w->tables.key_bad);
    const locus_operand position = position_operand(w, rows);
    locus_entry_run_begin(head, &w->tile, w->grad);
    if (to_rows) locus_entry_run_to_rows(head, &w->tile, w->grad, &entries, dposition, D);
    if (slot->key_table.data != NULL)
        locus_entry_run_to_entries(head, &w->tile, w->grad, &position, slot->key_table, D);
    locus_fold_outside_run(head, &w->tile, w->grad, &w->key_fold);
    locus_patch(head, &w->tile, w->grad, dposition, locus_by_row(), &entries,
                locus_by_entry(head->plan, &w->tile), D);
    if (slot->key_table.data != NULL)
        locus_patch(head, &w->tile, w->grad, slot->key_table, locus_by_entry(head->plan, &w->tile),
                    &position, locus_by_row(), D);
}

static void spread_key_side_table(const locus_backward_worker *w, const locus_operand *keys)
{
    const head_context *head = &w->head;
    const locus_slot *slot = w->slot;
    const locus_tensor *table = locus_key_side_table(head->plan, head->in);
    if (table == NULL || (slot->k.data == NULL && slot->key_side_table.data == NULL)) return;
    const locus_operand entries = locus_entries(head, table, w->tables.key_side_bad);
    locus_key_side_gradients gradients = {.keys = keys,
                                          .entries = &entries,
                                          .key_strip = w->scores.key_strip,
                                          .to_keys = slot->k,
                                          .to_entries = slot->key_side_table};
    if (slot->k.data != NULL) gradients.to_keys.data += w->tile.key * slot->k.row_stride;
    locus_key_side_spread(head, &w->tile, w->grad, &gradients);
}

/* ---- content ---- */

/* 1 where dq = scale (dS K) of one key tile and nothing more; of few keys, that gains nothing. */
static int makes_dq(const locus_backward_worker *w, const locus_gradient_rows *rows,
                    const locus_operand *keys)
{
    const locus_plan *plan = w->head.plan;
    const locus_queries *q = &rows->queries;
    return w->call->wanted.q && !w->call->wanted.u && !w->call->accumulate && !keys->any_bad &&
           q->tile_to - q->tile_from == 1 && w->tile.columns >= LOCUS_PANEL &&
           plan->turn_query == NULL && !plan->has_decay && plan->index == NULL &&
           !locus_is_half(&w->call->grad->q);
}

/* The product itself scales its sums and writes them to dq: no pass over the rows does. */
static void write_dq(const locus_backward_worker *w, locus_gradient_rows *rows,
                     const locus_operand *keys)
{
    const locus_plan *plan = w->head.plan;
    const locus_tile *tile = &w->tile;
    const int64_t stride = w->head.geometry->stride;
    const locus_rows dq = locus_query_rows(&w->head, &w->call->grad->q, tile->query);
    const locus_prefetch_rows none[2] = {{0}};
    float factor[MAX_TILE_ROWS];
    for (int64_t i = 0; i < tile->rows; i++) factor[i] = (float)plan->call.scale;
    for (int64_t b = 0; b < tile->block_count; b++) {
        const locus_block *block = &tile->blocks[b];
        plan->kernels->gemm_factor((float *)dq.data + block->first * dq.stride, dq.stride,
                                   w->grad + block->first * stride + block->from, stride,
                                   keys->clean + block->from * keys->clean_stride,
                                   keys->clean_stride, block->rows, block->to - block->from,
                                   plan->call.D, factor, none);
    }
    rows->dq_is_written = 1;
}

/* dcontent += dS K, through the tile's gain where there is one. */
static void spread_to_content(const locus_backward_worker *w, locus_gradient_rows *rows,
                              const locus_operand *keys, int has_gain)
{
    const locus_plan *plan = w->head.plan;
    const int64_t D = plan->call.D;
    if (makes_dq(w, rows, keys)) {
        write_dq(w, rows, keys);
        return;
    }
    if (!has_gain) {
        locus_add_to_rows(&w->head, &w->tile, w->grad, rows->dcontent, keys, D, rows->fresh);
        return;
    }
    locus_add_to_rows(&w->head, &w->tile, w->grad, w->gain_product, keys, D, 1);
    for (int64_t i = 0; i < w->tile.rows; i++)
        plan->kernels->mul_gain(rows->dcontent + i * D, w->gain_product + i * D,
                                locus_row_gain(plan, &rows->queries, i, w->tile.key), D,
                                !rows->fresh);
}

static void spread_content(const locus_backward_worker *w, locus_gradient_rows *rows,
                           const locus_operand *keys)
{
    const locus_wanted *wanted = &w->call->wanted;
    const locus_queries *q = &rows->queries;
    if (w->head.plan->has_decay) {
        const locus_operand decayed =
            row_operand(w, rows, w->scores.with_gain, rows->queries.content_bad);
        locus_spread_decayed(w, rows, keys, &decayed);
        return;
    }
    const int has_gain = locus_rows_have_gain(w->head.plan, q, w->tile.key);
    if (wanted->q || wanted->u) spread_to_content(w, rows, keys, has_gain);
    if (w->slot->k.data == NULL) return;
    const locus_operand content =
        row_operand(w, rows, has_gain ? w->scores.with_gain : q->content, q->content_bad);
    locus_add_to_keys(&w->head, &w->tile, w->grad, w->slot->k, &content, w->head.plan->call.D,
                      w->fresh_keys);
}

/* What row i gives to dposition and to an entry that a pair of it has a share of, ds, where either is
 * not finite. */
static void patch_counted_pair(const locus_backward_worker *w, const locus_operand *entries,
                               const locus_operand *position, int64_t i, int64_t entry, float ds)
{
    const int64_t D = w->head.plan->key_width;
    const locus_sums to = w->slot->key_table;
    for (int64_t d = 0; entries->bad[entry] && d < D; d++)
        w->folded->dposition[i * D + d] += ds * entries->raw[entry * entries->raw_stride + d];
    for (int64_t d = 0; to.data != NULL && position->bad[i] && d < D; d++)
        to.data[entry * to.row_stride + d] += ds * position->raw[i * position->raw_stride + d];
}

static void patch_counted(const locus_backward_worker *w, const locus_operand *entries,
                          const locus_operand *position)
{
    const locus_counted *c = &w->scores.counted;
    const locus_tile *tile = &w->tile;
    const int64_t last = w->head.plan->row_count - 1;
    for (int64_t i = 0; i < tile->rows; i++)
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) {
            const int64_t at = i * w->head.geometry->stride + j, low = c->low[at];
            const float share = c->share[at], ds = w->grad[at];
            if (low < 0) continue;
            patch_counted_pair(w, entries, position, i, low, (1.0f - share) * ds);
            if (low < last && !isnan(share))
                patch_counted_pair(w, entries, position, i, low + 1, share * ds);
        }
}

/* dS of pairs that count is folded to their entries; then it is that of the content alone. */
static void spread_counted(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_tensor *table = locus_key_table(w->head.plan, w->head.in);
    const locus_operand entries = locus_entries(&w->head, table, w->tables.key_bad);
    const locus_operand position = position_operand(w, rows);
    if (entries.any_bad || position.any_bad) patch_counted(w, &entries, &position);
    locus_fold_begin_entries(&w->head, &w->tile, &w->key_fold);
    locus_counted_spread(&w->scores, &w->tile, w->grad, w->key_fold.strips);
}

/* ---- bias, positions, reset ---- */

/* bias[z] += T[i][j], z = most - delta_00 - i + j: the tile's diagonal sums in float, which are
 * added in double. T is 0 where a pair is not seen. */
static void spread_bias(const locus_backward_worker *w, const float *T)
{
    const locus_plan *plan = w->head.plan;
    const locus_tile *tile = &w->tile;
    for (int64_t i = 0; plan->place_axes > 0 && i < tile->rows; i++)
        locus_placed_sum(&w->head, tile, i, T + i * w->head.geometry->stride, w->slot->bias);
    if (plan->place_axes > 0) return;
    const int64_t z_00 = locus_z_of(plan, tile->delta_00);
    const int64_t last = tile->rows - 1, distances = locus_tile_distances(tile);
    float *sums = w->diagonal;
    memset(sums, 0, (size_t)distances * sizeof *sums);
    plan->kernels->diagonals(sums, T, w->head.geometry->stride, tile->rows, tile->columns);
    const int64_t low = max_i64(0, last - z_00);
    const int64_t high = min_i64(distances, plan->span + last - z_00);
    for (int64_t y = low; y < high; y++) w->slot->bias[z_00 - last + y] += (double)sums[y];
}

/* Row i of the below where the bias or the gate is no number: over the seen pairs alone, since 0 times
 * it is none either. Returns the sum. */
static double spread_seen_gate(const locus_backward_worker *w, int64_t i, const float *bias)
{
    const locus_tile *tile = &w->tile;
    const int64_t at = i * w->head.geometry->stride;
    const float gate = locus_gate_of(&w->head, tile->query + i);
    double sum = 0.0;
    memset(w->gated + at, 0, (size_t)tile->columns * sizeof *w->gated);
    for (int64_t j = tile->from[i]; j < tile->to[i]; j++) {
        if (!locus_tile_sees(&w->head, tile, i, j)) continue;
        sum += (double)w->grad[at + j] * (double)bias[j - tile->from[i]];
        w->gated[at + j] = w->grad[at + j] * gate;
    }
    return sum;
}

/* dgate[i] += sum_j dS[i][j] bias[z]; and dS times the gates, which the bias is added by. */
static void spread_bias_gates(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const head_context *head = &w->head;
    const locus_plan *plan = head->plan;
    const locus_tile *tile = &w->tile;
    const int64_t stride = head->geometry->stride;
    const float *bias = locus_tile_bias(plan, w->scores.bias, tile);
    for (int64_t i = 0; i < tile->rows; i++) {
        const int64_t from = tile->from[i], count = tile->to[i] - from;
        const float *ds = w->grad + i * stride;
        const float gate = locus_gate_of(head, tile->query + i);
        const float *row = count > 0 ? locus_gated_bias(&w->scores, tile, bias, i) : NULL;
        double sums[2] = {0.0, 0.0};
        if (count > 0) plan->kernels->moments(sums, ds + from, row, count);
        if (isfinite(sums[1]) && isfinite(gate))
            plan->kernels->scale(w->gated + i * stride, ds, gate, tile->columns);
        else
            sums[1] = spread_seen_gate(w, i, row);
        rows->dgate[i] += sums[1];
    }
}

static void spread_gated_bias(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    if (w->call->wanted.gate || w->slot->bias != NULL) spread_bias_gates(w, rows);
    if (w->slot->bias != NULL) spread_bias(w, w->gated);
}

static void spread_run(const locus_backward_worker *w, int64_t m, int64_t n, int64_t count,
                       const double *ds, const locus_tensors *twins)
{
    const locus_call *call = &w->head.plan->call;
    const double *shared = w->scores.shared;
    if (shared != NULL)
        call->scheme->shared_grad(call, w->head.in, shared, w->head.h, m, n, count, ds, twins);
    else
        call->scheme->bias_grad(call, w->head.in, w->head.h, m, n, count, ds, twins);
}

/* The same of a bias by pair, run by run, to its parameters. */
static void spread_pair_bias(const locus_backward_worker *w)
{
    const locus_plan *plan = w->head.plan;
    const locus_tile *tile = &w->tile;
    const locus_tensors twins = locus_bias_twins(plan, w->slot->pair_bias);
    for (int64_t i = 0; i < tile->rows; i++) {
        const float *ds = w->grad + i * w->head.geometry->stride;
        int64_t m, n, count;
        for (int64_t j = tile->from[i]; j < tile->to[i]; j++) w->pair_ds[j] = (double)ds[j];
        for (int64_t j = tile->from[i]; j < tile->to[i]; j += count) {
            count = locus_placed_run(&w->head, tile, i, j, &m, &n);
            spread_run(w, m, n, count, w->pair_ds + j, &twins);
        }
    }
}

/* Take the pairs whose position part was replaced out of T, into dcls. */
static void spread_reset(const locus_backward_worker *w, const locus_gradient_rows *rows, float *T)
{
    const locus_tile *tile = &w->tile;
    const int64_t stride = w->head.geometry->stride;
    const int64_t first = locus_position_row(w->head.plan, rows->queries.position);
    const int64_t first_key = locus_position_row(w->head.plan, tile->key);
    double total[CLS_ROWS] = {0.0};
    const int64_t corner = w->head.in->cls.shape[0] - 1; /* the row of m = n = 0 */
    for (int64_t i = 0; i < tile->rows; i++) {
        const int first_row = first + i == 0;
        const int64_t columns = first_row ? tile->columns : first_key == 0 ? 1 : 0;
        for (int64_t j = 0; j < columns; j++) {
            const int is_corner = first_row && j == 0 && first_key == 0 && corner == 2;
            total[is_corner ? 2 : first_row ? 0 : 1] += (double)T[i * stride + j];
            T[i * stride + j] = 0.0f;
        }
    }
    if (w->slot->cls == NULL) return;
    for (int r = 0; r < CLS_ROWS; r++) w->slot->cls[r] += total[r];
}

/* dS in the room of P, which is spent, without the pairs that are reset. */
static float *take_reset(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    float *T = w->scores.score;
    memcpy(T, w->grad, (size_t)(w->tile.rows * w->head.geometry->stride) * sizeof *T);
    spread_reset(w, rows, T);
    return T;
}

static void spread_reset_bias(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    if (w->slot->bias == NULL && w->slot->cls == NULL) return;
    const float *T = take_reset(w, rows);
    if (w->slot->bias != NULL) spread_bias(w, T);
}

static void spread_positions(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const head_context *head = &w->head;
    const locus_slot *slot = w->slot;
    const int64_t D = head->plan->call.D;
    locus_tile *tile = &w->tile;
    float *T = w->grad;
    if (head->plan->has_reset) T = take_reset(w, rows);
    if (slot->bias != NULL) spread_bias(w, T);
    tile->skips_reset = head->plan->has_reset;
    if (w->call->wanted.pos_q) {
        const locus_operand pos_k =
            locus_pos_k_operand(head, &w->tables, tile->key, tile->columns, w->clean_rows);
        locus_add_to_rows(head, tile, T, rows->dpos_q, &pos_k, D, rows->fresh);
    }
    if (slot->pos_k.data == NULL) return;
    const locus_operand pos_q =
        row_operand(w, rows, rows->queries.pos_q_rows, rows->queries.pos_bad);
    locus_add_to_keys(head, tile, T, slot->pos_k, &pos_q, D, w->fresh_keys && slot->pos_k_fresh);
}

void locus_spread_dense(const locus_backward_worker *w)
{
    const head_context *head = &w->head;
    const locus_tile *tile = &w->tile;
    const locus_tensor *to = &w->call->grad->bias_dense;
    const int64_t b = to->shape[0] == 1 ? 0 : head->b, h = to->shape[1] == 1 ? 0 : head->h;
    const int64_t columns = tile->columns;
    for (int64_t i = 0; i < tile->rows; i++) {
        const float *from = w->grad + i * head->geometry->stride;
        const int64_t at = locus_offset(to, b, h, tile->query + i, tile->key);
        if (!locus_is_half(to)) {
            head->plan->kernels->add((float *)to->data + at, from, columns);
        } else if (w->dense_sums != NULL) {
            float *sums = w->dense_sums + i * head->plan->call.Tk + tile->key;
            head->plan->kernels->add(sums, from, columns);
        } else {
            float sums[MAX_TILE_KEYS];
            memcpy(sums, from, (size_t)columns * sizeof *sums);
            locus_store_sums(head->plan, (locus_rows){(uint16_t *)to->data + at, 0, to->dtype},
                             sums, 1, columns, 1);
        }
    }
}

/* ---- dk and dv ---- */

/* Rows [from, to) of dk and dv, and of dpos_k like them, = 0. */
static void zero_keys(const locus_backward_worker *w, int64_t from, int64_t to)
{
    const locus_slot *slot = w->slot;
    const locus_call *call = &w->head.plan->call;
    if (slot->k.data != NULL) locus_zero_rows(slot->k, from, to, call->D);
    if (slot->v.data != NULL) locus_zero_rows(slot->v, from, to, call->Dv);
    if (slot->pos_k_fresh) locus_zero_rows(slot->pos_k, from, to, call->D);
}

/* dk and dv are not zeroed before the first sum is written to them; w->written says how many of each
 * key tile, counted from its first, hold sums or zeros. 1: none of the tile's keys did. */
static int begin_keys(locus_backward_worker *w)
{
    const locus_tile *tile = &w->tile;
    const int64_t number = tile->key / w->head.geometry->keys;
    const int64_t first = number * w->head.geometry->keys, from = tile->key - first;
    const int64_t to = from + tile->columns, written = w->written[number];
    const int fresh = written <= from;
    if (to <= written) return 0;
    zero_keys(w, first + written, first + (fresh ? from : to));
    w->written[number] = (int32_t)to;
    return fresh;
}

void locus_spread_keys_begin(locus_backward_worker *w, int hold_sums)
{
    const int64_t keys = w->head.geometry->keys;
    const int64_t tiles = ceil_div(w->head.plan->call.Tk, keys);
    for (int64_t t = 0; t < tiles; t++) w->written[t] = hold_sums ? (int32_t)keys : 0;
}

void locus_spread_keys_end(const locus_backward_worker *w)
{
    const int64_t keys = w->head.geometry->keys, Tk = w->head.plan->call.Tk;
    for (int64_t first = 0; first < Tk; first += keys)
        zero_keys(w, first + w->written[first / keys], min_i64(first + keys, Tk));
}

void locus_spread_tile(locus_backward_worker *w, locus_gradient_rows *rows)
{
    const locus_tile *tile = &w->tile;
    const locus_operand keys =
        locus_key_operand(&w->head, &w->keys, tile->key, tile->columns, w->clean_keys);
    w->fresh_keys = begin_keys(w);
    spread_values(w, rows);
    if (w->call->wanted.dense && w->call->dense_directly) locus_spread_dense(w);
    if (w->slot->gate_sums != NULL)
        locus_spread_gates(&w->head, tile, w->grad, w->column_sums, rows->dgate_sum,
                           w->slot->gate_sums);
    if (w->scores.cap_slopes != NULL)
        locus_tile_uncap(&w->head, tile, w->scores.cap_slopes, w->grad);
    if (w->head.plan->counts) spread_counted(w, rows);
    spread_content(w, rows, &keys);
    if (!w->head.plan->counts) spread_key_table(w, rows);
    spread_key_side_table(w, &keys);
    if (locus_present(&w->head.in->pos_q))
        spread_positions(w, rows);
    else if (w->head.plan->has_reset)
        spread_reset_bias(w, rows);
    else if (w->head.plan->has_gate)
        spread_gated_bias(w, rows);
    else if (w->slot->bias != NULL)
        spread_bias(w, w->grad);
    if (w->slot->pair_bias != NULL) spread_pair_bias(w);
    rows->fresh = 0;
}
