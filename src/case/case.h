/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_CASE_CASE_H
#define LOCUS_CASE_CASE_H

/* Case files, file by file:
 *     load.c      open, list the tensors, check the call, read the data
 *     metadata.c  the keys: those of every case, and the options of the scheme
 *     run.c       the kernels or the oracle, into memory of the case
 *     compare.c   results against the file's `want.` tensors
 *     save.c      results into a new file
 *     write.c     a call of the caller's into a new file */

#include <locus/case.h>
#include <locus/tensorfile.h>

/* Every result has a slot: out, lse, then the gradients in the order of locus_tensors. */
enum { CASE_OUT = 0, CASE_LSE = 1, CASE_GRADS = 2, CASE_SLOTS = CASE_GRADS + LOCUS_TENSOR_COUNT };

/* What is read: the tensors of the call, then dout and dlse. */
enum { CASE_DOUT = LOCUS_TENSOR_COUNT, CASE_DLSE, CASE_INPUTS };

#define CASE_ABSENT SIZE_MAX

typedef struct case_result {
    char name[24]; /* "grad.bias_dense" is the longest */
    size_t slot;
    locus_tensor tensor; /* dense */
} case_result;

typedef struct case_results {
    case_result list[CASE_SLOTS];
    size_t count;
    void *memory; /* of all of them */
    char isa[32], path[32];
} case_results;

struct locus_case {
    const locus_allocator *allocator;
    locus_file *file; /* stays open: expected values are read when they are compared */
    char path[200];   /* escaped, for messages                                       */
    uint32_t level;
    uint32_t grad;
    locus_config config;
    locus_tensors inputs;
    locus_results dresults;               /* dout and dlse                                   */
    void *memory[2];                      /* of inputs, dout and dlse; of the planned inputs */
    double tolerance, gradient_tolerance; /* of expected values; 0: the usual one */
    size_t from[CASE_INPUTS];             /* number in the file of each input, of dout, dlse */
    size_t want[CASE_SLOTS];              /* number in the file of each `want.` tensor */
    locus_tensor out_shape, lse_shape;    /* no data                                   */
    case_results results;
};

/* Put the path of the file in front of a message. Returns `status`. */
locus_status locus_case_fail_in(const locus_case *c, locus_status status, locus_error *error);

/* format, kind and scheme, then every other key. */
locus_status locus_case_read_metadata(locus_case *c, locus_error *error);

/* What can be said about keys only when the tensors are known. */
locus_status locus_case_check_options(const locus_case *c, locus_error *error);

/* The declaration of a tensor in this case: a common one, or one of the scheme; or NULL. */
const locus_tensor_info *locus_case_declaration(const locus_case *c, const char *name);

/* "[2,3]" */
enum { CASE_SHAPE_TEXT = 96 };
const char *locus_case_shape_text(uint32_t rank, const int64_t *shape, char *text);

/* Bytes as the file holds them (little-endian), into words of this machine. */
void locus_case_to_native(void *data, size_t bytes, size_t word);

#endif
