/* SPDX-License-Identifier: Apache-2.0 */
/* Memory at n = 16,384, D = 64, one head, two threads: under 64 MB beyond inputs and
 * outputs in both directions, for every scheme by the size query (with the plan's own
 * tables, counted by its allocator), and for two of them by the resident size. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "contract/variants.h"
#include "support/allocator.h"
#include "support/check.h"

enum { N = 16384, WIDTH = 64 };
static const size_t limit = 64u * 1000u * 1000u;

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static size_t resident_peak(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (size_t)usage.ru_maxrss * 1024;
}

/* A whole call, with the peak before and after. */
static void check_resident(test_problem *p, const locus_plan *plan)
{
    const size_t forward = locus_forward_workspace(plan), backward = locus_backward_workspace(plan);
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) { /* touch what the caller owns */
        const locus_tensor *t = locus_tensor_at_const(&p->grad[1], i);
        memset(t->data ? t->data : &(char){0}, 0,
               t->data ? (size_t)locus_tensor_elements(t) * sizeof(float) : 1);
    }
    memset(p->results[1].out.data, 0, (size_t)N * WIDTH * sizeof(float));
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    const size_t before = resident_peak();
    locus_error error = {{0}};
    void *workspace = malloc(forward > backward ? forward : backward);
    CHECK(locus_forward(plan, &p->in[1], &p->results[1], workspace, forward, &error) == LOCUS_OK,
          "%s", error.text);
    CHECK(locus_backward(plan, &p->in[1], &p->results[1], &dresults, &p->grad[1], 0, workspace,
                         backward, &error) == LOCUS_OK,
          "%s", error.text);
    const size_t peak = resident_peak() - before;
    CHECK(peak < limit, "peak resident size grew by %zu bytes", peak);
    free(workspace);
}

/* Sums of decays, and their gradients, are doubles of every position and channel. */
static size_t summed_bytes(const test_variant *v)
{
    return strcmp(v->scheme, "wall") == 0 ? 2 * (size_t)N * WIDTH * sizeof(double) : 0;
}

/* A map that jumps from row to row is gathered into an entry per distance, for each of its two
 * tables and for their gradients: O(n) beside what every scheme needs. */
static size_t gathered_bytes(const test_variant *v)
{
    return strcmp(v->name, "table") == 0 ? 4 * (2 * (size_t)N) * WIDTH * sizeof(float) : 0;
}

/* Windows keep the resident test short: the memory does not depend on them. */
static void test_variant_memory(const test_variant *v)
{
    if (v->with != NULL) return; /* the caller's own n x n tensors */
    if (!check_begin("memory/%s", v->name)) return;
    test_problem *p =
        test_variant_problem(v, (test_spec){.B = 1, .H = 1, .Tq = N, .Tk = N, .D = WIDTH});
    test_allocator memory;
    test_allocator_init(&memory);
    p->config.allocator = &memory.interface;
    p->config.threads = 2;
    locus_plan *plan = NULL;
    locus_error error = {{0}};
    CHECK(locus_plan_new(&plan, &p->config, &p->in[1], &error) == LOCUS_OK, "%s", error.text);
    const size_t forward = locus_forward_workspace(plan), backward = locus_backward_workspace(plan);
    CHECK(memory.peak_bytes + forward < limit, "plan %zu + forward %zu bytes", memory.peak_bytes,
          forward);
    const size_t more = gathered_bytes(v) + summed_bytes(v);
    CHECK(memory.peak_bytes + backward < limit + more, "plan %zu + backward %zu bytes",
          memory.peak_bytes, backward);
    const int measured =
        strcmp(v->name, "relative_key_query-causal") == 0 || strcmp(v->name, "none-window") == 0;
    if (measured && SANITIZED) check_skip("resident size means nothing under a sanitizer");
    if (measured && !SANITIZED) check_resident(p, plan);
    locus_plan_free(plan);
    CHECK(memory.live_blocks == 0, "%zu blocks leaked", memory.live_blocks);
    test_problem_free(p);
}

int main(int argc, char **argv)
{
    if (!check_args(argc, argv)) return 2;
    for (size_t v = 0; v < TEST_VARIANTS; v++) test_variant_memory(&test_variants[v]);
    return check_finish("memory");
}
