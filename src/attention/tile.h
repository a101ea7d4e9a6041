/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TILE_H
#define LOCUS_ATTENTION_TILE_H

/* One score tile: which pairs are seen, the products, the position tile, the masks.
 * Forward and backward build it by the same code.
 *
 *            keys j = 0 .. columns-1 →
 *     rows   S[i][j] = content[i] . k_j                 the content product
 *     i ↓            + strip[i][entry(i, j)]            relative tables, see relative.h
 *                    + bias[z] + dense[i][j]            z = most - delta
 *     delta of a pair = delta_00 + i - j
 *
 * NaN and infinity: a product row depends on its own operands only, so operands are read
 * as they are there. A sum over rows (P V, dS K, ...) multiplies by the weight 0 of pairs
 * that are not seen, so its right operand is read `clean`: rows with a non-finite element
 * are zeroed, and locus_patch adds them afterwards for the pairs that do see them. */

#include "attention/ahead.h"
#include "attention/arena.h"
#include "attention/plan.h"

/* Rows of an operand. bad[r] is 1 where row r holds a NaN or an infinity. */
typedef struct locus_block {
    const float *raw, *clean;
    int64_t raw_row, clean_row; /* strides */
    const uint8_t *bad;
    int any_bad;
    int of_weights; /* multiplied with the weights: those of dropped pairs do not count */
} locus_block;

/* What changes as a worker goes on. */
typedef struct locus_progress {
    locus_lookahead look;               /* what it will need next                    */
    int64_t copied_first, copied_count; /* keys in `copied_keys`                     */
    int keeps_copied;                   /* it has room for all keys                  */
    int keeps_entries;                  /* backward: see locus_head                  */
} locus_progress;

/* Scratch of one thread. rows, keys, window: those of the geometry. What belongs to the query
 * rows has room for a group of query tiles. */
typedef struct locus_worker {
    /* of the head, packed for products; value_panels and the rest below: backward only */
    float *key_panels, *value_panels, *place_panels;
    uint8_t *key_bad, *value_bad, *place_bad; /* [Tk] */
    /* of the query rows */
    float *content;                  /* [rows][D] turned q + u, see locus_rows          */
    float *position;                 /* [rows][D] q + w; `content` where they are alike  */
    float *place;                    /* [rows][D] scale pos_q                            */
    float *faded;                    /* [rows][D] content times the tile's gain          */
    float *out;                      /* [rows][Dv]                                       */
    float *top, *sum, *carry, *part; /* [rows] streaming softmax                     */
    float *greatest;                 /* [rows][LOCUS_LANES] of the tile's scores         */
    float *lse, *factor, *delta;     /* [rows] P = e^(s - lse) factor; delta = dout . out */
    /* of the tile */
    float *score, *grad, *dropped; /* [rows][keys]                                   */
    float *places;    /* [rows][keys] the position part of TUPE; [band][keys] of other tables */
    float *expanded;  /* [band][distances] a strip by distance, see relative.h                */
    float *zeros;     /* [keys]                                                               */
    float *shift;     /* [band] where all of a strip is one entry                             */
    float *bias;      /* [window] additive values, few rows only                              */
    float *strips[4]; /* see relative.h: reads and folds of two tables       */
    float *key_strip; /* [entries][keys] products with, or folds to, a key-side table */
    /* packed tables; NULL: packed as they roll. That of the values: backward only */
    float *key_table_panels, *value_table_panels;
    float *entry_panels; /* MOST_KEYS packed table rows                    */
    uint8_t *key_table_bad, *query_table_bad, *value_table_bad; /* [row_count]       */
    float *clean[4];    /* [keys or rows][max(D, Dv)] clean rows          */
    float *copied_keys; /* [keys or Tk][D] turned, or backward side by side */
    float *gathered;    /* [Tk][Dv] values side by side, forward            */
    uint8_t *content_bad, *position_bad, *place_row_bad, *dout_bad; /* [rows]        */
    float *dout;                          /* [rows][Dv]                              */
    float *dcontent, *dposition, *dplace; /* [rows][D]; dposition as `position`      */
    float *diagonal;                      /* [window] sums by distance               */
    int32_t *written; /* [key tiles] keys of each whose dk and dv hold sums         */
    locus_progress *progress;
} locus_worker;

