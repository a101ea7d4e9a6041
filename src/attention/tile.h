/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TILE_H
#define LOCUS_ATTENTION_TILE_H

/* One score tile: which pairs are seen, the products, the position tile, the masks.
 * Forward and backward build it by the same code.
 *
 *            keys j = 0 .. columns-1 →
 *     rows   S[i][j] = content[i] . k_j                 the content product
 *     i ↓            + strip[i][y]                      relative tables, by distance
 *                    + bias[z] + dense[i][j]
 *     delta of a pair = delta_00 + i - j;  y = (rows-1) - i + j counts the distances that
 *     meet in the tile, ascending with j, so that row i of a strip is read contiguously.
 *
 * NaN and infinity: a product row depends on its own operands only, so operands are read
 * as they are there. A sum over rows (P V, dS K, ...) multiplies by the weight 0 of pairs
 * that are not seen, so its right operand is read `clean`: rows with a non-finite element
 * are zeroed, and locus_patch adds them afterwards for the pairs that do see them. */

#include "attention/arena.h"
#include "attention/plan.h"

/* Rows of an operand. bad[r] is 1 where row r holds a NaN or an infinity. */
typedef struct locus_block {
    const float *raw, *clean;
    int64_t raw_row, clean_row; /* strides */
    const uint8_t *bad;
    int any_bad;
} locus_block;

/* Scratch of one thread. */
typedef struct locus_worker {
    /* of the head: columns of a tile side by side, [key tile][width][BLOCK_KEYS] */
    float *key_panels, *value_panels, *place_panels;
    uint8_t *key_bad, *value_bad, *place_bad; /* [Tk] */
    /* of the query rows */
    float *content;  /* [BLOCK_ROWS][D] scale (turned q + u)          */
    float *position; /* [BLOCK_ROWS][D] scale (q + w)                 */
    float *place;    /* [BLOCK_ROWS][D] scale pos_q                   */
    float *faded;    /* [BLOCK_ROWS][D] content times the tile's gain */
    float *out;      /* [BLOCK_ROWS][Dv]                              */
    float *top, *sum, *carry;      /* [BLOCK_ROWS] streaming softmax  */
    float *lse, *factor, *delta;   /* [BLOCK_ROWS] P = e^(s - lse) factor; delta = dout . out */
    /* of the tile */
    float *score, *grad, *dropped; /* [BLOCK_ROWS][BLOCK_KEYS]        */
    float *strip;        /* [max(BLOCK_ROWS, BLOCK_KEYS)][WINDOW]     */
    float *window;       /* [WINDOW][max(D, Dv)] table rows by y      */
    float *window_panel; /* [max(D, Dv)][WINDOW]                      */
    float *window_grad;  /* [WINDOW][max(D, Dv)]                      */
    float *clean[4];     /* [WINDOW][max(D, Dv)] room for clean rows  */
    float *rows;         /* [BLOCK_KEYS][max(D, Dv)] keys out of panels */
    float *gain;         /* [2][D] of this tile, see locus_row_gain    */
    uint8_t *content_bad, *position_bad, *place_row_bad, *dout_bad; /* [BLOCK_ROWS] */
    uint8_t *window_bad; /* [WINDOW]                                  */
    /* backward */
    float *dout;         /* [BLOCK_ROWS][Dv]                          */
    float *dcontent, *dposition, *dplace; /* [BLOCK_ROWS][D]          */
} locus_worker;

void locus_worker_carve(const locus_plan *plan, int backward, locus_arena *arena,
                        locus_worker *worker);

/* One (batch, head) and the thread that works on it. */
typedef struct locus_head {
    const locus_plan *plan;
    const locus_tensors *in;
    locus_worker *worker;
    int64_t b, h, kv;
    const float *bias; /* [span] by z, or NULL */
} locus_head;

/* The rows of one query tile. */
typedef struct locus_rows {
    int64_t first, count;
    int64_t position;          /* of row 0 */
    int64_t tile_from, tile_to; /* key tiles with a pair in reach */
} locus_rows;

