/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/decay_spread.h"

#include <string.h>

#include "attention/gates.h"
#include "attention/sums.h"

/* to[i] += product[i] e^(P_m - P_r), and likewise of keys e^(P_r - P_n). */
static void add_rows(const locus_backward_worker *w, const locus_gradient_rows *rows, int64_t first,
                     int64_t r)
{
    const int64_t D = w->head.plan->call.D;
    for (int64_t i = first; i < w->tile.rows; i++)
        w->head.plan->kernels->decay(
            rows->dcontent + i * D, w->gain_product + i * D,
            locus_decay_sums_at(&w->head, locus_decay_row_position(&rows->queries, i)),
            locus_decay_sums_at(&w->head, r), D, 1);
}
static void add_keys(const locus_backward_worker *w, int64_t column, int64_t count, int64_t r)
{
    const int64_t D = w->head.plan->call.D, key = w->tile.key + column;
    const locus_sums dk = w->slot->k;
    for (int64_t j = 0; j < count; j++)
        w->head.plan->kernels->decay(dk.data + (key + j) * dk.row_stride, w->key_product + j * D,
                                     locus_decay_sums_at(&w->head, r),
                                     locus_decay_sums_at(&w->head, key + j), D, 1);
}

/* What dS of row i gives, pair by pair. */
static void spread_pairs(const locus_backward_worker *w, const locus_gradient_rows *rows,
                         const locus_decay_panel *p, int64_t i)
{
    const head_context *head = &w->head;
    const locus_tile *tile = &w->tile;
    const locus_kernels *kernels = head->plan->kernels;
    const locus_queries *q = &rows->queries;
    const int64_t D = head->plan->call.D;
    const locus_sums dk = w->slot->k;
    int64_t to;
    for (int64_t j = locus_decay_row_reach(tile, p, i, &to); j < to; j++) {
        const double *of_row = locus_decay_sums_at(head, locus_decay_row_position(q, i));
        const double *of_key = locus_decay_sums_at(head, tile->key + j);
        const float ds = w->grad[i * head->geometry->stride + j];
        if (!locus_tile_sees(head, tile, i, j)) continue;
        kernels->decay(p->keys, p->stored + (j - p->column) * D, of_row, of_key, D, 0);
        kernels->scale_rows(rows->dcontent + i * D, D, p->keys, D, NULL, ds, 1, D, 1);
        if (dk.data == NULL) continue;
        kernels->decay(p->keys, q->content + i * q->row_stride, of_row, of_key, D, 0);
        kernels->scale_rows(dk.data + (tile->key + j) * dk.row_stride, D, p->keys, D, NULL, ds, 1,
                            D, 1);
    }
}

/* What dS of the rows behind the reference gives. */
static void spread_behind(const locus_backward_worker *w, const locus_gradient_rows *rows,
                          const locus_decay_panel *p)
{
    const locus_kernels *kernels = w->head.plan->kernels;
    const int64_t D = w->head.plan->call.D, stride = w->head.geometry->stride;
    const int64_t behind = w->tile.rows - p->first;
    const float *ds = w->grad + p->first * stride + p->column;
    if (behind == 0) return;
    kernels->gemm(w->gain_product + p->first * D, D, ds, stride, 1, p->keys, D, behind, p->count, D,
                  0);
    add_rows(w, rows, p->first, p->reference);
    if (w->slot->k.data == NULL) return;
    kernels->gemm(w->key_product, D, ds, 1, stride, w->scores.with_gain + p->first * D, D, p->count,
                  behind, D, 0);
    add_keys(w, p->column, p->count, p->reference);
}

void locus_spread_decayed(const locus_backward_worker *w, locus_gradient_rows *rows,
                          const locus_operand *keys, const locus_operand *content)
{
    const locus_tile *tile = &w->tile;
    const int64_t D = w->head.plan->call.D, r = locus_decay_reference(&w->head, tile->key);
    const locus_sums dk = w->slot->k;
    const int to_rows = w->call->wanted.q || w->call->wanted.log_decay;
    if (rows->fresh) memset(rows->dcontent, 0, (size_t)(tile->rows * D) * sizeof(float));
    for (int64_t j = 0; dk.data != NULL && w->fresh_keys && j < tile->columns; j++)
        memset(dk.data + (tile->key + j) * dk.row_stride, 0, (size_t)D * sizeof(float));
    for (int64_t j = 0; w->scores.steep && j < tile->columns; j += DECAY_PANEL) {
        const locus_decay_panel p =
            locus_decay_panel_at(&w->scores, tile, j, keys->any_bad || content->any_bad);
        spread_behind(w, rows, &p);
        for (int64_t i = 0; i < p.first; i++) spread_pairs(w, rows, &p, i);
    }
    if (w->scores.steep) return;
    if (to_rows) {
        locus_add_to_rows(&w->head, tile, w->grad, w->gain_product, keys, D, 1);
        add_rows(w, rows, 0, r);
    }
    if (dk.data == NULL) return;
    locus_add_to_keys(&w->head, tile, w->grad, (locus_sums){w->key_product - tile->key * D, D},
                      content, D, 1);
    add_keys(w, 0, tile->columns, r);
}

void locus_decay_add_products(double *sums, double sign, const float *row, const float *drow,
                              int64_t count)
{
    for (int64_t d = 0; d < count; d++)
        if (drow[d] != 0.0f) sums[d] += sign * (double)row[d] * (double)drow[d];
}

void locus_decay_finish_rows(const locus_backward_worker *w, const locus_gradient_rows *rows)
{
    const locus_queries *q = &rows->queries;
    const int64_t D = w->head.plan->call.D;
    double *sums = locus_gate_sums_of(&w->head, locus_log_decay(w->head.plan, w->call->grad));
    for (int64_t i = 0; i < q->count; i++)
        if (q->position + i >= 0)
            locus_decay_add_products(sums + (q->position + i) * D, 1.0,
                                     q->content + i * q->row_stride, rows->dcontent + i * D, D);
}
