/* SPDX-License-Identifier: Apache-2.0 */
/* The gradient of one tile's scores. With p = e^(s - lse), a = p after dropout:
 *     dA = dout . (v + RV);   ds = p (drop(dA) - delta),  delta = dout . out
 * Where it goes: backward_spread.c. */

#include <math.h>
#include <string.h>

#include "attention/backward.h"
#include "core/tensor.h"

/* An lse of 64 or more has lost so many low bits to its magnitude that e^(s - lse) would be
 * off by 4e-6 and more. Such rows get their maximum and sum anew, in float each. */
static int is_coarse(float lse) { return fabsf(lse) >= 64.0f && isfinite(lse); }

static void refine_coarse_rows(const locus_head *head, const locus_rows *rows)
{
    locus_worker *w = head->worker;
    for (int64_t i = 0; i < rows->count; i++) {
        w->top[i] = -INFINITY;
        w->sum[i] = 0.0f;
    }
    locus_strips key_strips;
    locus_strips_begin(head, w->strips[0], &key_strips);
    locus_head rolling = *head;
    rolling.key_strips = &key_strips;
    const locus_finish finish = {.greatest = w->greatest};
    for (int64_t t = rows->tile_from; t < rows->tile_to; t++) {
        locus_tile tile;
        if (!locus_tile_begin(head, rows, t, &tile)) continue;
        const int found = locus_tile_scores(&rolling, rows, &tile, &finish);
        head->plan->kernels->softmax_step(w->score, head->geometry->stride, tile.rows, tile.columns,
                                          locus_tile_seen(&tile), found ? w->greatest : NULL,
                                          w->top, w->sum, w->carry, w->part);
    }
    for (int64_t i = 0; i < rows->count; i++) {
        if (!is_coarse(w->lse[i]) || w->sum[i] == 0.0f) continue;
        w->lse[i] = w->top[i];
        w->factor[i] = 1.0f / w->sum[i];
    }
}

void locus_backward_rows_begin(const locus_backward_call *call, const locus_head *head,
                               const locus_rows *rows)
{
    const locus_plan *plan = head->plan;
    locus_worker *w = head->worker;
    const int64_t D = plan->call.D, Dv = plan->call.Dv;
    int any_coarse = 0;
    for (int64_t i = 0; i < rows->count; i++) {
        const int64_t row = rows->first + i;
        const float *dout = locus_f32(call->dout, head->b, head->h, row);
        memcpy(w->dout + i * Dv, dout, (size_t)Dv * sizeof *dout);
        w->lse[i] = *locus_f32(&call->results->lse, head->b, head->h, row);
        w->factor[i] = 1.0f;
        any_coarse |= is_coarse(w->lse[i]);
    }
    /* The kernel sums dout . out in the very order in which the tile's product sums dout . v:
     * a row that sees one key, or almost one, then has dS = 0 to the last bit instead of a
     * rounding error that a bias growing with the distance would multiply. */
    const locus_tensor *out = &call->results->out;
    plan->kernels->row_dots(w->delta, w->dout, Dv, locus_f32(out, head->b, head->h, rows->first),
                            out->stride[2], rows->count, Dv);
    locus_rows_find_bad(head, rows);
    if (any_coarse) refine_coarse_rows(head, rows);
    if (plan->index != NULL && w->dposition != w->dcontent)
        memset(w->dposition, 0, (size_t)(rows->count * D) * sizeof *w->dposition);
}

void locus_pass_begin(const locus_backward_call *call, const locus_head *head,
                      const locus_slot *slot, int64_t rows, locus_pass *pass)
{
    pass->call = call;
    pass->slot = slot;
    pass->rows = rows;
    pass->fresh_rows = 1;
    locus_strips_begin(head, head->worker->strips[0], &pass->key_strip);
    locus_strips_begin(head, head->worker->strips[1], &pass->value_strip);
    locus_strips_begin(head, head->worker->strips[2], &pass->key_fold);
    locus_strips_begin(head, head->worker->strips[3], &pass->value_fold);
}

/* delta - shift, in place of shift: what is one for all of a row needs no addition of its own where
 * delta is subtracted. */
static const float *shifted_delta(const locus_worker *w, const locus_band *block)
{
    const float *delta = w->delta + block->first;
    for (int64_t i = 0; i < block->rows; i++) w->shift[i] = delta[i] - w->shift[i];
    return w->shift;
}

/* dA of one block, or dS where nothing stands between the two. */
static void weight_block(const locus_head *head, const locus_tile *tile, const locus_band *block,
                         locus_slice plus, int at_once)
{
    const locus_worker *w = head->worker;
    const int64_t Dv = head->plan->call.Dv, row = head->geometry->stride;
    const int64_t at = block->first * row + block->column;
    locus_product_tile product = {.c = w->grad + at,
                                  .c_row = row,
                                  .a = w->dout + block->first * Dv,
                                  .a_row = Dv,
                                  .panels = w->value_panels +
                                            locus_panel_at(tile->key + block->column, Dv),
                                  .rows = block->rows,
                                  .inner = Dv,
                                  .columns = block->columns,
                                  .plus = plus.data,
                                  .plus_row = plus.row,
                                  .shift = plus.shift,
                                  .weight = at_once ? w->score + at : NULL,
                                  .delta = w->delta + block->first};
    if (at_once && plus.shift != NULL) {
        product.delta = shifted_delta(w, block);
        product.shift = NULL;
    }
    locus_ahead_take(&w->progress->look, product.ahead);
    head->plan->kernels->product(&product);
}

/* grad[i][j] = dA = dout_i . (v_j + RV[row(delta)]), or dS at once: then 1 is returned. */
static int weight_gradients(locus_pass *pass, const locus_head *head, const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *table = locus_value_table(plan, head->in);
    const int at_once = plan->call.dropout == 0.0;
    if (table == NULL) {
        const locus_band all = locus_whole_band(tile);
        weight_block(head, tile, &all, (locus_slice){NULL, 0, NULL}, at_once);
        return at_once;
    }
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(tile, b);
        locus_strip *strip = &pass->value_strip.band[b];
        locus_strip_products(head, &band, head->worker->dout, plan->call.Dv, table,
                             head->worker->value_table_panels, plan->call.Dv, strip);
        for (int64_t column = 0; column < tile->columns;) {
            const locus_band block = locus_block_at(head, &band, column);
            weight_block(head, tile, &block, locus_strip_slice(head, &block, strip), at_once);
            column += block.columns;
        }
    }
    return at_once;
}

void locus_tile_gradients(locus_pass *pass, const locus_head *head, const locus_rows *rows,
                          const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    const locus_worker *w = head->worker;
    locus_head rolling = *head;
    rolling.key_strips = &pass->key_strip;
    const locus_finish finish = {.top = w->lse, .factor = w->factor};
    if (!locus_tile_scores(&rolling, rows, tile, &finish))
        plan->kernels->softmax_again(w->score, head->geometry->stride, tile->rows, tile->columns,
                                     locus_tile_seen(tile), w->lse, w->factor);
    if (weight_gradients(pass, head, tile)) return;
    if (plan->call.dropout > 0.0) locus_tile_drop(head, tile, w->score, w->dropped, w->grad);
    plan->kernels->softmax_grad(w->grad, w->score, head->geometry->stride, tile->rows,
                                tile->columns, w->delta);
}
