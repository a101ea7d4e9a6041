/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/gradients.h"

#include <math.h>
#include <string.h>

#include "attention/gate_skip.h"
#include "attention/kept.h"
#include "attention/placed.h"

/* ---- rows ---- */

/* An lse of 64 or more has lost so many low bits to its magnitude that e^(s - lse) would be
 * off by 4e-6 and more. Such rows get their maximum and sum anew, in float each. */
static int is_coarse(float lse) { return fabsf(lse) >= 64.0f && isfinite(lse); }

static void refine_coarse_rows(locus_backward_worker *w, locus_gradient_rows *rows)
{
    const locus_queries *q = &rows->queries;
    locus_softmax_rows_begin(&w->head, 1, q->count, &w->softmax);
    w->scores.queries = q;
    w->scores.max_lanes = w->softmax.max_lanes;
    w->scores.lse = NULL;
    locus_scores_begin(&w->scores);
    for (int64_t n = 0; n < q->tile_to - q->tile_from; n++) {
        const int64_t t = locus_tile_in_turn(w->head.plan, q->tile_from, q->tile_to, n);
        if (!locus_tile_begin(&w->head, q, t, &w->tile)) continue;
        const int has_max = locus_packed.scores(&w->scores, &w->tile);
        locus_softmax_rows_step(&w->head, &w->tile, w->scores.score, has_max, &w->softmax);
    }
    for (int64_t i = 0; i < q->count; i++) {
        if (!is_coarse(rows->lse[i]) || w->softmax.sum[i] == 0.0f) continue;
        rows->lse[i] = w->softmax.max[i];
        rows->factor[i] = 1.0f / w->softmax.sum[i];
    }
}

/* With a sink, a row that sees no key has lse = sink and out = 0. Nothing flows back from that out,
 * whatever dout holds: 0 times NaN is not to reach the sink. */
static void mend_unseeing_rows(const locus_backward_worker *w, locus_gradient_rows *rows)
{
    const float sink = locus_head_sink(&w->head);
    for (int64_t i = 0; i < rows->queries.count; i++) {
        if (!isnan(rows->row_dot[i]) || rows->lse[i] != sink) continue;
        const locus_tensor *out = &w->call->results->out;
        int is_zero = 1;
        for (int64_t c = 0; c < w->head.plan->call.Dv; c++)
            is_zero &= locus_get(out, w->head.b, w->head.h, rows->queries.first + i, c) == 0.0;
        if (is_zero) rows->row_dot[i] = 0.0f;
    }
}

/* Rows of dout are read where they lie, if that is side by side. */
static void load_dout(const locus_backward_worker *w, locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const locus_queries *q = &rows->queries;
    const int64_t Dv = plan->call.Dv;
    const locus_rows stored = locus_query_rows(&w->head, w->call->dout, q->first);
    if (stored.type == LOCUS_F32 && !locus_rows_share_sets(stored.stride, Dv)) {
        rows->dout = stored.data;
        rows->dout_stride = stored.stride;
        return;
    }
    locus_load_rows(plan, rows->dout_rows, stored, q->count, Dv);
    rows->dout = rows->dout_rows;
    rows->dout_stride = Dv;
}

static void load_results(locus_backward_worker *w, locus_gradient_rows *rows)
{
    const head_context *head = &w->head;
    const locus_queries *q = &rows->queries;
    const locus_tensor *out = &w->call->results->out, *low = &w->call->results->lse_low;
    const int64_t Dv = head->plan->call.Dv;
    const float *lse = locus_query_row(head, &w->call->results->lse, q->first);
    const int64_t step = w->call->results->lse.stride[2];
    load_dout(w, rows);
    for (int64_t i = 0; i < q->count; i++) {
        rows->lse[i] = lse[i * step];
        rows->factor[i] = 1.0f;
    }
    /* e^(s - lse - low) = e^(s - lse) e^-low */
    for (int64_t i = 0; locus_present(low) && i < q->count; i++)
        rows->factor[i] = expf(-*locus_query_row(head, low, q->first + i));
    /* The kernel sums dout . out in the very order in which the tile's product sums dout . v:
     * a row that sees one key, or almost one, then has dS = 0 to the last bit instead of a
     * rounding error that a bias growing with the distance would multiply. */
    locus_rows outputs = locus_query_rows(head, out, q->first);
    if (outputs.type != LOCUS_F32) {
        locus_load_rows(head->plan, w->clean_dout, outputs, q->count, Dv);
        outputs = (locus_rows){w->clean_dout, Dv, LOCUS_F32};
    }
    head->plan->kernels->row_dots(rows->row_dot, rows->dout, rows->dout_stride, outputs.data,
                                  outputs.stride, q->count, Dv);
    if (locus_present(&head->in->sink)) mend_unseeing_rows(w, rows);
    /* d lse_i / d s_ij = P_ij, so dS = P (dA - (dout . out - dlse)) */
    for (int64_t i = 0; w->call->dlse != NULL && i < q->count; i++)
        if (rows->lse[i] != -INFINITY)
            rows->row_dot[i] -= (float)locus_get(w->call->dlse, head->b, head->h, q->first + i, 0);
    locus_find_bad(head, !head->all_seen || locus_value_table(head->plan, head->in) != NULL,
                   rows->dout_bad, rows->dout, rows->dout_stride, q->count, Dv);
}

