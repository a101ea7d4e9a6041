/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_ATTENTION_FORWARD_H
#define LOCUS_ATTENTION_FORWARD_H

#include "attention/tables.h"

typedef struct locus_forward_call {
    const locus_plan *plan;
    const locus_tensors *in;
    const locus_results *results;
    const locus_tables *tables; /* NULL: the call packs its own */
    float *bias;                /* [H][locus_bias_room]         */
    char *workers;
    size_t worker_bytes;
    float *partial; /* of decode.c */
} locus_forward_call;

/* Lay out one thread's scratch. */
void locus_forward_worker(const locus_forward_call *call, uint32_t number, locus_worker *worker);

/* One head of the call, without its tables. */
locus_head locus_forward_head(const locus_forward_call *call, locus_worker *worker, int64_t b,
                              int64_t h);

/* decode.c: few queries over many keys. */
int64_t locus_decode_floats(const locus_plan *plan); /* of call->partial */
void locus_decode(const locus_forward_call *call);

#endif
