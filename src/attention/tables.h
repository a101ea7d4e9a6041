/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TABLES_H
#define LOCUS_ATTENTION_TABLES_H

/* What a call makes of its tables, made once. A table that heads share is here once too. */

#include "attention/relative.h"

struct locus_tables {
    const locus_plan *plan;
    float *bias;         /* [H][locus_bias_room]                        */
    float *key_panels;   /* packed relative table                       */
    int64_t key_each;    /* floats from one head's to the next; 0: shared */
    float *place_panels; /* [H][..] packed pos_k                        */
    int64_t place_each;
    uint8_t *place_bad; /* [H][Tk]                                     */
    uint8_t *value_bad; /* [row_count]                                 */
};

/* Let the head's worker read them. */
void locus_tables_use(const locus_head *head);

#endif