void locus_gradient_rows_begin(locus_backward_worker *w, int64_t first, locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    locus_queries *q = &rows->queries;
    locus_queries_reach(&w->head, first, q);
    locus_shown_reach(&w->head, q);
    locus_queries_load(&w->head, q);
    locus_queries_find_bad(&w->head, q);
    load_results(w, rows);
    locus_gates_lead(&w->head, q, rows->lse);
    for (int64_t i = 0; q->lead != NULL && i < q->count; i++)
        if (rows->dout_bad[i]) q->lead[i] = INFINITY; /* which dv of all its keys gets */
    int any_coarse = 0;
    for (int64_t i = 0; !locus_present(&w->call->results->lse_low) && i < q->count; i++)
        any_coarse |= is_coarse(rows->lse[i]);
    if (any_coarse && w->kept == NULL) refine_coarse_rows(w, rows);
    if (plan->index != NULL && !plan->same_query_rows)
        memset(rows->dposition, 0, (size_t)(q->count * plan->key_width) * sizeof *rows->dposition);
    if (rows->dgate != NULL) memset(rows->dgate, 0, (size_t)q->count * sizeof *rows->dgate);
    if (rows->dgate_sum != NULL)
        memset(rows->dgate_sum, 0, (size_t)q->count * sizeof *rows->dgate_sum);
    rows->fresh = 1;
    rows->dq_is_written = 0;
    locus_scores_begin(&w->scores);
    locus_strips_begin(&w->head, w->value_strip_room, w->value_strips);
}

/* ---- tiles ---- */

/* A row whose every logit is -inf has output 0 and gradient 0: it sees nothing, whatever
 * made the logits so. */
int locus_gradient_tile_begin(locus_backward_worker *w, const locus_gradient_rows *rows,
                              int64_t key_tile)
{
    locus_tile *tile = &w->tile;
    if (locus_gates_skip(&w->head, &rows->queries, &w->keys, key_tile)) return 0;
    if (!locus_tile_begin(&w->head, &rows->queries, key_tile, tile)) return 0;
    for (int64_t i = 0; i < tile->rows; i++) {
        if (rows->lse[i] != -INFINITY) continue;
        tile->from[i] = tile->to[i] = 0;
        tile->whole = 0;
        tile->ragged = 1;
    }
    return 1;
}

/* Pairs of given positions have their own value rows, which are added to dA after its product. */
static int values_come_late(const locus_plan *plan, const locus_tensors *in)
{
    return plan->place_axes > 0 && locus_value_table(plan, in) != NULL;
}

/* dA of one segment, plus what the product adds; or dS where nothing stands between the two. */
static void multiply_values(locus_backward_worker *w, const locus_gradient_rows *rows,
                            const locus_band *segment, locus_product_tile *product)
{
    const locus_plan *plan = w->head.plan;
    const int64_t Dv = plan->call.Dv, stride = w->head.geometry->stride;
    const int64_t at = segment->first * stride + segment->column;
    float shifted[MAX_TILE_ROWS];
    product->c = w->grad + at;
    product->c_stride = stride;
    product->a = rows->dout + segment->first * rows->dout_stride;
    product->a_stride = rows->dout_stride;
    product->panels = w->keys.value_panels + locus_panel_at(w->tile.key + segment->column, Dv);
    product->rows = segment->rows;
    product->inner = Dv;
    product->columns = segment->columns;
    const int fused = plan->call.dropout == 0.0 && !values_come_late(plan, w->head.in);
    product->weight = fused ? w->scores.score + at : NULL;
    product->row_dot = rows->row_dot + segment->first;
    if (product->weight != NULL && product->shift != NULL) {
        /* what is one for all of a row needs no addition of its own where row_dot is subtracted */
        for (int64_t i = 0; i < segment->rows; i++)
            shifted[i] = product->row_dot[i] - product->shift[i];
        product->row_dot = shifted;
        product->shift = NULL;
    }
    locus_prefetch_take(&w->prefetch, product->prefetch);
    plan->kernels->product(product);
}

