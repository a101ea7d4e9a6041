/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_PLAN_H
#define LOCUS_ATTENTION_PLAN_H

/* A plan: the resolved call and what lowering made of its scheme. The rest of
 * attention/ reads the lowered form only and never asks for a scheme by name. */

#include <locus/attention.h>

#include "attention/cuts.h"
#include "core/tensor.h"
#include "kernels/kernels.h"
#include "schemes/scheme.h"

/* How scores are cut into tiles; chosen in one place, geometry.c. */
typedef struct locus_geometry {
    int64_t rows;      /* of a query tile, at most MAX_TILE_ROWS                          */
    int64_t keys;      /* of a key tile, a multiple of LOCUS_PANEL, at most MAX_TILE_KEYS */
    int64_t group;     /* query tiles, or heads, that one key tile serves in turn         */
    int64_t stride;    /* floats from one row of a tile to the next                       */
    int64_t distances; /* room for the distances of a tile, rows + keys - 1               */
} locus_geometry;

typedef struct locus_ragged locus_ragged;

/* One axis of the positions that a call brings: pair (m, n) is served by
 *     z = key[n] + query[m], cut to 0 .. count - 1;    distance of z = top - z
 * which ascends with the position of the key. */
typedef struct locus_place_axis {
    int64_t top, count;
    int64_t first; /* entry of z = 0 in rows of products with both axes */
    int32_t *query, *key;
    uint8_t *kinds;                 /* of LOCUS_LANES keys: see LOCUS_ADD_PLACES */
    int64_t query_batch, key_batch; /* from one batch entry to the next, 0: all alike */
    int64_t kinds_batch;
} locus_place_axis;

struct locus_plan {
    locus_call call;
    locus_tensors shapes; /* of every call to come; data pointers are not kept */
    void *kept;           /* numbers that `call` reads: offsets, positions, maps */
    const locus_kernels *kernels;
    const locus_allocator *allocator;
    uint32_t threads;
    locus_ragged *ragged;           /* of a ragged batch: its sequences; else NULL               */
    const struct locus_plan *whole; /* the ragged batch that this shape belongs to, or NULL */

    /* Distances that causal and window let through, z = most - delta ascending with the
     * key: span = most - least + 1 of them (0: no pair at all). */
    int64_t span;
    /* Tables by z, and biases: table_span of them from distance table_top down. The same as above,
     * unless the call brings positions: then z is that of its first axis. */
    int64_t table_top, table_span;
    locus_tensor joined; /* shape of the entries of two tables in one; rank 0: there is one */
    int place_axes;      /* 0: pairs have the distances of their rows */
    locus_place_axis places[2];
    int32_t *bias_row;  /* [span] row of `bias` by z, NULL: the hook is asked          */
    int32_t *table_row; /* [span] of a ragged batch: row of relative tables by z      */
    /* Relative tables: index[z] ascends with z from 0 to row_count - 1. Entry a is row
     * row_first + a, or row_last - a where rows descend with z. Readable INDEX_PAD entries
     * beyond both ends, which repeat the last value. */
    int32_t *index; /* by z, NULL: no tables */
    int32_t *index_memory;
    int64_t row_first, row_count;
    int32_t *entry_row; /* [row_count] row of each entry, where the map jumps, -1: none, which reads
                           as zeros; NULL: see above */
    int gathers; /* tables and parameters are gathered or converted by each call: gathered.h */
    int table_descends;
    int table_steps; /* index ascends in steps of 0 or 1: what lookup and fold need */
    /* z of the longest run of consecutive entries, if it is long; see entry_run.h. It ends where
     * the index does or between vectors of distances. */
    int64_t run_from, run_to;

    /* Rotation: cos and sin of pair t at each row, times its gain inside its block of
     * gain_block positions: e^(s log_gain) for queries, e^(-s log_gain) for keys at position
     * s of the block. The rest of the gain, e^((query block - key block) log_gain), belongs
     * to a tile; so no factor under- or overflows before the product does. */
    float *turn_query;  /* [Tq][2][pairs] cos, sin; NULL: no rotation */
    float *turn_key;    /* [Tk][2][pairs]                             */
    int64_t turn_first; /* of a ragged batch: position of the first row of turn_query */
    int64_t turn_query_batch, turn_key_batch; /* floats from one batch entry to the next, where
                                                 each has positions of its own; else 0 */
    int64_t gain_block;                       /* a key tile lies inside one                 */
    float *gain; /* [blocks][D] by query block minus key block, from least_block on;
                           NULL: no gain                              */
    int64_t least_block;
    int64_t gain_origin; /* of positions that the call brings */

