/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_FUZZ_MODEL_H
#define LOCUS_TESTS_FUZZ_MODEL_H

/* What the targets of model folders share. tools/fuzz.sh builds and runs them. */

#include "fuzz/scratch.h"
#include "model/checkpoint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads config.json of the folder and describes the model. 1: it was understood. */
int fuzz_describe(const model_family **family, model_description *d);

/* Opens the checkpoint of a small BERT and reads every tensor that is there. */
void fuzz_read_tensors(void);

#endif