typedef struct locus_tile {
    int64_t rows, columns;
    int64_t query, key;               /* row numbers of row 0 and column 0 */
    int64_t delta_00;                 /* distance of pair (0, 0)           */
    int skips_reset; /* pairs whose position part was replaced count as not seen */
    int32_t from[BLOCK_ROWS], to[BLOCK_ROWS]; /* columns that causal and window let through */
} locus_tile;

/* Pack keys [first, last) of the head; `values`: also the values, for dout . v. */
void locus_head_pack(const locus_head *head, int64_t key_from, int64_t key_to, int values);

void locus_rows_begin(const locus_head *head, int64_t first, locus_rows *rows);

/* 0: no pair of the tile is seen, skip it. */
int locus_tile_begin(const locus_head *head, const locus_rows *rows, int64_t key_tile,
                     locus_tile *tile);

/* worker->score: the logits, -inf where a pair is not seen. */
void locus_tile_scores(const locus_head *head, const locus_rows *rows, const locus_tile *tile);

/* Multiply weights by the dropout mask over 1 - p: out = in where there is no dropout. */
void locus_tile_drop(const locus_head *head, const locus_tile *tile, const float *in, float *out);

/* Table rows by y into worker->window, times factor; width is that of the table. */
void locus_gather(const locus_head *head, const locus_tile *tile, const locus_tensor *table,
                  float factor, int64_t width);
/* worker->window_panel = the transpose of worker->window. */
void locus_window_transpose(const locus_head *head, const locus_tile *tile, int64_t width);

/* strip[i][y] = T[i][j] on the tile, 0 elsewhere (by rows; or by columns: strip[j][y]). */
void locus_skew_rows(const locus_tile *tile, const float *T, float *strip);
void locus_skew_columns(const locus_tile *tile, const float *T, float *strip);

static inline int64_t locus_window_width(const locus_tile *tile)
{
    return tile->rows + tile->columns - 1;
}

/* The operands that sums over rows read. */
locus_block locus_block_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                           const uint8_t *bad, float *room);
locus_block locus_key_block(const locus_head *head, const locus_tile *tile, float *room);
locus_block locus_value_block(const locus_head *head, const locus_tile *tile, float *room);
locus_block locus_place_block(const locus_head *head, const locus_tile *tile, float *room);

/* Turn one row in place by the cos and sin of its position. direction = -1 turns back: the
 * transpose, which carries gradients. */
void locus_turn_row(const locus_plan *plan, float *row, const float *turn, float direction);

/* The tile's gain for row i: rows of a tile lie in at most two blocks of positions. */
static inline const float *locus_row_gain(const locus_head *head, const locus_rows *rows,
                                          int64_t i)
{
    const int second =
        locus_block_start(rows->position + i) != locus_block_start(rows->position);
    return head->worker->gain + (second ? head->plan->call.D : 0);
}

/* 1 where the row holds a NaN or an infinity. */
int locus_row_is_bad(const float *row, int64_t width);

/* Element (i, j) of something indexed by row, by column or by distance. */
typedef struct locus_pair_view {
    int64_t origin, row, column;
} locus_pair_view;
static inline locus_pair_view locus_by_row(void) { return (locus_pair_view){0, 1, 0}; }
static inline locus_pair_view locus_by_column(void) { return (locus_pair_view){0, 0, 1}; }
static inline locus_pair_view locus_by_distance(const locus_tile *tile)
{
    return (locus_pair_view){tile->rows - 1, -1, 1};
}

/* to[.] += T[i][j] raw[.] over the seen pairs whose row of `from` is bad. */
void locus_patch(const locus_head *head, const locus_tile *tile, const float *T, float *to,
                 int64_t to_row, locus_pair_view to_view, const locus_block *from,
                 locus_pair_view from_view, int64_t width);

#endif
