/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of a tile's scores goes to what made them; a and ds as in backward_tile.c:
 *     dv_n += a dout_m                      dRV[row] += a dout_m
 *     dq_m += c ds k_n  + c ds RK[row]      dk_n += ds c (q_m + u) + ds c RQ[row]
 *     dRK[row] += ds c (q_m + w)            dRQ[row] += c ds k_n
 *     dpos_q_m += c ds pos_k_n              dpos_k_n += ds c pos_q_m
 *     db(delta) += ds                       dcls += ds where it replaced the position part */

#include <string.h>

#include "attention/backward.h"
#include "attention/near.h"
#include "core/tensor.h"

/* ---- sums over rows and over keys ---- */

static float *kept_weights(const locus_head *head)
{
    return head->plan->call.dropout > 0.0 ? head->worker->dropped : head->worker->score;
}

/* to[j] += sum_i T[i][j] from_i; fresh: to[j] = the sum */
static void add_to_keys(const locus_head *head, const locus_tile *tile, const float *T, float *to,
                        int64_t to_row, const locus_block *from, int64_t width, int fresh)
{
    float *keys = to + tile->key * to_row;
    head->plan->kernels->gemm(keys, to_row, T, 1, head->geometry->stride, from->clean,
                              from->clean_row, tile->columns, tile->rows, width, !fresh);
    locus_patch(head, tile, T, keys, to_row, locus_by_column(), from, locus_by_row(), width);
}

/* to[i] += sum_j T[i][j] from_j; fresh: to[i] = the sum */
static void add_to_rows(const locus_head *head, const locus_tile *tile, const float *T, float *to,
                        const locus_block *from, int64_t width, int fresh)
{
    head->plan->kernels->gemm(to, width, T, head->geometry->stride, 1, from->clean, from->clean_row,
                              tile->rows, tile->columns, width, !fresh);
    locus_patch(head, tile, T, to, width, locus_by_row(), from, locus_by_column(), width);
}

/* ---- relative tables ---- */

/* to[entry] += sum_r strip[r][entry] from_r, r < rows, over `count` columns */
static void add_to_entries(const locus_head *head, const locus_strip *strip, int64_t count,
                           const locus_block *from, int64_t first_row, int64_t rows, float *to,
                           int64_t to_row, int64_t width)
{
    head->plan->kernels->gemm(to + strip->first * to_row, to_row, strip->data, 1, strip->width,
                              from->clean + first_row * from->clean_row, from->clean_row, count,
                              rows, width, 1);
}

static void flush_values(void *context, const locus_head *head, const locus_band *band,
                         const locus_strip *strip, int64_t count)
{
    const locus_pass *pass = context;
    const locus_worker *w = head->worker;
    const int64_t Dv = head->plan->call.Dv;
    const locus_block dout = locus_block_of(w->dout, Dv, pass->rows, Dv, w->dout_bad, w->clean[2]);
    add_to_entries(head, strip, count, &dout, band->first, band->rows, pass->slot->value_table,
                   pass->slot->value_table_row, Dv);
}

/* dposition += folded dS times entries; d(entries) += folded dS times position. */
static void flush_keys(void *context, const locus_head *head, const locus_band *band,
                       const locus_strip *strip, int64_t count)
{
    const locus_pass *pass = context;
    const locus_worker *w = head->worker;
    const int64_t D = head->plan->call.D;
    const locus_block entries =
        locus_entries(head, locus_key_table(head->plan, head->in), w->key_table_bad);
    const locus_weights weights = locus_strip_weights(strip);
    if (pass->call->wanted.q || pass->call->wanted.w)
        locus_add_entries(head, &entries, &weights, band->rows, count,
                          w->dposition + band->first * D, D, D);
    if (pass->slot->key_table == NULL) return;
    const locus_block position =
        locus_block_of(w->position, D, pass->rows, D, w->position_bad, w->clean[1]);
    add_to_entries(head, strip, count, &position, band->first, band->rows, pass->slot->key_table,
                   pass->slot->key_table_row, D);
}

