/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/kept.h"

#include <string.h>

static void zero(float *row, int64_t from, int64_t to)
{
    memset(row + from, 0, (size_t)(to - from) * sizeof *row);
}

/* 1 / sum; a row that sees nothing has weights 0. */
static float factor_of(float sum) { return sum == 0.0f ? 0.0f : 1.0f / sum; }

static int is_only_tile(const locus_queries *queries)
{
    return queries->tile_to - queries->tile_from == 1;
}

void locus_kept_step(const head_context *head, const locus_queries *queries, const locus_tile *tile,
                     const float *scores, const locus_softmax_rows *rows, int first,
                     const locus_tensor *weights)
{
    const locus_kernels *kernels = head->plan->kernels;
    const int64_t end = tile->key + tile->columns;
    const int only = is_only_tile(queries);
    for (int64_t i = 0; i < tile->rows; i++) {
        float *row = locus_query_row(head, weights, tile->query + i);
        if (first) {
            zero(row, 0, tile->key);
            zero(row, end, head->plan->call.Tk);
        } else if (rows->rescale[i] != 1.0f) {
            kernels->scale(row, row, rows->rescale[i], tile->key);
            if (head->plan->counts) /* near tiles come first */
                kernels->scale(row + end, row + end, rows->rescale[i], head->plan->call.Tk - end);
        }
        kernels->scale(row + tile->key, scores + i * head->geometry->stride,
                       only ? factor_of(rows->sum[i]) : 1.0f, tile->columns);
    }
}

void locus_kept_end(const head_context *head, const locus_queries *queries,
                    const locus_softmax_rows *rows, int seen, const locus_tensor *weights)
{
    const int64_t Tk = head->plan->call.Tk;
    if (seen && is_only_tile(queries)) return;
    for (int64_t i = 0; i < queries->count; i++) {
        float *row = locus_query_row(head, weights, queries->first + i);
        if (seen)
            head->plan->kernels->scale(row, row, factor_of(rows->sum[i]), Tk);
        else
            zero(row, 0, Tk);
    }
}

void locus_kept_load(const head_context *head, const locus_tile *tile, const locus_tensor *weights,
                     float *to)
{
    const size_t bytes = (size_t)tile->columns * sizeof *to;
    for (int64_t i = 0; i < tile->rows; i++)
        memcpy(to + i * head->geometry->stride,
               locus_query_row(head, weights, tile->query + i) + tile->key, bytes);
}
