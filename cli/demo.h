/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DEMO_H
#define CLI_DEMO_H

/* locus demo, file by file:
 *     cmd_demo.c     options, the folder of the page
 *     demo_run.c     every scheme, judged and timed
 *     demo_print.c   the table and JSON
 *     page.h         the page that teaches
 *     digest.h       the bits of a fixed list of results */

#include "cli.h"
#include "stopwatch.h"

/* Largest |got - want| / max(1, max |want|) against the oracle. */
typedef struct demo_errors {
    double outputs, gradients;
} demo_errors;

typedef struct demo_outcome {
    const locus_scheme_info *scheme;
    uint32_t level;            /* LOCUS_LAYER for schemes that act on x              */
    int64_t parameters;        /* learned numbers on the larger problem              */
    demo_errors small, large;  /* on the sentence, on the larger problem             */
    pace pace;                 /* on the larger problem                              */
    size_t bytes, plain_bytes; /* plan, workspace and what is kept for the backward
                                  pass: of the scheme, of plain attention            */
} demo_outcome;

typedef struct demo {
    const char *const *sentence; /* `words` of them */
    size_t words;
    locus_problem_request small, large;
    demo_errors small_limit, large_limit;
    double seconds; /* of timing, per scheme       */
    size_t count;
    demo_outcome *outcomes; /* [count], in the order of locus_scheme_at */
} demo;

/* An exit code; `d` is to be freed in any case. */
int demo_run_all(demo *d, int quick);
void demo_free(demo *d);

/* 1: no error is above its tolerance. */
int demo_exact(const demo *d, const demo_outcome *o);
demo_errors demo_worst(const demo_outcome *o);                    /* of both problems       */
const demo_outcome *demo_find(const demo *d, const char *scheme); /* NULL: no such one */

/* 1: plain attention itself. A time over its own would be a throw of dice. */
int demo_is_plain(const demo_outcome *o);

/* Bytes that one array of scores over all pairs would take on the larger problem. */
size_t demo_score_bytes(const demo *d);

/* `page`: where it was written, NULL: nowhere. */
void demo_print_table(const demo *d, const char *page);
void demo_print_json(const demo *d, const char *page);

#endif
