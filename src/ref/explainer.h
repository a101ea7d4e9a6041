/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_REF_EXPLAINER_H
#define LOCUS_REF_EXPLAINER_H

/* An explainer: explain.c makes one, explain_block.c evaluates pairs with it. */

#include <locus/explain.h>

#include "ref/ref.h"

struct locus_explainer {
    ref_memory memory; /* holds this struct too */
    locus_call call;   /* at level LOCUS_ATTEND */
    locus_tensors in;
    ref_attention at; /* without a row: q, k, b, h, i belong to whoever evaluates one */
    double *q;        /* [B][H][Tq][D]   turned */
    double *k;        /* [B][Hk][Tk][D]  turned */
    double *place;    /* [threads][Tk]  of the row that a thread is at; NULL: nothing is counted */
    double *gates, *decays; /* [B][H] sums, gate_step and decay_step apart; NULL: none */
    int64_t gate_step, decay_step;
    size_t count;
    enum ref_part part[REF_PARTS]; /* of each term */
    locus_explainer_term term[REF_PARTS];
};

#endif
