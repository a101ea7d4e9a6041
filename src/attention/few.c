/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/few.h"

#include <string.h>

#include "core/tensor.h"

/* Rows of a burst: a core has room for few requests. */
enum { BURST = LOCUS_LANES };

static locus_ahead next(const locus_head *head, int64_t rows)
{
    return locus_ahead_some(&head->worker->progress->look, rows);
}
static void bring(const locus_head *head, int64_t rows)
{
    locus_ahead_bring(&head->worker->progress->look, rows);
}

void locus_few_dots(const locus_head *head, float *C, int64_t c_row, const float *A, int64_t a_row,
                    const float *right, int64_t row_stride, int64_t rows, int64_t inner,
                    int64_t columns, const float *plus, int64_t plus_row)
{
    head->plan->kernels->dots(C, c_row, A, a_row, right, row_stride, rows, inner, columns, plus,
                              plus_row, next(head, columns));
}

void locus_few_by_keys(const locus_head *head, const locus_tile *tile, const locus_tensor *table,
                       float *T)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *k = &head->in->k;
    int64_t stride;
    const float *entries = locus_table_entries(plan, table, head->h, &stride);
    const int32_t *origin = plan->index + plan->call.most - tile->delta_00;
    for (int64_t c = 0; c < tile->columns; c += BURST) {
        const int64_t count = locus_least(BURST, tile->columns - c);
        const float *keys = locus_f32(k, head->b, head->kv, tile->key + c);
        bring(head, BURST);
        for (int64_t i = 0; i < tile->rows; i++)
            plan->kernels->pair_dots(T + i * head->geometry->stride + c, keys, k->stride[2],
                                     entries, stride, origin + c - i, count, plan->call.D,
                                     (float)plan->call.scale);
    }
}

void locus_few_values(const locus_head *head, const locus_tile *tile, const float *weights,
                      const locus_block *values)
{
    const int64_t Dv = head->plan->call.Dv;
    head->plan->kernels->mix(head->worker->out, Dv, weights, head->geometry->stride, values->clean,
                             values->clean_row, tile->rows, tile->columns, Dv,
                             next(head, tile->columns));
}

const float *locus_few_bias(const locus_head *head, const locus_tile *tile)
{
    const locus_plan *plan = head->plan;
    if (!plan->has_bias) return NULL;
    /* row i of the tile reads z = z_00 - i + j */
    const int64_t z_00 = plan->call.most - tile->delta_00;
    const int64_t first = z_00 - (tile->rows - 1), end = z_00 + tile->columns;
    enum { STEP = 4 };
    for (int64_t z = first; z < end; z += STEP) {
        bring(head, STEP);
        locus_lower_bias(plan, head->in, head->h, z, locus_least(z + STEP, end),
                         head->worker->bias + (z - first));
    }
    return head->worker->bias - first;
}

void locus_few_turn(const locus_head *head, int64_t first, int64_t count)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *k = &head->in->k;
    const int64_t D = plan->call.D, turns = 2 * plan->call.pairs;
    const float *keys = locus_f32(k, head->b, head->kv, first);
    float *to = head->worker->turned;
    plan->kernels->turn(to, D, keys, k->stride[2], plan->turn_key + turns * first, plan->call.pairs,
                        plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED, 1.0f, count, D,
                        next(head, count));
}

/* ---- what comes next ---- */

static int64_t entry_at(const locus_plan *plan, int64_t z)
{
    return plan->index[locus_most(0, locus_least(z, plan->span - 1))];
}

/* The entries that key tile brings beyond those of the tiles before it. */
static locus_ahead new_entries(const locus_head *head, const locus_rows *rows, int64_t key,
                               int64_t count)
{
    const locus_plan *plan = head->plan;
    const int64_t z_00 = plan->call.most - (rows->position - key);
    const int64_t low = entry_at(plan, z_00 - 1) + 1, high = entry_at(plan, z_00 + count - 1);
    int64_t stride;
    const float *entries =
        locus_table_entries(plan, locus_key_table(plan, head->in), head->h, &stride);
    return (locus_ahead){entries + low * stride, stride, plan->call.D, high + 1 - low};
}

/* The head's own operands: E and P. */
static int own_streams(const locus_head *head, const locus_rows *rows, int64_t key, int64_t count,
                       locus_ahead *streams)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    int n = 0;
    if (locus_key_table(head->plan, head->in) != NULL && head->plan->span > 0)
        streams[n++] = new_entries(head, rows, key, count);
    if (locus_present(pos_k))
        streams[n++] = (locus_ahead){locus_f32(pos_k, head->h, key, 0), pos_k->stride[1],
                                     head->plan->call.D, locus_least(count, pos_k->shape[1] - key)};
    return n;
}

static locus_ahead shared_stream(const locus_tensor *t, const locus_head *head, int64_t key,
                                 int64_t count)
{
    return (locus_ahead){locus_f32(t, head->b, head->kv, key), t->stride[2], t->shape[3], count};
}

static locus_ahead turns_stream(const locus_plan *plan, int64_t key, int64_t count)
{
    const int64_t turns = 2 * plan->call.pairs;
    return (locus_ahead){plan->turn_key + turns * key, turns, turns, count};
}

/* The heads share keys, values and turns. */
void locus_few_ahead(locus_lookahead *look, const locus_head *heads, int64_t count,
                     const locus_rows *rows, int64_t t, locus_part part)
{
    const int64_t key = t * heads->geometry->keys;
    const int64_t keys = locus_least(heads->geometry->keys, heads->plan->call.Tk - key);
    locus_ahead streams[2];
    if (part & LOCUS_UP_TO_KEYS) {
        const int own = own_streams(&heads[0], rows, key, keys, streams);
        for (int i = 0; i < own; i++) locus_ahead_push(look, streams[i]);
        if (heads->plan->turn_key != NULL)
            locus_ahead_push(look, turns_stream(heads->plan, key, keys));
        locus_ahead_push(look, shared_stream(&heads->in->k, heads, key, keys));
    }
    if (part & LOCUS_FROM_VALUES) {
        locus_ahead_push(look, shared_stream(&heads->in->v, heads, key, keys));
        for (int64_t g = 1; g < count; g++) {
            const int own = own_streams(&heads[g], rows, key, keys, streams);
            for (int i = 0; i < own; i++) locus_ahead_push(look, streams[i]);
        }
    }
}