void locus_pass_end(locus_pass *pass, const locus_head *head)
{
    const locus_worker *w = head->worker;
    const size_t bytes = (size_t)(pass->rows * head->plan->call.D) * sizeof(float);
    if (pass->fresh_rows) { /* they see nothing */
        memset(w->dcontent, 0, bytes);
        if (locus_present(&head->in->pos_q)) memset(w->dplace, 0, bytes);
    }
    if (head->plan->index == NULL) return;
    locus_strips_flush(head, pass->rows, &pass->value_fold, flush_values, pass);
    locus_strips_flush(head, pass->rows, &pass->key_fold, flush_keys, pass);
}

static void spread_values(locus_pass *pass, const locus_head *head, const locus_tile *tile)
{
    const locus_worker *w = head->worker;
    const locus_slot *slot = pass->slot;
    const int64_t Dv = head->plan->call.Dv;
    if (slot->v == NULL && slot->value_table == NULL) return;
    locus_block dout = locus_block_of(w->dout, Dv, tile->rows, Dv, w->dout_bad, w->clean[2]);
    dout.of_weights = 1;
    float *weights = kept_weights(head);
    if (slot->v != NULL)
        add_to_keys(head, tile, weights, slot->v, slot->v_row, &dout, Dv, pass->fresh);
    if (slot->value_table == NULL) return;
    locus_near_begin(head, tile, weights);
    locus_near_to_entries(head, tile, weights, &dout,
                          (locus_sums){slot->value_table, slot->value_table_row}, Dv);
    locus_strips_fold_far(head, tile, weights, &pass->value_fold, flush_values, pass);
    locus_patch(head, tile, weights, slot->value_table, slot->value_table_row,
                locus_by_entry(head, tile), &dout, locus_by_row(), Dv);
}

/* dcontent += dS K, through the tile's gain where there is one. */
static void spread_content_rows(const locus_pass *pass, const locus_head *head,
                                const locus_rows *rows, const locus_tile *tile,
                                const locus_block *keys)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const int64_t D = plan->call.D;
    if (!locus_tile_fades(plan, rows, tile)) {
        add_to_rows(head, tile, w->grad, w->dcontent, keys, D, pass->fresh_rows);
        return;
    }
    float *product = w->clean[3];
    add_to_rows(head, tile, w->grad, product, keys, D, 1);
    for (int64_t i = 0; i < tile->rows; i++)
        plan->kernels->fade(w->dcontent + i * D, product + i * D,
                            locus_row_gain(plan, rows, tile, i), D, !pass->fresh_rows);
}

static void spread_content(const locus_pass *pass, const locus_head *head, const locus_rows *rows,
                           const locus_tile *tile, const locus_block *keys)
{
    const locus_backward_call *call = pass->call;
    const locus_slot *slot = pass->slot;
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    const int64_t D = plan->call.D;
    if (call->wanted.q || call->wanted.u) spread_content_rows(pass, head, rows, tile, keys);
    if (slot->k == NULL) return;
    const locus_block content =
        locus_block_of(locus_tile_fades(plan, rows, tile) ? w->faded : w->content, D, tile->rows, D,
                       w->content_bad, w->clean[1]);
    add_to_keys(head, tile, w->grad, slot->k, slot->k_row, &content, D, pass->fresh);
}

