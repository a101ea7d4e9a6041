/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_KEYS_H
#define LOCUS_ATTENTION_KEYS_H

/* The keys and values of one head as products and sums read them. What a pass has no room for
 * (NULL) is not made. */

#include "attention/arena.h"
#include "attention/operand.h"

/* Exponents P_r - P_n of the keys of a tile: the greatest, and the greatest of either sign (infinite
 * where one is NaN). */
typedef struct locus_decay_range {
    float most, spread;
} locus_decay_range;

/* Of a key tile: the greatest length of a key, and the least sum of gates (gate_skip.h). */
typedef struct locus_gate_reach {
    float norm;
    double least;
} locus_gate_reach;

typedef struct locus_keys {
    float *panels;       /* packed keys, times locus_panel_scale; NULL: read in place     */
    float *value_panels; /* packed values, for dout . v                             */
    uint8_t *bad;        /* [Tk]                                                    */
    uint8_t *value_bad;  /* [Tk]                                                    */
    /* Keys that were turned, let decay, or copied because they lie far apart or are no floats: `copied_count`
     * from `copied_first` on. One key tile, or all keys. */
    float *copies;
    int64_t copied_first, copied_count;
    int copies_all;                  /* there is room for all keys                              */
    int copies_scattered;            /* keys that lie far apart are copied                      */
    locus_decay_range *decay_ranges; /* [key tiles]                             */
    locus_gate_reach *gate_reaches;  /* [key tiles]                             */
    float *value_copies;             /* [Tk][Dv], for values that lie far apart or are no floats */
    float *value_tile; /* [keys][Dv], for values that are no floats, while they are packed */
} locus_keys;

/* Room for each pass. Of the rows path: one key tile of turned keys. */
void locus_keys_carve_forward(const locus_plan *plan, locus_arena *arena, locus_keys *keys);
void locus_keys_carve_rows_path(const locus_plan *plan, locus_arena *arena, locus_keys *keys);
void locus_keys_carve_backward(const locus_plan *plan, locus_arena *arena, locus_keys *keys);

/* Forget the keys of the head before. */
void locus_keys_begin(locus_keys *keys);

/* Pack keys [from, to) and find the bad rows. */
void locus_keys_pack(const head_context *head, locus_keys *keys, int64_t from, int64_t to);

/* Keys first .. first + count - 1 as sums read them, and their stride. */
const float *locus_key_rows(const head_context *head, locus_keys *keys, int64_t first,
                            int64_t count, int64_t *stride);
/* Values from `first` on. */
const float *locus_value_rows(const head_context *head, const locus_keys *keys, int64_t first,
                              int64_t *stride);

void locus_find_bad_values(const head_context *head, locus_keys *keys, int64_t first,
                           int64_t count);

/* The same as operands; `room` as in locus_operand_of. */
locus_operand locus_key_operand(const head_context *head, locus_keys *keys, int64_t first,
                                int64_t count, float *room);
locus_operand locus_value_operand(const head_context *head, const locus_keys *keys, int64_t first,
                                  int64_t count, float *room);

#endif
