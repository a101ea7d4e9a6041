/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_PACKED_H
#define LOCUS_ATTENTION_PACKED_H

/* Many query rows: keys and tables are read from panels. */

#include "attention/scores.h"

extern const locus_path locus_packed;

/* `rolls_tables`: some table is not packed as a whole. */
void locus_packed_carve(const locus_plan *plan, const locus_geometry *geometry, int rolls_tables,
                        locus_arena *arena, locus_scores *scores);

/* Rows that are multiplied with a relative table, from row 0 of a tile on. */
typedef struct locus_table_product {
    const float *rows;
    int64_t row_stride, width;
    const locus_tensor *table;
    float scale;         /* of its panels */
    const float *panels; /* the packed table; NULL: entry_panels takes what is missing */
    float *entry_panels;
} locus_table_product;

/* Make the strip hold row_i . entry for the entries of the band. */
void locus_packed_strip(const head_context *head, const locus_band *band,
                        const locus_table_product *product, locus_strip *strip);
/* The same for all bands of a tile of given positions: every entry, once per query tile. */
void locus_packed_placed_strips(const head_context *head, const locus_tile *tile,
                                const locus_table_product *product, locus_strip *strips);

#endif