/* Key tiles come again with every group of query tiles: copies of all keys stay where that is
 * often; those that are not turned, which is cheap, up to 1 MB. */
static inline int locus_keeps_copied(const locus_plan *plan, const locus_geometry *geometry,
                                     int backward)
{
    return backward && geometry->group == 1 &&
           (plan->turn_key != NULL || plan->call.Tk * plan->call.D <= 1 << 18);
}

void locus_worker_carve(const locus_plan *plan, const locus_geometry *geometry, int backward,
                        locus_arena *arena, locus_worker *worker);

/* The worker as a query tile sees it whose rows stand at `first` in the group. Schemes with
 * relative tables have groups of one where rows are many. */
void locus_worker_shift(const locus_plan *plan, const locus_worker *worker, int64_t first,
                        locus_worker *shifted);

/* One (batch, head) and the thread that works on it. */
typedef struct locus_head {
    const locus_plan *plan;
    const locus_geometry *geometry;
    const locus_tensors *in;
    locus_worker *worker;
    int64_t b, h, kv;
    int unpacked;      /* keys are read as they lie */
    int packs_scale;   /* the scale lies in what is packed, keys and tables; else in query rows */
    int keeps_entries; /* the worker has packed its relative tables, which all heads share */
    int all_seen;      /* every row sees every key: nothing meets a weight of 0 but by underflow */
    const float *bias; /* by z, readable `window` floats beyond both ends; or NULL */
    const struct locus_tables *tables; /* packed before the call; NULL: by the call */
    struct locus_strips *key_strips;   /* products of the query rows with the key table */
} locus_head;

static inline float locus_panel_scale(const locus_head *head)
{
    return head->packs_scale ? (float)head->plan->call.scale : 1.0f;
}
static inline float locus_row_scale(const locus_head *head)
{
    return head->packs_scale ? 1.0f : (float)head->plan->call.scale;
}

/* The rows of one query tile. */
typedef struct locus_rows {
    int64_t first, count;
    int64_t position;           /* of row 0 */
    int64_t tile_from, tile_to; /* key tiles with a pair in reach */
    /* what meets the keys and the key table, rows `row` apart: turned q + u and q + w, times the
     * scale of rows; the worker's, or q where it lies */
    const float *content, *by_position;
    int64_t row;
} locus_rows;

typedef struct locus_tile {
    int64_t rows, columns;
    int64_t query, key; /* row numbers of row 0 and column 0 */
    int64_t delta_00;   /* distance of pair (0, 0)           */
    int whole;          /* causal and window let all pairs through           */
    int last;           /* of the key tiles that its rows reach              */
    int key_masked;     /* key_mask hides some column                        */
    int skips_reset;    /* pairs whose position part was replaced count as not seen */
    int ragged;         /* from and to do not ascend: rows in between see nothing   */
    int32_t from[MOST_ROWS], to[MOST_ROWS]; /* columns that causal and window let through */
} locus_tile;

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

/* Pack the head's tables, as far as its worker has room for them (NULL: not), for the forward
 * pass. */
void locus_tables_pack(const locus_head *head);

/* Before the first tile of a head whose keys are read as they lie. */
void locus_head_begin(const locus_head *head);

/* Pack the head's keys [from, to); `backward`: also the values, for dout . v, and find the
 * bad rows that sums over keys must know. */
void locus_head_pack(const locus_head *head, int64_t from, int64_t to, int backward);

/* The query rows from `first` on: which key tiles they reach; their loads; the bad ones, for
 * sums over queries. */
void locus_rows_reach(const locus_head *head, int64_t first, locus_rows *rows);
void locus_rows_load(const locus_head *head, locus_rows *rows);
void locus_rows_find_bad(const locus_head *head, const locus_rows *rows);

