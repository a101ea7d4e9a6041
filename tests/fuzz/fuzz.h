/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_FUZZ_H
#define LOCUS_TESTS_FUZZ_H

/* What the targets share. tools/fuzz.sh builds and runs them. */

#include "text/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An empty tokenizer for a reader; its Unicode tables are made once. */
locus_tokenizer *fuzz_tokenizer(void);
void fuzz_close(locus_tokenizer *t);

/* Encode texts of all kinds, alone and as a pair, and decode what came. */
void fuzz_use(const locus_tokenizer *t);
/* Encode one text; what comes must be in range, or the program ends. */
void fuzz_encode(const locus_tokenizer *t, const char *text, size_t bytes);

#endif