static void spread_key_table(locus_pass *pass, const locus_head *head, const locus_tile *tile)
{
    const locus_worker *w = head->worker;
    const locus_slot *slot = pass->slot;
    const locus_wanted *wanted = &pass->call->wanted;
    const int64_t D = head->plan->call.D;
    const locus_tensor *table = locus_key_table(head->plan, head->in);
    if (table == NULL || !(wanted->q || wanted->w || slot->key_table != NULL)) return;
    const locus_block entries = locus_entries(head, table, w->key_table_bad);
    const locus_block position =
        locus_block_of(w->position, D, tile->rows, D, w->position_bad, w->clean[1]);
    locus_near_begin(head, tile, w->grad);
    if (wanted->q || wanted->w) locus_near_to_rows(head, tile, w->grad, &entries, w->dposition, D);
    if (slot->key_table != NULL)
        locus_near_to_entries(head, tile, w->grad, &position,
                              (locus_sums){slot->key_table, slot->key_table_row}, D);
    locus_strips_fold_far(head, tile, w->grad, &pass->key_fold, flush_keys, pass);
    locus_patch(head, tile, w->grad, w->dposition, D, locus_by_row(), &entries,
                locus_by_entry(head, tile), D);
    if (slot->key_table != NULL)
        locus_patch(head, tile, w->grad, slot->key_table, slot->key_table_row,
                    locus_by_entry(head, tile), &position, locus_by_row(), D);
}

static void spread_query_table(const locus_head *head, const locus_tile *tile,
                               const locus_slot *slot, const locus_block *keys)
{
    if (locus_query_table(head->plan, head->in) == NULL) return;
    if (slot->k == NULL && slot->query_table == NULL) return;
    const locus_sums to_keys = {slot->k != NULL ? slot->k + tile->key * slot->k_row : NULL,
                                slot->k_row};
    const locus_sums to_entries = {slot->query_table, slot->query_table_row};
    locus_spread_by_keys(head, tile, head->worker->grad, keys, to_keys, to_entries);
}

/* ---- bias, places, reset ---- */

/* bias[z] += T[i][j], z = most - delta_00 - i + j: the tile's diagonal sums in float, which are
 * added in double. T is 0 where a pair is not seen. */
static void spread_bias(const locus_head *head, const locus_tile *tile, const float *T,
                        const locus_slot *slot)
{
    const int64_t z_00 = head->plan->call.most - tile->delta_00;
    const int64_t last = tile->rows - 1, distances = locus_window_width(tile);
    float *sums = head->worker->diagonal;
    memset(sums, 0, (size_t)distances * sizeof *sums);
    head->plan->kernels->diagonals(sums, T, head->geometry->stride, tile->rows, tile->columns);
    const int64_t low = locus_most(0, last - z_00);
    const int64_t high = locus_least(distances, head->plan->span + last - z_00);
    for (int64_t y = low; y < high; y++) slot->bias[z_00 - last + y] += (double)sums[y];
}

/* Take the pairs whose position part was replaced out of T, into dcls. */
static void spread_reset(const locus_rows *rows, const locus_tile *tile, float *T, int64_t stride,
                         const locus_slot *slot)
{
    double total[2] = {0.0, 0.0};
    for (int64_t i = 0; i < tile->rows; i++) {
        const int first_row = rows->position + i == 0;
        const int64_t columns = first_row ? tile->columns : tile->key == 0 ? 1 : 0;
        for (int64_t j = 0; j < columns; j++) {
            total[first_row ? 0 : 1] += (double)T[i * stride + j];
            T[i * stride + j] = 0.0f;
        }
    }
    if (slot->cls == NULL) return;
    slot->cls[0] += total[0];
    slot->cls[1] += total[1];
}

static void spread_places(const locus_pass *pass, const locus_head *head, const locus_rows *rows,
                          const locus_tile *tile)
{
    const locus_slot *slot = pass->slot;
    const locus_worker *w = head->worker;
    const int64_t D = head->plan->call.D;
    const float *T = w->grad;
    locus_tile placed = *tile;
    placed.skips_reset = head->plan->has_reset;
    if (head->plan->has_reset) {
        T = w->score; /* P is spent */
        memcpy(w->score, w->grad, (size_t)(tile->rows * head->geometry->stride) * sizeof *T);
        spread_reset(rows, tile, w->score, head->geometry->stride, slot);
    }
    if (slot->bias != NULL) spread_bias(head, tile, T, slot);
    if (pass->call->wanted.pos_q) {
        const locus_block places = locus_place_block(head, tile, w->clean[1]);
        add_to_rows(head, &placed, T, w->dplace, &places, D, pass->fresh_rows);
    }
    if (slot->pos_k == NULL) return;
    const locus_block place =
        locus_block_of(w->place, D, tile->rows, D, w->place_row_bad, w->clean[1]);
    add_to_keys(head, &placed, T, slot->pos_k, slot->pos_k_row, &place, D,
                pass->fresh && slot->pos_k_fresh);
}

