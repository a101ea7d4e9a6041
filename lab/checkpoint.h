/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_LAB_CHECKPOINT_H
#define LOCUS_LAB_CHECKPOINT_H

/* FOLDER/checkpoint.safetensors: weights, moments, memory, step, and a sum over every bit. The one
 * before it is kept, so that a file that went bad costs steps and not the run. */

#include "lab/settings.h"

#define LAB_CHECKPOINT "checkpoint.safetensors"
#define LAB_PREVIOUS "checkpoint.previous.safetensors"

locus_status lab_checkpoint_write(const lab_plan *plan, const train_model *model,
                                  const train_memory *memory, int64_t step, const char *folder,
                                  locus_error *error);

/* Weights, moments and memory of FOLDER/NAME; nothing is changed on failure before the first
 * tensor is read. A memory of `most` 0 is left alone. */
locus_status lab_checkpoint_read(const lab_plan *plan, train_model *model, train_memory *memory,
                                 int64_t *step, const char *folder, const char *name,
                                 locus_error *error);

#endif