/* Of a block without tables; 0 outside. */
static void multiply_block(locus_backward_worker *w, const locus_gradient_rows *rows,
                           const locus_block *block)
{
    const int64_t stride = w->head.geometry->stride, columns = w->tile.columns;
    locus_band part = locus_whole_tile(w->head.plan, &w->tile);
    locus_product_tile product = {0};
    part.first = block->first;
    part.rows = block->rows;
    part.column = block->from;
    part.columns = block->to - block->from;
    if (part.columns > 0) multiply_values(w, rows, &part, &product);
    for (int64_t i = block->first; part.columns < columns && i < block->first + block->rows; i++) {
        float *row = w->grad + i * stride;
        memset(row, 0, (size_t)block->from * sizeof *row);
        memset(row + block->to, 0, (size_t)(columns - block->to) * sizeof *row);
    }
}

static void add_placed_values(locus_backward_worker *w, const locus_gradient_rows *rows,
                              const locus_table_product *table)
{
    const locus_band whole = locus_whole_tile(w->head.plan, &w->tile);
    locus_product_tile product = {0};
    locus_packed_placed_strips(&w->head, &w->tile, table, w->value_strips);
    multiply_values(w, rows, &whole, &product);
    for (int64_t i = 0; i < w->tile.rows; i++)
        locus_placed_add_strip(&w->head, &w->tile, i, w->value_strips,
                               w->grad + i * w->head.geometry->stride);
}

/* grad[i][j] = dA = dout_i . (v_j + RV[row(delta)]), or dS at once, without dropout. */
static void weight_gradients(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const locus_tile *tile = &w->tile;
    const locus_table_product table = {.rows = rows->dout,
                                       .row_stride = rows->dout_stride,
                                       .width = plan->call.Dv,
                                       .table = locus_value_table(plan, w->head.in),
                                       .scale = locus_panel_scale(&w->head),
                                       .panels = w->tables.value_panels,
                                       .entry_panels = w->scores.entry_panels};
    if (table.table == NULL) {
        for (int64_t b = 0; b < tile->block_count; b++) multiply_block(w, rows, &tile->blocks[b]);
        return;
    }
    if (plan->place_axes > 0) {
        add_placed_values(w, rows, &table);
        return;
    }
    for (int64_t b = 0; b < locus_bands(tile); b++) {
        const locus_band band = locus_band_at(plan, tile, b);
        locus_strip *strip = &w->value_strips[b];
        locus_packed_strip(&w->head, &band, &table, strip);
        for (int64_t column = 0; column < tile->columns;) {
            const locus_band segment = locus_segment_at(plan, &band, column);
            locus_product_tile product = {0};
            locus_strip_add(plan, &segment, strip, w->scores.strip_room, &product);
            multiply_values(w, rows, &segment, &product);
            column += segment.columns;
        }
    }
}

/* scores.score = P */
static void find_weights(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_tile *tile = &w->tile;
    locus_scores *s = &w->scores;
    s->queries = &rows->queries;
    s->max_lanes = NULL;
    s->lse = rows->lse;
    s->factor = rows->factor;
    if (w->kept != NULL) {
        locus_content_rows(s, tile); /* which dk needs with its gain */
        locus_kept_load(&w->head, tile, w->kept, s->score);
    } else if (!locus_packed.scores(s, tile)) {
        w->head.plan->kernels->softmax_from_lse(s->score, w->head.geometry->stride, tile->rows,
                                                tile->columns, locus_tile_seen(tile), rows->lse,
                                                rows->factor);
    }
}

void locus_gradient_tile(locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_plan *plan = w->head.plan;
    const locus_tile *tile = &w->tile;
    const int64_t stride = w->head.geometry->stride;
    locus_scores *s = &w->scores;
    find_weights(w, rows);
    weight_gradients(w, rows);
    if (plan->call.dropout == 0.0 && !values_come_late(plan, w->head.in)) return;
    if (plan->call.dropout > 0.0) locus_tile_drop(&w->head, tile, s->score, w->dropped, w->grad);
    plan->kernels->softmax_grad(w->grad, s->score, stride, tile->rows, tile->columns,
                                rows->row_dot);
}