/* 0: no pair of the tile is seen, skip it. */
int locus_tile_begin(const locus_head *head, const locus_rows *rows, int64_t key_tile,
                     locus_tile *tile);

/* What the last product of a tile may do on its way out: keep the greatest of each row, or
 * turn the logits into weights e^(s - top) factor. See locus_product_tile. */
typedef struct locus_finish {
    float *greatest;
    const float *top, *factor;
} locus_finish;

/* worker->score: the logits, -inf where a mask hides a pair, anything where causal and window do:
 * what comes next goes by locus_tile_seen. Returns 1 if `finish` could be done on the way, else
 * 0: then it is left to the caller. */
int locus_tile_scores(const locus_head *head, const locus_rows *rows, const locus_tile *tile,
                      const locus_finish *finish);

/* out = in times the dropout mask over 1 - p; out may be in. And so for `also`, unless NULL. */
void locus_tile_drop(const locus_head *head, const locus_tile *tile, const float *in, float *out,
                     float *also);

static inline int64_t locus_window_width(const locus_tile *tile)
{
    return tile->rows + tile->columns - 1;
}

/* 1 where rows lie so far apart, heads inside tokens, that they fall into few sets of the caches:
 * whoever reads them again and again copies them first. */
static inline int locus_far_apart(int64_t row_stride, int64_t width)
{
    return row_stride > 2 * width;
}

/* The values of the head from key `first` on, gathered where they lie far apart. */
const float *locus_value_rows(const locus_head *head, int64_t first, int64_t *stride);

/* The operands that sums over rows read. */
locus_block locus_block_of(const float *rows, int64_t row_stride, int64_t count, int64_t width,
                           const uint8_t *bad, float *room);
/* The tile's keys, turned where they are to be, side by side where they lie far apart, and their
 * stride. */
const float *locus_key_rows(const locus_head *head, const locus_tile *tile, int64_t *stride);
locus_block locus_key_block(const locus_head *head, const locus_tile *tile, float *room);
locus_block locus_value_block(const locus_head *head, const locus_tile *tile, float *room);
locus_block locus_place_block(const locus_head *head, const locus_tile *tile, float *room);

/* Turn rows by the cos and sin of their positions. direction = -1 turns back: the transpose,
 * which carries gradients. `to` may be `rows`. */
void locus_turn_rows(const locus_plan *plan, float *to, int64_t to_row, const float *rows,
                     int64_t row_stride, const float *turn, float direction, int64_t count);

/* The gain between the block of row i and the block of the tile's keys. */
static inline const float *locus_row_gain(const locus_plan *plan, const locus_rows *rows,
                                          const locus_tile *tile, int64_t i)
{
    const int64_t steps = locus_block_of_position(plan, rows->position + i) -
                          locus_block_of_position(plan, tile->key);
    return plan->gain + (steps - plan->least_block) * plan->call.D;
}

/* 1 when some row lies in another block than the tile's keys: else every gain is 1. */
static inline int locus_tile_fades(const locus_plan *plan, const locus_rows *rows,
                                   const locus_tile *tile)
{
    if (plan->gain == NULL) return 0;
    const int64_t keys = locus_block_of_position(plan, tile->key);
    return locus_block_of_position(plan, rows->position) != keys ||
           locus_block_of_position(plan, rows->position + rows->count - 1) != keys;
}

/* Pair (i, j) of something indexed by row, by column, or by the entry of its distance. */
typedef struct locus_pair_view {
    int64_t origin, row, column;
    const int32_t *index; /* NULL: the number itself */
} locus_pair_view;
static inline locus_pair_view locus_by_row(void) { return (locus_pair_view){0, 1, 0, NULL}; }
static inline locus_pair_view locus_by_column(void) { return (locus_pair_view){0, 0, 1, NULL}; }

/* to[.] += T[i][j] raw[.] over the seen pairs whose row of `from` is bad. */
void locus_patch(const locus_head *head, const locus_tile *tile, const float *T, float *to,
                 int64_t to_row, locus_pair_view to_view, const locus_block *from,
                 locus_pair_view from_view, int64_t width);

#endif