    int64_t key_width; /* of the key table: D, or that of the position queries */
    int own_query;     /* the key table is met by rows of pos_query, unscaled */

    int rows_path;       /* forward reads keys in place: packing does not pay         */
    int keys_exceed_l2;  /* the keys and values of a head do not stay in the second cache */
    int same_query_rows; /* no u, no w, no rotation, no pos_query: keys and key table are
                            multiplied with the same query rows                        */
    int hides;           /* some pair may be hidden               */
    int has_bias;        /* an additive value by distance         */
    int has_gate;        /* which `gate` multiplies, query by query */
    int has_log_gate;    /* sums of gates between key and query are added: gates.h */
    int counts;          /* rows of the key table stand at counted positions: counted.h */
    int has_decay;       /* channels of the content product are multiplied: decays.h */
    int has_pair_bias;   /* one by query and key                  */
    int late_bias;       /* it is added after the products; see late_bias.h */
    int has_reset;       /* the position part of m = 0 or n = 0 is replaced */

    locus_geometry forward, backward;
    int64_t forward_chunks;  /* of the query tiles of a head */
    int64_t unit_tasks;      /* ragged: forward tasks that are run one after another */
    int64_t backward_chunks; /* of the query tiles of a head */
};

/* The number of the gain block that `position` lies in (also below zero). */
static inline int64_t locus_gain_block_of(const locus_plan *plan, int64_t position)
{
    const int64_t block = plan->gain_block;
    return position >= 0 ? position / block : -((-position + block - 1) / block);
}

/* cos and sin of query row `row`, of key row `row` and of those that follow. */
static inline const float *locus_query_turns(const locus_plan *plan, int64_t b, int64_t row)
{
    return plan->turn_query + b * plan->turn_query_batch + 2 * plan->call.pairs * row;
}
static inline const float *locus_key_turns(const locus_plan *plan, int64_t b, int64_t row)
{
    return plan->turn_key + b * plan->turn_key_batch + 2 * plan->call.pairs * row;
}

static inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t min_i64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max_i64(int64_t a, int64_t b) { return a > b ? a : b; }

/* Gates of every channel, NULL where there are none. */
static inline const locus_tensor *locus_log_decay(const locus_plan *plan, const locus_tensors *in)
{
    const size_t offset = plan->call.scheme->log_decay;
    return offset != 0 ? locus_tensor_slot(in, offset) : NULL;
}

/* 1: strips hold the products with every entry, because pairs may need any of them next. */
static inline int locus_meets_every_entry(const locus_plan *plan)
{
    return plan->place_axes > 0 || plan->counts;
}

/* Key tiles from `from` to `to` come one after the other, near ones first where they are counted. */
static inline int64_t locus_tile_in_turn(const locus_plan *plan, int64_t from, int64_t to,
                                         int64_t number)
{
    return plan->counts ? to - 1 - number : from + number;
}

/* The relative tables of a call, NULL where the term is off: the key table is multiplied with
 * query rows, the key-side table with keys, the value table with weights. The first two are [R,D],
 * shared by the heads, or [H,R,D]; that of values is [R,Dv]. */
const locus_tensor *locus_key_table(const locus_plan *plan, const locus_tensors *in);
const locus_tensor *locus_key_side_table(const locus_plan *plan, const locus_tensors *in);
const locus_tensor *locus_value_table(const locus_plan *plan, const locus_tensors *in);

/* Entry 0 of a table for one head ([R,D] is shared, [H,R,D] is not), and the signed stride
 * from an entry to the next. */
float *locus_table_entries(const locus_plan *plan, const locus_tensor *table, int64_t head,
                           int64_t *stride);

/* The row of pos_q or pos_k that serves `position`, which counts from key row 0. */
static inline int64_t locus_position_row(const locus_plan *plan, int64_t position)
{
    return plan->call.key_offset + position;
}

/* z among the distances of the whole of what is z = 0 in a shape of a ragged batch. */
static inline int64_t locus_shape_start(const locus_plan *plan)
{
    return plan->whole != NULL && plan->table_span > 0 ? plan->whole->table_top - plan->table_top
                                                       : 0;
}

/* The same of a table of any type, from entry `first` on. */
locus_rows locus_entry_rows(const locus_plan *plan, const locus_tensor *table, int64_t head,
                            int64_t first);

/* z of the pair at distance delta. */
static inline int64_t locus_z_of(const locus_plan *plan, int64_t delta)
{
    return plan->call.most - delta;
}

#endif
