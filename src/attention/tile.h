/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TILE_H
#define LOCUS_ATTENTION_TILE_H

/* One tile of the score matrix: the rows of a query tile and the keys of a key tile. Which of its
 * pairs are seen, and what masks and dropout do to it.
 *
 *            keys j = 0 .. columns-1 →
 *     rows   distance of pair (i, j) = delta_00 + i - j
 *     i ↓    z = most - distance ascends with j: bias and table entries are looked up by z
 */

#include "attention/queries.h"
#include "attention/shown.h"

/* Rows first .. first + rows - 1 of a tile, none of which sees a column outside from .. to - 1,
 * multiples of LOCUS_PANEL unless the tile ends there. */
typedef struct locus_block {
    int64_t first, rows, from, to;
    int shows_all; /* mask hides no pair of these columns */
} locus_block;

typedef struct locus_tile {
    int64_t rows, columns;
    int64_t query, key; /* row numbers of row 0 and column 0 */
    int64_t delta_00;   /* distance of pair (0, 0)           */
    int whole;          /* causal and window let all pairs through           */
    int last;           /* of the key tiles that its rows reach              */
    int key_masked;     /* key_mask hides some column                        */
    int masked;         /* mask hides some pair of the columns of its block  */
    int skips_reset;    /* pairs whose position part was replaced count as not seen */
    int ragged;         /* from and to do not ascend: rows in between see nothing   */
    int32_t from[MAX_TILE_ROWS], to[MAX_TILE_ROWS]; /* columns that causal and window let through,
                                                       less what mask hides at both ends      */
    int64_t block_count; /* of its rows, in order; one block where no mask hides panels       */
    locus_block blocks[MAX_BLOCKS];
} locus_tile;

/* 0: no pair of the tile is seen, skip it. Under a mask, the tile begins with the first panel that is
 * seen, which need not be that of the key tile. */
int locus_tile_begin(const head_context *head, const locus_queries *queries, int64_t key_tile,
                     locus_tile *tile);

static inline locus_seen locus_tile_seen(const locus_tile *tile)
{
    return tile->whole ? (locus_seen){NULL, NULL} : (locus_seen){tile->from, tile->to};
}

/* What a product need compute of the rows from `first` on. */
static inline locus_seen locus_tile_wanted(const locus_tile *tile, int64_t first)
{
    return tile->whole || tile->ragged ? (locus_seen){NULL, NULL}
                                       : (locus_seen){tile->from + first, tile->to + first};
}

/* How many rows from `first` on see about the same columns; from .. to - 1 are those that one of
 * them sees. */
static inline int64_t locus_rows_alike(const locus_tile *tile, int64_t first, int64_t *from,
                                       int64_t *to)
{
    const int64_t left = tile->rows - first,
                  rows = tile->whole ? left : min_i64(LOCUS_REGISTER_ROWS, left);
    *from = tile->whole ? 0 : tile->from[first];
    *to = tile->whole ? tile->columns : tile->to[first + rows - 1];
    return rows;
}

/* 1: causal, window and masks let pair (i, j) through. */
int locus_tile_sees(const head_context *head, const locus_tile *tile, int64_t i, int64_t j);

/* Distances of its pairs. */
static inline int64_t locus_tile_distances(const locus_tile *tile)
{
    return tile->rows + tile->columns - 1;
}

/* 1: causal, window, masks and a dense bias let the pair through. For rare cases: one by one it is slow. */
int locus_tile_sees(const head_context *head, const locus_tile *tile, int64_t i, int64_t j);

/* 1 where the scores of the products stay: no softcap, no late or dense bias, no gates, no pair hidden. */
int locus_tile_is_plain(const head_context *head, const locus_tile *tile);

/* scores become cap tanh(scores / cap) where the call has a softcap; `slopes`, unless NULL, the
 * derivative, 1 - tanh^2, of each pair in reach. */
void locus_tile_cap(const head_context *head, const locus_tile *tile, float *scores, float *slopes);

/* grad, that of the capped scores, becomes that of the scores. */
void locus_tile_uncap(const head_context *head, const locus_tile *tile, const float *slopes,
                      float *grad);

/* Add the dense bias, and put -inf where a mask hides a pair. */
void locus_tile_mask(const head_context *head, const locus_tile *tile, float *scores);

/* out = in times the dropout mask over 1 - p; out may be in. And so for `also`, unless NULL. */
void locus_tile_drop(const head_context *head, const locus_tile *tile, const float *in, float *out,
                     float *also);

/* Pair (i, j) of something indexed by row, by column, or by the entry of its distance. */
typedef struct locus_pair_view {
    int64_t origin, row, column;
    const int32_t *index; /* NULL: the number itself */
    int placed;           /* 1: the entry of given positions, on axis `axis` */
    int axis;
} locus_pair_view;
static inline locus_pair_view locus_by_row(void) { return (locus_pair_view){.row = 1}; }
static inline locus_pair_view locus_by_column(void) { return (locus_pair_view){.column = 1}; }
static inline locus_pair_view locus_by_entry(const locus_plan *plan, const locus_tile *tile)
{
    if (plan->place_axes > 0) return (locus_pair_view){.placed = 1};
    return (locus_pair_view){.row = -1,
                             .column = 1,
                             .index = plan->index + locus_z_of(plan, tile->delta_00)};
}

/* to[.] += T[i][j] raw[.] over the seen pairs whose row of `from` is bad; with entries of two axes
 * on one side, on each. */
void locus_patch(const head_context *head, const locus_tile *tile, const float *T, locus_sums to,
                 locus_pair_view to_view, const locus_operand *from, locus_pair_view from_view,
                 int64_t width);

#endif
