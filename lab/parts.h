/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_PARTS_H
#define LOCUS_LAB_PARTS_H

/* A batch in parts, a few rows each, one after the other or on several ranks. The gradient of the
 * batch is the sum over its parts by a tree that depends on their number alone:
 *
 *     0   1   2   3   4      part
 *      \ /     \ /    |
 *       +       +     |      so the bits are the same for any number of ranks, and for one
 *        \     /      |      process without any
 *         - + -       |
 *              \     /
 *               - + -
 */

#include "lab/crew.h"
#include "lab/settings.h"

typedef struct lab_parts {
    const lab_crew *crew;
    int64_t batch;        /* rows of the batch                                      */
    int64_t rows, count;  /* of a part (the last may have fewer); parts             */
    int64_t first, past;  /* parts of this rank                                     */
    size_t bytes;         /* of a sum: its head, then its gradients                  */
    void *memory;         /* of all sums                                            */
    size_t slots, levels; /* sums of this rank that wait for others; one per level   */
} lab_parts;

locus_status lab_parts_new(lab_parts *parts, const lab_plan *plan, const train_model *model,
                           const lab_crew *crew, locus_error *error);
void lab_parts_free(lab_parts *parts);

/* Everything that parts of rows of `tokens` over `memory` rows need. */
locus_status lab_parts_prepare(const lab_parts *parts, train_model *model, int64_t tokens,
                               int64_t memory, locus_error *error);

/* What a step learned, the same on all ranks. */
typedef struct lab_learned {
    double loss;     /* mean over the targets that count                */
    int interrupted; /* somebody was asked to end                       */
} lab_learned;

/* Gradients of the mean loss of `batch` in model->gradients; `memory` (NULL: none) is read, and
 * remembers the rows of this rank's parts. Collective. */
locus_status lab_parts_learn(const lab_parts *parts, train_model *model, const train_batch *batch,
                             train_memory *memory, int interrupted, lab_learned *learned,
                             locus_error *error);

/* All rows of the memory on rank 0. Collective. */
void lab_parts_collect(const lab_parts *parts, const train_model *model,
                       const train_memory *memory);

#endif
