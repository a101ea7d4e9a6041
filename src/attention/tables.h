/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TABLES_H
#define LOCUS_ATTENTION_TABLES_H

/* What a call makes of its tables, made once. A table that heads share is here once, too. */

#include "attention/head_tables.h"

struct locus_tables {
    const locus_plan *plan;
    float *bias;             /* [H][locus_bias_room]                        */
    locus_head_tables first; /* of head 0; the others follow:               */
    int64_t key_stride;      /* from one head's key_panels to the next; 0: shared */
    int64_t pos_k_stride;    /* of pos_k_panels                             */
};

/* Those of one head. */
locus_head_tables locus_tables_of_head(const locus_tables *tables, int64_t h);

#endif
