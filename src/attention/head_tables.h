/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_HEAD_TABLES_H
#define LOCUS_ATTENTION_HEAD_TABLES_H

/* The relative tables and position keys of one head as products and sums read them: packed by the
 * call that uses them, or once for all calls (tables.c). What a pass has no room for (NULL) is not
 * made. */

#include "attention/arena.h"
#include "attention/operand.h"

typedef struct locus_head_tables {
    float *key_panels;   /* the packed key table, times locus_panel_scale; NULL: packed as its
                            strips roll, or read in place                                   */
    float *value_panels; /* the packed value table, for dout . RV; NULL: likewise           */
    uint8_t *key_bad, *key_side_bad, *value_bad; /* [row_count] by entry                    */
    float *pos_k_panels;                         /* packed pos_k                            */
    uint8_t *pos_k_bad;                          /* [Tk]                                    */
} locus_head_tables;

/* Rooms. Forward, packed tables; backward, packed tables up to a size, and bad entries. */
void locus_carve_relative_forward(const locus_plan *plan, locus_arena *arena,
                                  locus_head_tables *tables);
void locus_carve_relative_backward(const locus_plan *plan, locus_arena *arena,
                                   locus_head_tables *tables);
void locus_carve_pos_k(const locus_plan *plan, locus_arena *arena, locus_head_tables *tables);

/* 1 where backward packs relative tables as a whole. */
int locus_packs_tables_backward(const locus_plan *plan);

/* Pack the relative tables; mark the bad rows of pos_k for keys [from, to), and pack it, too. */
void locus_pack_relative(const head_context *head, const locus_head_tables *tables);
void locus_find_bad_pos_k(const head_context *head, const locus_head_tables *tables, int64_t from,
                          int64_t to);
void locus_pack_pos_k(const head_context *head, const locus_head_tables *tables, int64_t from,
                      int64_t to);

/* The rows of pos_k of `count` keys. */
locus_operand locus_pos_k_operand(const head_context *head, const locus_head_tables *tables,
                                  int64_t first, int64_t count, float *room);

#endif
