/* SPDX-License-Identifier: Apache-2.0 */
/* The extents of the tiles and the cut of the work. Whatever decides the order of a sum is a
 * function of shapes and scheme alone, never of the number of threads. */

#include <string.h>

#include "attention/plan.h"
#include "core/tensor.h"

/* How many pieces to cut each head into, so that there are about `wanted` tasks. */
static int64_t pieces(int64_t wanted, int64_t heads, int64_t tiles)
{
    const int64_t each = heads > 0 ? locus_ceil_div(wanted, heads) : 1;
    return each < tiles ? each : tiles > 0 ? tiles : 1;
}

static locus_geometry geometry(const locus_plan *plan, int64_t rows, int64_t keys)
{
    /* With a table on the key side, an entry meets a key with every row of the tile: the more
     * rows, the less is computed beside. But the tile and its strips stay in the second cache. */
    if (rows > FEW_ROWS && locus_query_table(plan, &plan->shapes) != NULL) rows = keys = 192;
    if (plan->gain != NULL) { /* a key tile lies inside one block, blocks are powers of two */
        int64_t whole = LOCUS_PANEL;
        while (2 * whole <= locus_least(keys, plan->gain_block)) whole *= 2;
        keys = whole;
    }
    const int64_t padded = locus_ceil_div(locus_most(plan->call.Tk, 1), LOCUS_PANEL) * LOCUS_PANEL;
    keys = locus_least(keys, padded);
    const int64_t window = locus_ceil_div(rows + keys, LOCUS_PANEL) * LOCUS_PANEL;
    /* An odd number of cache lines: the rows of one column then fall into different sets. */
    const int64_t stride = keys + (keys / LOCUS_LANES % 2 == 0 ? LOCUS_LANES : 0);
    return (
        locus_geometry){.rows = rows, .keys = keys, .group = 1, .stride = stride, .window = window};
}

/* 48 rows and a panel of keys stay in the first cache. But where there are few keys, so does all
 * else, and what a tile costs beside its products weighs more: tiles of up to 72 rows, all alike.
 * 6 rows make a register tile. */
static int64_t few_tiles(const locus_call *call, int64_t rows)
{
    enum { SHORT = 256, TALL = 72, BAND = 6 };
    if (call->Tk > SHORT || call->Tq <= 0) return rows;
    const int64_t tiles = locus_ceil_div(call->Tq, TALL);
    return locus_ceil_div(locus_ceil_div(call->Tq, tiles), BAND) * BAND;
}

/* Where keys and values leave the second cache before the next query tile reads them, each tile
 * waits for the third: four times the rows read them a quarter as often. That takes rows enough
 * for all threads; rows do not depend on each other, so no bit tells. */
static int64_t tile_rows(const locus_plan *plan, int64_t rows)
{
    enum { TALL = 192 };
    const int64_t tiles = plan->call.B * plan->call.H * (plan->call.Tq / TALL);
    if (plan->keys_far && tiles >= 8 * (int64_t)plan->threads) return TALL;
    return few_tiles(&plan->call, rows);
}

void locus_choose_geometry(locus_plan *plan, const char *path)
{
    const locus_call *call = &plan->call;
    const int64_t heads = call->B * call->H;
    plan->few_rows = path != NULL ? strcmp(path, "rows") == 0 : call->Tq <= FEW_ROWS;
    /* More than half of the second cache. A table on the key side has tall tiles of its own, whose
     * many short products have no room for rows to fetch. */
    enum { NEAR_FLOATS = 1 << 18 };
    plan->keys_far = call->Tk * (call->D + call->Dv) > NEAR_FLOATS &&
                     locus_query_table(plan, &plan->shapes) == NULL;
    /* Few rows: the values of a tile are fetched while its keys are multiplied, and stay in the
     * second cache with whatever else is on its way. */
    enum { FETCHED_KEYS = 128 };
    plan->forward = plan->few_rows ? geometry(plan, FEW_ROWS, FETCHED_KEYS)
                                   : geometry(plan, tile_rows(plan, 48), 512);
    plan->backward = geometry(plan, 96, plan->gain != NULL ? 256 : 192);
    /* A key tile and its gradients stay near while a group of query tiles goes by. So many keys
     * and values of 64 floats, packed and not, and their gradients fill half of the second cache:
     * fewer stay near anyway. Strips roll along the keys of one query tile. */
    enum { NEAR_KEYS = 768 };
    if (plan->index == NULL && call->Tk > NEAR_KEYS)
        plan->backward.group =
            locus_least(MOST_GROUP, locus_most(1, locus_ceil_div(call->Tq, plan->backward.rows)));
    /* So may a key tile of few queries, while the heads that share it go by. */
    const int alike = plan->index == NULL || plan->table_steps;
    if (plan->few_rows && alike && call->Hk > 0)
        plan->forward.group = locus_least(MOST_GROUP, locus_most(1, call->H / call->Hk));
    /* Forward, rows do not depend on each other, so the cut may follow the threads; each
     * piece packs the keys anew. Backward, each costs a partial buffer. */
    const int64_t tasks = plan->threads > 1 ? 8 * (int64_t)plan->threads : 1;
    plan->forward_chunks = pieces(tasks, heads, locus_ceil_div(call->Tq, plan->forward.rows));
    enum { SPLIT_ROWS = 384 }; /* at least */
    plan->backward_splits = pieces(8, heads, locus_ceil_div(call->Tq, SPLIT_ROWS));
}
