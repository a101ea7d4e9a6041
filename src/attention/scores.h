/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_SCORES_H
#define LOCUS_ATTENTION_SCORES_H

/* The scores of a tile. Forward and backward make them by the same code.
 *
 *     S[i][j] = content[i] . k_j                 the content product
 *             + strip[i][entry(i, j)]            relative tables: strip.h, key_side.h
 *             + pos_q[i] . pos_k[j]              TUPE
 *             + bias[z]                          z = most - distance
 *     S[i][j] = cap tanh(S[i][j] / cap)          locus_tile_cap, where there is a softcap
 *             + dense[i][j], -inf where hidden   locus_tile_mask
 *
 * There are two implementations: packed.c multiplies many query rows with keys and tables that were
 * packed into panels; in_place.c multiplies few with keys and tables in place. */

#include "attention/head_tables.h"
#include "attention/keys.h"
#include "attention/prefetch.h"
#include "attention/strip.h"

/* What counting needs: counted.h. */
typedef struct locus_counted {
    double *count;          /* [rows] sums of gates so far; NULL: nothing is counted */
    double *total, *behind; /* [rows] backward: sums of dp, and of those so far      */
    float *gate, *share;    /* [rows][stride] of pairs                               */
    int32_t *low;           /* likewise, -1: hidden                                  */
    int32_t *first_bad;     /* [rows] the key with the first dp that is not finite   */
    float *hidden;          /* likewise: -inf where a mask hides a pair              */
} locus_counted;

typedef struct locus_scores {
    const head_context *head;
    locus_keys *keys;
    const locus_queries *queries;
    const locus_head_tables *tables;
    locus_prefetch *prefetch;
    const float *bias;    /* by z, readable `distances` floats beyond both ends; NULL: none, or
                          bias_room is filled tile by tile */
    const double *shared; /* numbers of a bias by pair */
    /* What the last product of a tile may do with its scores: find lanes whose maximum is that of
     * the row, or turn them into weights e^(s - lse) factor. NULL: nothing. */
    float *max_lanes;
    const float *lse, *factor;
    locus_strip key_strips[MAX_BANDS]; /* of the query rows with the key table */
    /* rooms, NULL where the scheme or the path does not use them */
    float *score;        /* [rows][stride], room for LOCUS_LANES floats before */
    float *strips;       /* of key_strips                                      */
    float *strip_room;   /* LOCUS_STRIP_ROOM                                   */
    float *entry_panels; /* MAX_TILE_KEYS packed entries, as strips roll       */
    float *key_strip;    /* see key_side.h                                     */
    float *key_band;     /* likewise                                           */
    float *pos_scores;   /* [rows][stride] the position part of TUPE           */
    float *zeros;        /* [keys]                                             */
    locus_counted counted;
    float *with_gain;  /* [rows][D] content times the gain or decay of the tile */
    float *decay_room; /* panels of a steep tile: decays.c                     */
    int steep;         /* the tile at work takes panels: decays.h              */
    float *cap_slopes; /* [rows][stride] backward: see locus_tile_cap          */
    float *bias_room;  /* [distances] additive values of one tile            */
    float *pair_bias;  /* [keys] additive values of a row, by pair           */
} locus_scores;

/* How a path reads keys, tables and values. */
typedef struct locus_path {
    /* scores->score = the logits, -inf where a mask hides a pair, anything where causal and window
     * do: what comes next goes by locus_tile_seen. Returns 1 if the last product did what it may,
     * else it is left to the caller. */
    int (*scores)(locus_scores *scores, const locus_tile *tile);
    /* The values of the tile's keys; `room` as in locus_operand_of. */
    locus_operand (*values)(const locus_scores *scores, const locus_tile *tile, float *room);
    /* out[i] = rescale[i] out[i] + sum_j score[i][j] v_j over the clean values; rescale NULL: out
     * held nothing. */
    void (*add_values)(const locus_scores *scores, const locus_tile *tile,
                       const locus_operand *values, float *out, const float *rescale);
} locus_path;

/* Rooms that both paths have. */
void locus_scores_carve(const locus_plan *plan, const locus_geometry *geometry, locus_arena *arena,
                        locus_scores *scores);

/* Before the first tile of a query tile: empty strips. */
void locus_scores_begin(locus_scores *scores);

/* The content rows for the keys of a tile: with the gain or decay from them to the rows. */
const float *locus_content_rows(locus_scores *scores, const locus_tile *tile);

/* What row 0 of the tile reads of the values by z; row i reads it i floats before. */
const float *locus_tile_bias(const locus_plan *plan, const float *bias, const locus_tile *tile);

/* The position part where m = 0 is cls[0], else where n = 0 it is cls[1]: in pos_scores. */
void locus_reset_positions(const locus_scores *scores, const locus_tile *tile);

#endif
