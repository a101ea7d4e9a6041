/* SPDX-License-Identifier: Apache-2.0 */
#include "attention/geometry.h"

#include <string.h>

#include "core/tensor.h"

/* How many pieces to cut each head into, so that there are about `wanted` tasks. */
static int64_t pieces(int64_t wanted, int64_t heads, int64_t tiles)
{
    const int64_t each = heads > 0 ? ceil_div(wanted, heads) : 1;
    return each < tiles ? each : tiles > 0 ? tiles : 1;
}

/* Texts and blocks of a mask often begin at multiples of a panel: where tiles do so, too, fewer of
 * them see two texts. Other masks cost 1 to 2 % more so. */
static int cuts_by_mask(const locus_plan *plan)
{
    return locus_present(&plan->shapes.mask) && plan->call.Tk > SHORT_KEYS;
}

static locus_geometry geometry(const locus_plan *plan, int64_t rows, int64_t keys)
{
    /* With a table on the key side, an entry is multiplied with a key for every row of the tile:
     * the more rows, the less is computed in vain. But the tile and its strips stay in the second
     * cache. */
    if (rows > ROWS_PATH_QUERIES && locus_key_side_table(plan, &plan->shapes) != NULL)
        rows = keys = cuts_by_mask(plan) ? MASK_KEY_SIDE_TILE : KEY_SIDE_TILE;
    if (plan->has_decay) keys = min_i64(keys, DECAY_KEYS);
    if (plan->gain != NULL) { /* a key tile lies inside one gain block; both are powers of two */
        int64_t whole = LOCUS_PANEL;
        while (2 * whole <= min_i64(keys, plan->gain_block)) whole *= 2;
        keys = whole;
    }
    const int64_t padded = ceil_div(max_i64(plan->call.Tk, 1), LOCUS_PANEL) * LOCUS_PANEL;
    keys = min_i64(keys, padded);
    /* An odd number of cache lines: the rows of one column then fall into different sets. */
    const int64_t stride = keys + (keys / LOCUS_LANES % 2 == 0 ? LOCUS_LANES : 0);
    return (locus_geometry){.rows = rows,
                            .keys = keys,
                            .group = 1,
                            .stride = stride,
                            .distances = ceil_div(rows + keys, LOCUS_PANEL) * LOCUS_PANEL};
}

/* FORWARD_ROWS rows and a panel of keys stay in the first cache. But where there are few keys, so
 * does all else, and what a tile costs besides its products weighs more: taller tiles, all of one
 * height, a multiple of a register tile. */
static int64_t short_tile_rows(const locus_call *call, int64_t rows)
{
    if (call->Tk > SHORT_KEYS || call->Tq <= 0) return rows;
    const int64_t tiles = ceil_div(call->Tq, SHORT_ROWS);
    return ceil_div(ceil_div(call->Tq, tiles), LOCUS_REGISTER_ROWS) * LOCUS_REGISTER_ROWS;
}

/* Where keys and values leave the second cache before the next query tile reads them, each tile
 * waits for the third: four times the rows read them a quarter as often. That takes rows enough
 * for all threads; rows do not depend on each other, so no bit tells. */
static int64_t forward_rows(const locus_plan *plan)
{
    const int64_t tiles = plan->call.B * plan->call.H * (plan->call.Tq / TALL_ROWS);
    if (plan->keys_exceed_l2 && tiles >= TASKS_PER_THREAD * (int64_t)plan->threads)
        return TALL_ROWS;
    return short_tile_rows(&plan->call, cuts_by_mask(plan) ? MASK_ROWS : FORWARD_ROWS);
}

/* A key tile of few queries may stay in the cache while the heads that share it go by, if they
 * share what is computed by position, too. */
static int64_t rows_path_group(const locus_plan *plan)
{
    const int alike = plan->index == NULL || plan->table_steps;
    /* nor do heads share keys that each of them lets decay */
    if (!alike || plan->has_decay || plan->call.Hk <= 0) return 1;
    return min_i64(MAX_GROUP, max_i64(1, plan->call.H / plan->call.Hk));
}

/* A key tile and its gradients stay in the second cache while a group of query tiles goes by.
 * GROUP_KEYS keys and values of 64 floats, packed and not, and their gradients fill half of it:
 * fewer stay anyway. Strips roll along the keys of one query tile. */
static int64_t backward_group(const locus_plan *plan)
{
    if (plan->index != NULL || plan->call.Tk <= GROUP_KEYS) return 1;
    return min_i64(MAX_GROUP, max_i64(1, ceil_div(plan->call.Tq, plan->backward.rows)));
}

void locus_choose_geometry(locus_plan *plan, const char *path)
{
    const locus_call *call = &plan->call;
    const int64_t heads = call->B * call->H;
    plan->rows_path = path != NULL ? strcmp(path, "rows") == 0 : call->Tq <= ROWS_PATH_QUERIES;
    /* A table on the key side has tall tiles of its own, whose many short products have no room
     * for rows to fetch. */
    plan->keys_exceed_l2 = call->Tk * (call->D + call->Dv) > L2_FLOATS &&
                           locus_key_side_table(plan, &plan->shapes) == NULL;
    /* The rows path: the values of a tile are fetched while its keys are multiplied, and stay in
     * the second cache with whatever else is on its way. */
    plan->forward = plan->rows_path ? geometry(plan, ROWS_PATH_QUERIES, ROWS_PATH_KEYS)
                                    : geometry(plan, forward_rows(plan), FORWARD_KEYS);
    if (plan->rows_path) plan->forward.group = rows_path_group(plan);
    plan->backward = geometry(plan, cuts_by_mask(plan) ? MASK_ROWS : BACKWARD_ROWS,
                              plan->gain != NULL ? BACKWARD_GAIN_KEYS : BACKWARD_KEYS);
    plan->backward.group = backward_group(plan);
    /* Forward, rows do not depend on each other, so the cut may follow the threads; each
     * chunk packs the keys anew. Backward, each costs a partial buffer. */
    const int64_t tasks = plan->threads > 1 ? TASKS_PER_THREAD * (int64_t)plan->threads : 1;
    plan->forward_chunks = pieces(tasks, heads, ceil_div(call->Tq, plan->forward.rows));
    plan->backward_chunks = pieces(BACKWARD_TASKS, heads, ceil_div(call->Tq, CHUNK_ROWS));
}
