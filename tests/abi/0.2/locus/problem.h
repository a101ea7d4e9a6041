/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_PROBLEM_H
#define LOCUS_PROBLEM_H

/* A made-up attention call for any scheme: options, tensors and numbers, built from the
 * scheme's declaration alone, for demonstrations, pictures and measurements.
 *
 *     locus_problem *p;
 *     const locus_problem_request request = {.size = sizeof request, .scheme = "t5",
 *                                            .level = LOCUS_ATTEND, .B = 1, .H = 4, .T = 10,
 *                                            .D = 16, .seed = 1};
 *     status = locus_problem_new(&p, &request, &error);
 *     ... p->config and p->in are a call that a plan, the oracle and the explainer take ...
 *     locus_problem_free(p); */

#include <locus/call.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An option of the scheme as text. This struct never grows. */
typedef struct locus_problem_setting {
    const char *name, *value; /* name NULL ends a list */
} locus_problem_setting;

/* Nothing of it needs to outlive the call but the allocator and the data of `given`. */
typedef struct locus_problem_request {
    uint32_t size;  /* sizeof(locus_problem_request) as the caller compiled it                */
    uint32_t level; /* LOCUS_ATTEND or LOCUS_LAYER                                            */
    const char *scheme;
    int64_t B, H, T, D, E; /* E is used by layers only                                        */
    uint32_t causal;
    uint64_t seed;             /* the same seed gives the same numbers everywhere             */
    const char *const *tokens; /* T texts: equal tokens get equal rows of q, k, v and x, in any
                                  sentence; NULL: every row is a token of its own             */
    const locus_problem_setting *settings; /* options that are not to have their usual values;
                                              those that the scheme does not know are passed
                                              over; NULL: none                                */
    const char *with, *without;       /* a dense bias or mask to make after all; a tensor to leave
                                         out; NULL: none                                      */
    const locus_tensors *given;       /* tensors that are there already, and then no dout is
                                         made; NULL: none                                     */
    const locus_allocator *allocator; /* also of the call; NULL: malloc                       */
} locus_problem_request;

/* Made by locus_problem_new, which owns all of it; later versions append fields. The
 * configuration and the tensors may be changed. */
typedef struct locus_problem {
    uint32_t level; /* LOCUS_ATTEND or LOCUS_LAYER */
    locus_config *config;
    locus_tensors *in;  /* dense                                                  */
    locus_tensor out;   /* shape of the output; no data                           */
    locus_tensor lse;   /* shape of lse; no data                                  */
    locus_tensor dout;  /* F32, like out                                          */
    int64_t parameters; /* numbers in the tensors of the scheme itself            */
} locus_problem;

/* On failure *problem is NULL. */
LOCUS_API LOCUS_MUST_CHECK locus_status locus_problem_new(locus_problem **problem,
                                                          const locus_problem_request *request,
                                                          locus_error *error);
LOCUS_API void locus_problem_free(locus_problem *problem); /* NULL is allowed */

#ifdef __cplusplus
}
#endif
#endif
