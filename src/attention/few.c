/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/few.h"

#include <string.h>

#include "core/tensor.h"

/* Rows of a burst: a core has room for few requests. */
enum { BURST = LOCUS_LANES };

static locus_ahead next(const locus_head *head, int64_t rows)
{
    return locus_ahead_due(&head->worker->progress->look, rows);
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
    locus_lower_bias(plan, head->in, head->h, first, end, head->worker->bias);
    return head->worker->bias - first;
}

/* Keys [first, first + count) turned. */
static void turn_keys(const locus_head *head, float *to, int64_t first, int64_t count)
{
    const locus_plan *plan = head->plan;
    const locus_tensor *k = &head->in->k;
    const int64_t D = plan->call.D, turns = 2 * plan->call.pairs;
    const float *keys = locus_f32(k, head->b, head->kv, first);
    plan->kernels->turn(to, D, keys, k->stride[2], plan->turn_key + turns * first, plan->call.pairs,
                        plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED, 1.0f, count, D,
                        next(head, count));
}

/* A few keys are turned and used at once, so that reading them goes on all the while. They stay
 * for the other heads that share them. */
static void turned_content(const locus_head *head, float *C, const float *A, int64_t key,
                           int64_t rows, int64_t columns, const float *plus, int64_t plus_row)
{
    const int64_t D = head->plan->call.D;
    locus_progress *progress = head->worker->progress;
    const int turned = progress->copied_first == key && progress->copied_count >= columns;
    for (int64_t c = 0; c < columns; c += BURST) {
        const int64_t count = locus_least(BURST, columns - c);
        float *keys = head->worker->copied_keys + c * D;
        if (!turned) turn_keys(head, keys, key + c, count);
        locus_few_dots(head, C + c, head->geometry->stride, A, D, keys, D, rows, D, count,
                       plus != NULL ? plus + c : NULL, plus_row);
    }
    progress->copied_first = key;
    progress->copied_count = columns;
}

/* One query that shares its keys with no other head has no use for turned keys. */
static int turns_in_passing(const locus_plan *plan, int64_t rows)
{
    const int64_t pairs = plan->call.pairs;
    return rows == 1 && plan->forward.group == 1 && 2 * pairs == plan->call.D &&
           pairs % LOCUS_LANES == 0;
}

void locus_few_content(const locus_head *head, float *C, const float *A, int64_t key, int64_t rows,
                       int64_t columns, const float *plus, int64_t plus_row)
{
    const locus_plan *plan = head->plan;
    const int64_t D = plan->call.D, key_row = head->in->k.stride[2];
    const float *keys = locus_f32(&head->in->k, head->b, head->kv, key);
    if (plan->turn_key == NULL)
        locus_few_dots(head, C, head->geometry->stride, A, D, keys, key_row, rows, D, columns, plus,
                       plus_row);
    else if (turns_in_passing(plan, rows))
        plan->kernels->turn_dots(C, A, keys, key_row, plan->turn_key + D * key, plan->call.pairs,
                                 plan->call.options.pairing == LOCUS_PAIRING_INTERLEAVED, columns,
                                 plus, next(head, columns));
    else
        turned_content(head, C, A, key, rows, columns, plus, plus_row);
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

static void push_entries(locus_lookahead *look, const locus_head *head, const locus_rows *rows,
                         int64_t key, int64_t count)
{
    const locus_tensor *table = locus_key_table(head->plan, head->in);
    const int shared = table != NULL && table->rank == 2 && head->plan->call.H > 1;
    if (table != NULL && !shared && head->plan->span > 0)
        locus_ahead_push(look, new_entries(head, rows, key, count));
}

static void push_places(locus_lookahead *look, const locus_head *head, int64_t key, int64_t count)
{
    const locus_tensor *pos_k = &head->in->pos_k;
    if (locus_present(pos_k))
        locus_ahead_push(look, (locus_ahead){locus_f32(pos_k, head->h, key, 0), pos_k->stride[1],
                                             head->plan->call.D,
                                             locus_least(count, pos_k->shape[1] - key)});
}

/* Rows of the products of a tile. */
static int64_t tile_work(const locus_head *head, int64_t heads, int64_t keys)
{
    const locus_plan *plan = head->plan;
    const int64_t products = 2 + locus_present(&head->in->pos_k) +
                             (locus_key_table(plan, head->in) != NULL) +
                             (locus_query_table(plan, head->in) != NULL);
    const int turns = plan->turn_key != NULL && !turns_in_passing(plan, plan->call.Tq);
    return keys * (heads * products + turns);
}

void locus_few_ahead(const locus_head *heads, int64_t count, const locus_rows *rows, int64_t t,
                     const locus_head *worker)
{
    locus_lookahead *look = &worker->worker->progress->look;
    const locus_tensors *in = heads->in;
    const int64_t b = heads->b, kv = heads->kv, key = t * heads->geometry->keys;
    const int64_t end = locus_least(key + heads->geometry->keys, heads->plan->call.Tk);
    locus_ahead_begin(look);
    for (int64_t g = 0; g < count; g++) {
        push_entries(look, &heads[g], rows, key, end - key);
        push_places(look, &heads[g], key, end - key);
        if (g > 0) continue;
        locus_ahead_add(look, &in->k, b, kv, key, end);
        locus_ahead_add(look, &in->v, b, kv, key, end);
    }
    locus_ahead_pace(look, tile_work(heads, count, heads->geometry->keys));
}
