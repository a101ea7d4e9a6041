/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LOCUS_TESTS_PROBLEM_H
#define LOCUS_TESTS_PROBLEM_H

/* Test problems: one call with seeded values, built from a scheme's declarations, that can
 * be run by the oracle (double) and by the library (float) on the same numbers.
 *
 *     test_problem *p = test_problem_new(&(test_spec){
 *         .scheme = "shaw", .level = LOCUS_ATTEND, .B = 2, .H = 2, .Tq = 7, .Tk = 7, .D = 5,
 *         .settings = "clip_left=2 clip_right=1 causal=1", .without = "rel_v"});
 *     test_problem_run(p, TEST_ORACLE, 1, &error);
 *     test_problem_run(p, TEST_FLOAT, 1, &error);
 *     ... p->results[TEST_FLOAT].out against p->results[TEST_ORACLE].out ...
 *     test_problem_free(p);
 */

#include <locus/attention.h>

typedef struct test_spec {
    const char *scheme;
    uint32_t level;          /* LOCUS_ATTEND or LOCUS_LAYER                            */
    int64_t B, H, Tq, Tk, D; /* layer: Tq rows of x, Tk - Tq rows of memory            */
    int64_t Hk, Dv;          /* attend; 0: H and D                                     */
    int64_t E;               /* layer                                                  */
    const char *settings;    /* "key=value ..." as case files spell them               */
    const char *with;        /* "mask:11 bias_dense:1H key_mask": extra tensors; the two
                                    letters choose 1 or all for the first two axes          */
    const char *without;     /* optional tensors of the scheme to leave out            */
    int64_t reach;           /* relative tables serve distances -reach..reach; 0: just
                                    those of the call                                      */
    uint64_t seed;
} test_spec;

enum { TEST_ORACLE = 0, TEST_FLOAT = 1, TEST_PATHS = 2 };

/* Index 0 is the oracle's side, F64; index 1 the library's, F32 with the same values
 * (masks: the same memory). Change values on the F64 side, then call test_problem_sync. */
typedef struct test_problem {
    test_spec spec;
    locus_config config;
    locus_tensors in[TEST_PATHS];
    locus_tensor dout[TEST_PATHS];
    locus_tensor dlse[TEST_PATHS]; /* only with "dlse"                  */
    locus_results results[TEST_PATHS];
    locus_tensors grad[TEST_PATHS];
    char shape[64]; /* "B2H2T7D5"                                    */
    void *newest;   /* memory, released by test_problem_free         */
} test_problem;

/* Ends the program with a message when the spec is nonsense: a bug of the test. */
test_problem *test_problem_new(const test_spec *spec);
void test_problem_free(test_problem *problem); /* NULL is allowed */

/* Round the F64 side to float and copy it to the F32 side. */
void test_problem_sync(test_problem *problem);

/* Run one side: results, and grad when `gradients`. Gradients and results are poisoned
 * with NaN before, so that what is not written shows. */
locus_status test_problem_run(test_problem *problem, int path, int gradients, locus_error *error);

/* "oracle" or "float". */
const char *test_path_name(int path);

/* dout and dlse of one side, as the library takes them. */
locus_results test_problem_gradient(const test_problem *problem, int path);

/* sum(out * dout) + sum(lse * dlse) of the oracle's side as it stands after test_problem_run. */
double test_problem_loss(const test_problem *problem);

/* Element `index` of a dense tensor of either floating type. */
double test_value(const locus_tensor *tensor, int64_t index);
void test_set_value(const locus_tensor *tensor, int64_t index, double value);

/* Uniform in [0, 1): element `index` of stream `stream`; the same on every machine. */
double test_uniform(uint64_t stream, uint64_t index);

#endif
