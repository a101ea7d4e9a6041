/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_WEB_CALL_H
#define LOCUS_WEB_CALL_H

/* A call of the page: what the reader chose, its tensors, the explainer, and the
 * numbers of the head that was explained last. */

#include <locus/locus.h>
#include <locus/problem.h>

enum { CALL_TOKENS = 64, CALL_SETTINGS = 16, CALL_TERMS = 12, CALL_PAIRS = 64 };

typedef struct page_call_state {
    char *words; /* the request, cut into strings that the rest points into */
    const char *scheme;
    const char *tokens[CALL_TOKENS + 1];
    size_t token_count;
    locus_problem_setting settings[CALL_SETTINGS + 1];
    size_t setting_count;
    uint32_t level;
    uint32_t causal;
    int64_t window_left, window_right;
    double scale; /* NaN: the scheme's own */
    uint64_t seed;
    const char *trained; /* the scheme whose trained layer it is; NULL: made up from the seed */

    locus_problem *problem;
    float *numbers_of_trained; /* memory of its tensors; NULL: made up */
    locus_explainer *explainer;
    locus_explainer_info info;
    uint32_t head;   /* that was explained last */
    double *numbers; /* terms [terms][T][T], score [T][T], weight [T][T] */
    uint8_t *visible;
    float *forward; /* out, then lse */
    size_t forward_count;
} page_call_state;

page_call_state *call_at(uint32_t slot); /* NULL: no such slot, or nothing in it */
int call_fail(const locus_error *error); /* the message becomes the text; returns 1 */

#endif
