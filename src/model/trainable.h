/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_TRAINABLE_H
#define LOCUS_MODEL_TRAINABLE_H

/* The weights of a model that is trained: every tensor as the checkpoint stores it, one behind the
 * other in one array, and a gradient array of the same layout. The executor reads them in place where
 * it can. Where it wants them in another order (transposed, sorted by parts, scaled) it has an
 * arranged copy, which model_arrange makes anew from the tensors; backward, model_gather brings the
 * gradients of the copies back. */

#include <locus/model.h>

#include "io/store.h"
#include "model/checkpoint.h"
#include "model/model.h"

enum { MOVE_AXES = 3 };

/* One tensor of the checkpoint. */
typedef struct trainable_tensor {
    const char *name;
    uint32_t rank;
    int64_t shape[LOCUS_MAX_RANK];
    int64_t at, count; /* in `values`, and alike in an array of gradients */
} trainable_tensor;

/* A copy that the executor reads. */
typedef struct trainable_block {
    float *data;
    int64_t count, at; /* at: in the gradients of all copies */
} trainable_block;

/* to[sum of i to_stride] = from[sum of i from_stride] / divisor, over all i below `extent`. */
typedef struct trainable_move {
    const float *from; /* a tensor */
    float *to;
    int64_t extent[MOVE_AXES], from_stride[MOVE_AXES], to_stride[MOVE_AXES];
    float divisor;
} trainable_move;

/* A batch norm inside the taps in front of it, with the statistics of its training:
 *     to[k][c] = weight[c][k] gain[c] / s[c],  to_shift[c] = shift[c] - mean[c] gain[c] / s[c] */
typedef struct trainable_fold {
    const float *weight, *gain, *shift; /* tensors */
    const float *mean;                  /* [E] */
    const float *variance;              /* [E] s = sqrt(variance + epsilon) */
    double epsilon;
    float *to, *to_shift; /* [taps, E], [E] */
    int64_t taps, width;
} trainable_fold;

struct model_trainable {
    float *values;
    int64_t count, room; /* floats of `values`: used, there */
    int64_t arranged;    /* floats of all copies */
    locus_list tensors;  /* trainable_tensor */
    locus_list blocks;   /* trainable_block  */
    locus_list moves;    /* trainable_move   */
    locus_list folds;    /* trainable_fold   */
    locus_arena texts;   /* names; its allocator is that of all of this */
};

locus_status model_trainable_new(model_trainable **trainable, int64_t room,
                                 const locus_allocator *allocator, locus_error *error);
void model_trainable_free(model_trainable *t); /* NULL is allowed */

/* Read the tensor of a slot, unless it is there by its name; *to is its place in `values`. */
locus_status model_trainable_place(model_trainable *t, model_checkpoint *c, model_slot slot,
                                   int64_t layer, float **to, locus_error *error);

/* Say that the executor reads data[count], a copy, whose parts moves and folds fill. */
locus_status model_trainable_block(model_trainable *t, float *data, int64_t count,
                                   locus_error *error);
locus_status model_trainable_move(model_trainable *t, const trainable_move *move,
                                  locus_error *error);
locus_status model_trainable_fold(model_trainable *t, const trainable_fold *fold,
                                  locus_error *error);

/* Fill all copies. */
void model_arrange(const model_trainable *t);

/* Where gradients go: of the tensors of an encoder and its decoder, or of one stack of layers alone,
 * and of their copies. */
typedef struct trainable_gradients {
    const model_trainable *stack[2]; /* NULL: there is none */
    float *tensors[2], *copies[2];   /* of each */
} trainable_gradients;

/* The gradient of what the executor reads at `place`; NULL: that is no parameter. */
float *model_gradient_of(const trainable_gradients *g, const float *place);

/* Add what the copies say to the gradients of the tensors. */
void model_gather(const trainable_gradients *g);

#endif
