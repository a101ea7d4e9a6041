/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_PLAN_H
#define LOCUS_ATTENTION_PLAN_H

/* A plan: the resolved call and what lowering made of its scheme. The rest of
 * attention/ reads the lowered form only and never asks for a scheme by name. */

#include <locus/attention.h>

#include "kernels/kernels.h"
#include "schemes/scheme.h"

/* How scores are cut into tiles; chosen in one place, geometry.c. */
typedef struct locus_geometry {
    int64_t rows;   /* of a query tile, at most MOST_ROWS                         */
    int64_t keys;   /* of a key tile, a multiple of LOCUS_PANEL; the row stride   */
    int64_t group;  /* query tiles, or heads, at most MOST_GROUP, that a key tile meets in turn */
    int64_t stride; /* floats from one row of a tile to the next                  */
    int64_t window; /* room for the distances that meet in a tile, rows + keys - 1 */
} locus_geometry;
enum {
    MOST_ROWS = 192,
    MOST_KEYS = 512,
    MOST_GROUP = 12,
    FEW_ROWS = 8, /* up to so many queries, transposing the keys costs more than it saves */
    INDEX_PAD = MOST_ROWS + MOST_KEYS + 2 * LOCUS_LANES,
    NEAR_LEAST = 64 /* shorter runs are folded with the rest */
};

/* Partial gradients of one backward call, all slots together. */
#define LOCUS_PARTIAL_BYTES ((size_t)32 << 20)

struct locus_plan {
    locus_call call;
    locus_tensors shapes; /* of every call to come; data pointers are not kept */
    const locus_kernels *kernels;
    const locus_allocator *allocator;
    uint32_t threads;

    /* Distances that causal and window let through, z = most - delta ascending with the
     * key: span = most - least + 1 of them (0: no pair at all). */
    int64_t span;
    int32_t *bias_row; /* [span] row of `bias` by z, NULL: the hook is asked          */
    /* Relative tables: index[z] ascends with z from 0 to row_count - 1. Entry a is row
     * row_first + a, or row_last - a where rows descend with z. Readable INDEX_PAD entries
     * beyond both ends, which repeat the last value. */
    int32_t *index; /* by z, NULL: no tables */
    int32_t *index_memory;
    int64_t row_first, row_count;
    int table_descends;
    int table_steps; /* index ascends in steps of 0 or 1: what lookup and fold need */
    /* z of the longest run of consecutive entries, if it is long; see near.h. It ends where the
     * index does or between vectors of distances. */
    int64_t near_from, near_to;

    /* Rotation: cos and sin of pair t at each row, times its gain inside its block of
     * gain_block positions: e^(s log_gain) for queries, e^(-s log_gain) for keys at position
     * s of the block. The rest of the gain, e^((query block - key block) log_gain), belongs
     * to a tile; so no factor under- or overflows before the product does. */
    float *turn_query;  /* [Tq][2][pairs] cos, sin; NULL: no rotation */
    float *turn_key;    /* [Tk][2][pairs]                             */
    int64_t gain_block; /* a key tile lies inside one                 */
    float *gain;        /* [blocks][D] by query block minus key block, from least_block on;
                           NULL: no gain                              */
    int64_t least_block;

    int few_rows;  /* forward reads keys as they lie: packing does not pay */
    int keys_far;  /* the keys and values of a head do not stay in the second cache */
    int hides;     /* some pair may be hidden               */
    int has_bias;  /* an additive value by distance         */
    int has_reset; /* the position part of m = 0 or n = 0 is replaced */

    locus_geometry forward, backward;
    int64_t forward_chunks;  /* query chunks per head, forward            */
    int64_t backward_splits; /* query splits per head, backward           */
};

/* The number of the gain block that `position` lies in (also below zero). */
static inline int64_t locus_block_of_position(const locus_plan *plan, int64_t position)
{
    const int64_t block = plan->gain_block;
    return position >= 0 ? position / block : -((-position + block - 1) / block);
}

static inline int64_t locus_ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }
static inline int64_t locus_least(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t locus_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* Choose the path and the tiles, and cut the work. After lowering. */
void locus_choose_geometry(locus_plan *plan, const char *path);

locus_status locus_lower(locus_plan *plan, const locus_tensors *shapes, locus_error *error);
void locus_lower_free(locus_plan *plan);

/* Entry 0 of a table for one head ([R,D] is shared, [H,R,D] is not), and the signed stride
 * from an entry to the next. */
float *locus_table_entries(const locus_plan *plan, const locus_tensor *table, int64_t head,
                           int64_t *stride);

/* Additive values by z for every head: what T5, ALiBi, KERPLE and TUPE-R come down to.
 * A head has locus_bias_room floats, z = 0 stands behind `window` zeros, and as many follow
 * the last; nothing is done where the scheme has no bias. */
static inline int64_t locus_bias_room(const locus_plan *plan, const locus_geometry *geometry)
{
    return plan->has_bias ? plan->span + 2 * geometry->window : 0;
}
/* Those of one head for z in [from, to); 0 where no distance is. */
void locus_lower_bias(const locus_plan *plan, const locus_tensors *in, int64_t head, int64_t from,
                      int64_t to, float *values);
void locus_lower_biases(const locus_plan *plan, const locus_geometry *geometry,
                        const locus_tensors *in, float *bias);

/* One head's values at z = 0, or NULL. */
static inline const float *locus_head_bias(const locus_plan *plan, const locus_geometry *geometry,
                                           const float *bias, int64_t head)
{
    if (!plan->has_bias) return NULL;
    return bias + head * locus_bias_room(plan, geometry) + geometry->window;
}

/* Check the tensors of one call against the plan. `gradients` may have absent tensors. */
locus_status locus_check_inputs(const locus_plan *plan, const locus_tensors *in,
                                locus_error *error);
locus_status locus_check_results(const locus_plan *plan, const locus_results *results,
                                 locus_error *error);
locus_status locus_check_output_overlap(const locus_tensors *in, const locus_tensor *outputs,
                                        const char *const *names, size_t count, locus_error *error);
locus_status locus_check_gradients(const locus_plan *plan, const locus_tensors *in,
                                   const locus_results *results, const locus_tensor *dout,
                                   const locus_tensors *grad, locus_error *error);

/* The relative tables of a call, NULL where the term is off. Those of keys and queries are [R,D],
 * shared by the heads, or [H,R,D]; that of values is [R,Dv]. */
const locus_tensor *locus_key_table(const locus_plan *plan, const locus_tensors *in);
const locus_tensor *locus_query_table(const locus_plan *plan, const locus_tensors *in);
const locus_tensor *locus_value_table(const locus_plan *plan, const locus_tensors *in);

#endif
