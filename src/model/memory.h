/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_MODEL_MEMORY_H
#define LOCUS_MODEL_MEMORY_H

/* Where a run has its values. One function measures (base NULL) and lays out. */

#include "model/run.h"

typedef enum run_mode { RUN_FORWARD, RUN_KEEPING, RUN_BACK } run_mode;

/* What a forward pass leaves for the backward pass, at the start of the memory that is kept. */
typedef struct kept_head {
    const locus_model_pass *pass; /* NULL: there is no way back */
    uint32_t serves;              /* results that were given */
    int asked, has_types;
    int64_t asked_rows;
    const float *features;
    const float *const *memory;
} kept_head;

typedef struct run_memory {
    void *work, *kept; /* NULL: measured */
    size_t work_bytes, kept_bytes;
} run_memory;

/* 0: it does not fit in memory. r->pass, batch and results are set; the values lie where m says. */
int run_lay_out(run *r, run_mode mode, run_memory *m, kept_head **head);

/* Where the gradient of every value is, for a run that was laid out for the backward pass. */
void run_place_gradients(run *r, const locus_model_gradients *gradients);

/* ---- forward.c ---- */

/* One pass over a batch; batch and results are of this version. */
locus_status model_run(const locus_model_pass *pass, const locus_model_batch *batch,
                       const locus_model_results *results, run_memory *memory, run_mode mode,
                       locus_error *error);

#endif
