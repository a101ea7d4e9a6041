/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROBLEM_H
#define CLI_PROBLEM_H

/* A made-up attention call for any scheme: options, tensors and numbers, built from the
 * scheme's declaration alone, so a new scheme needs no line here. */

#include <locus/locus.h>

typedef struct problem_setting {
    const char *name, *value; /* name NULL ends a list */
} problem_setting;

typedef struct problem_request {
    const char *scheme;
    uint32_t level;        /* LOCUS_ATTEND or LOCUS_LAYER                                */
    int64_t B, H, T, D, E; /* E is used by layers only                            */
    uint32_t causal;
    uint64_t seed;                   /* the same seed gives the same numbers everywhere     */
    const uint32_t *words;           /* T numbers: equal words get equal rows of q, k, v and x;
                              NULL: every row is its own word                     */
    const problem_setting *settings; /* options that are not to have their usual values;
                                        NULL: none                                */
    const char *with, *without;      /* a dense bias or mask to make after all; a tensor
                                        to leave out; NULL: none                  */
    const locus_tensors *given;      /* tensors that are there already, and then no dout
                                        is made; NULL: none                       */
} problem_request;

enum { PROBLEM_BLOCKS = LOCUS_TENSOR_COUNT + 1 };

typedef struct problem {
    problem_request request;
    locus_config config;
    locus_tensors in;   /* F32, dense                                             */
    locus_tensor out;   /* shape of the output; no data                           */
    locus_tensor lse;   /* shape of lse; no data                                  */
    locus_tensor dout;  /* F32, like out                                          */
    int64_t parameters; /* numbers in the tensors of the scheme itself            */
    void *blocks[PROBLEM_BLOCKS];
    size_t block_count;
} problem;

/* On failure `p` holds nothing and need not be freed. */
LOCUS_MUST_CHECK locus_status problem_build(problem *p, const problem_request *request,
                                            locus_error *error);
void problem_free(problem *p);

#endif
