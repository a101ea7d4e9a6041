/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_DRAFT_H
#define LOCUS_TESTS_DRAFT_H

/* A case file in the making: a good one from a test problem, then one thing is changed. */

#include <locus/case.h>

#include "support/problem.h"

typedef struct draft_tensor {
    char name[64];
    const char *dtype;
    uint32_t rank;
    uint64_t shape[16];
    const void *data;
} draft_tensor;

typedef struct draft_entry {
    char key[64], value[256];
} draft_entry;

typedef struct draft {
    test_problem *problem;
    draft_entry entries[32];
    size_t entry_count;
    draft_tensor tensors[96];
    size_t tensor_count;
} draft;

/* The problem as a case. With `grad` also dout; with `want` what the oracle says. */
draft *draft_new(const test_spec *spec, int grad, int want);
void draft_free(draft *d);

void draft_set(draft *d, const char *key, const char *value); /* NULL: leave it out */
draft_tensor *draft_at(draft *d, const char *name);           /* NULL: no such tensor */
void draft_add(draft *d, const char *name, const char *dtype, uint32_t rank, const uint64_t *shape,
               const void *data);
void draft_drop(draft *d, const char *name);

/* Write it to FOLDER/name and return that path (valid until the next call). */
const char *draft_write(const draft *d, const char *name);

/* The one temporary folder. */
void folder_make(void);
void folder_remove(void);
const char *folder_path(const char *name);
size_t folder_count(void); /* entries in it */

#endif