void locus_tile_spread_dense(const locus_backward_call *call, const locus_head *head,
                             const locus_tile *tile)
{
    const locus_tensor *to = &call->grad->bias_dense;
    for (int64_t i = 0; i < tile->rows; i++) {
        float *row = (float *)to->data + head->b * locus_broadcast_stride(to, 0) +
                     head->h * locus_broadcast_stride(to, 1) + (tile->query + i) * to->stride[2] +
                     tile->key * to->stride[3];
        head->plan->kernels->add(row, head->worker->grad + i * head->geometry->stride,
                                 tile->columns);
    }
}

/* Rows [from, to) of dk and dv, and of dpos_k like them, = 0. */
static void zero_keys(const locus_plan *plan, const locus_slot *slot, int64_t from, int64_t to)
{
    for (int64_t n = from; n < to; n++) {
        if (slot->k != NULL)
            memset(slot->k + n * slot->k_row, 0, (size_t)plan->call.D * sizeof(float));
        if (slot->v != NULL)
            memset(slot->v + n * slot->v_row, 0, (size_t)plan->call.Dv * sizeof(float));
        if (slot->pos_k_fresh)
            memset(slot->pos_k + n * slot->pos_k_row, 0, (size_t)plan->call.D * sizeof(float));
    }
}

/* dk and dv are not zeroed before the first sum is written to them. 1: so it is with all keys
 * of the tile. */
static int begin_keys(const locus_head *head, const locus_tile *tile, const locus_slot *slot)
{
    int32_t *written = &head->worker->written[tile->key / head->geometry->keys];
    const int fresh = *written == 0;
    if (tile->columns <= *written) return 0;
    if (!fresh) zero_keys(head->plan, slot, tile->key + *written, tile->key + tile->columns);
    *written = (int32_t)tile->columns;
    return fresh;
}

void locus_keys_begin(const locus_head *head, int hold_sums)
{
    const int64_t keys = head->geometry->keys;
    const int64_t tiles = locus_ceil_div(head->plan->call.Tk, keys);
    for (int64_t t = 0; t < tiles; t++) head->worker->written[t] = hold_sums ? (int32_t)keys : 0;
}

void locus_keys_end(const locus_head *head, const locus_slot *slot)
{
    const int64_t keys = head->geometry->keys, Tk = head->plan->call.Tk;
    for (int64_t first = 0; first < Tk; first += keys)
        zero_keys(head->plan, slot, first + head->worker->written[first / keys],
                  locus_least(first + keys, Tk));
}

void locus_tile_spread(locus_pass *pass, const locus_head *head, const locus_rows *rows,
                       const locus_tile *tile)
{
    const locus_backward_call *call = pass->call;
    const locus_slot *slot = pass->slot;
    const locus_block keys = locus_key_block(head, tile, head->worker->clean[0]);
    pass->fresh = begin_keys(head, tile, slot);
    spread_values(pass, head, tile);
    spread_content(pass, head, rows, tile, &keys);
    spread_key_table(pass, head, tile);
    spread_query_table(head, tile, slot, &keys);
    if (call->wanted.dense && call->dense_directly) locus_tile_spread_dense(call, head, tile);
    if (locus_present(&head->in->pos_q))
        spread_places(pass, head, rows, tile);
    else if (slot->bias != NULL)
        spread_bias(head, tile, head->worker->grad, slot);
    pass->fresh_rows = 0;
}
