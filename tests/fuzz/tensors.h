/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_FUZZ_TENSORS_H
#define LOCUS_TESTS_FUZZ_TENSORS_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Opens a file of weights of this name and reads the numbers of every tensor. 1: it was accepted. */
int fuzz_read_weights(const char *name, const uint8_t *data, size_t size);

#endif
