/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_TABLES_H
#define LOCUS_ATTENTION_TABLES_H

/* What a forward or a backward call makes of its tables, made once. A table that heads share is
 * here once, too. */

#include "attention/gathered.h"
#include "attention/head_tables.h"

struct locus_tables {
    const locus_plan *plan;
    locus_pass pass;
    locus_tensors gathered; /* see gathered.h; its other tensors are those of no call    */
    float *bias;            /* [H][locus_bias_room]                                      */
    locus_head_tables
        first;        /* of head 0; the others follow, in steps that are 0 where heads share: */
    int64_t key_step; /* of key_panels                                             */
    int64_t key_bad_step, key_side_bad_step;
    int64_t pos_k_step; /* of pos_k_panels                                           */
};

/* Those of one head. Of a ragged batch there are none: its sequences make their own. */
locus_head_tables locus_tables_of_head(const locus_tables *tables, int64_t h);

/* Refuse tables that were made for another plan or the other pass. */
locus_status locus_check_tables(const locus_tables *tables, const locus_plan *plan, locus_pass pass,
                                locus_error *error);

#endif
