/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_BACKWARD_H
#define LOCUS_MODEL_BACKWARD_H

/* The way back over a tape. */

#include "model/tape.h"
#include "model/trainable.h"

typedef struct back_work {
    unsigned char *twin; /* gradients of the executor's workspace */
    float *given;        /* [largest] the gradient of what an operator wrote */
    float *other;        /* [largest] */
    float *parts;        /* gradients of q, k and v of one call of attention */
    float *embedding;    /* [sequences, E] */
    float *copies[2];    /* gradients of arranged parameters */
    float *pairs;        /* [H, longest, longest] scores of pairs of two types; or NULL */
    void *attention, *convolution, *linear, *norm;
    size_t attention_bytes, bytes;
} back_work;

/* One function measures (base NULL) and lays out. 0: it does not fit in memory. */
int model_back_carve(const locus_model_pass *pass, void *base, back_work *work);

typedef struct back {
    const locus_model *m;
    const model_tape *tape;
    const locus_model_gradients *gradients;
    trainable_gradients parameters;
    back_work w;
    locus_error *error;
} back;

locus_status model_back_run(const back *b);

/* ---- segments.c ---- */

/* Scores of pairs of two types made again from the kept q, and the gradients of their parts from
 * those of the scores. */
locus_tensor model_segment_again(const model_description *d, const tape_attention *a, float *pairs);
void model_segment_back(const model_description *d, const tape_attention *a, const float *dpairs,
                        float *dq, float *dbias, float *dsegment);

#endif
