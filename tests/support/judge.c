/* SPDX-License-Identifier: Apache-2.0 */
#include "support/judge.h"

#include <locus/layer.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/compare.h"
#include "support/naive.h"
#include "support/views.h"

static const double result_tolerance = 5e-6;
static const double already_there = 0.75; /* what gradients hold before they are added to */

void test_judge_tensor(const char *name, const locus_tensor *got, const locus_tensor *want,
                       double tolerance)
{
    const size_t elements = (size_t)locus_tensor_elements(want);
    if (elements == 0) return;
    const comparison c = compare_tensors(got, want);
    char text[160];
    CHECK(comparison_passes(&c, elements, tolerance, text, sizeof text), "%s: %s", name, text);
}

/* Where a counted position is whole, the gradient that goes through it has a step: among so many
 * pairs some lie so near that a rounding error takes the other side, of one pair. */
static int has_steps(const char *name, const test_spec *shape)
{
    const int64_t pairs = shape->B * shape->H * shape->Tq * shape->Tk;
    return strcmp(shape->scheme, "cope") == 0 && pairs > 20000 &&
           (strcmp(name, "q") == 0 || strcmp(name, "k") == 0);
}

/* 2e-5, the golden files' tolerance. The gradient of a slope or an exponent is a sum of dS
 * times a power of the distance, which multiplies the rounding errors of dS as well: those
 * get the same tolerance relative to the largest factor once it exceeds 50. */
static double gradient_tolerance(const char *name, const test_spec *shape)
{
    const int grows =
        strcmp(name, "slopes") == 0 || strcmp(name, "a") == 0 || strcmp(name, "p") == 0;
    const double reach = (double)(shape->Tq > shape->Tk ? shape->Tq : shape->Tk);
    const double factor = pow(reach, 1.5) / 50.0;
    if (has_steps(name, shape)) return 2e-2;
    return grows && factor > 1.0 ? 2e-5 * factor : 2e-5;
}

/* ---- running ---- */

static locus_tensors wanted_gradients(const test_problem *p, const test_manner *manner)
{
    if (manner->only == NULL) return p->grad[1];
    const size_t index = (size_t)locus_tensor_index(manner->only);
    locus_tensors alone = {.size = sizeof alone};
    *locus_tensor_at(&alone, index) = *locus_tensor_at_const(&p->grad[1], index);
    return alone;
}

static locus_status run_forward(const test_problem *p, const locus_plan *plan, int prepared,
                                void *workspace, size_t bytes, locus_error *error)
{
    if (!prepared) return locus_forward(plan, &p->in[1], &p->results[1], workspace, bytes, error);
    locus_tables *tables = NULL;
    locus_status status = locus_tables_new(&tables, plan, &p->in[1], error);
    if (status == LOCUS_OK)
        status = locus_forward_prepared(plan, tables, &p->in[1], &p->results[1], workspace, bytes,
                                        error);
    locus_tables_free(tables);
    return status;
}

static locus_status run_backward(const test_problem *p, const locus_plan *plan,
                                 const test_manner *manner, void *workspace, size_t bytes,
                                 locus_error *error)
{
    const locus_tensors grad = wanted_gradients(p, manner);
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    const uint32_t flags = manner->accumulate ? LOCUS_ACCUMULATE : 0;
    if (!manner->prepared)
        return locus_backward(plan, &p->in[1], &p->results[1], &dresults, &grad, flags, workspace,
                              bytes, error);
    locus_tables *tables = NULL;
    locus_status status = locus_tables_new_backward(&tables, plan, &p->in[1], error);
    if (status == LOCUS_OK)
        status = locus_backward_prepared(plan, tables, &p->in[1], &p->results[1], &dresults, &grad,
                                         flags, workspace, bytes, error);
    locus_tables_free(tables);
    return status;
}

/* Room of `bytes`, `misalign` bytes behind an address of 64 n, full of NaN: nothing may be read
 * before it is set. */
static char *take(size_t bytes, size_t misalign, char **memory)
{
    *memory = aligned_alloc(64, (bytes + misalign + 64) / 64 * 64);
    if (*memory == NULL) exit(2);
    memset(*memory, 0xff, bytes + misalign);
    return *memory + misalign;
}

static locus_status run_attend(const test_problem *p, const test_manner *manner, locus_error *error)
{
    locus_plan *plan = NULL;
    locus_status status = locus_plan_new(&plan, &p->config, &p->in[1], error);
    if (status != LOCUS_OK) return status;
    const size_t forward = locus_forward_workspace(plan), backward = locus_backward_workspace(plan);
    char *memory;
    char *workspace = take(forward > backward ? forward : backward, manner->misalign, &memory);
    status = run_forward(p, plan, manner->prepared, workspace, forward, error);
    if (status == LOCUS_OK && !manner->forward_only)
        status = run_backward(p, plan, manner, workspace, backward, error);
    free(memory);
    locus_plan_free(plan);
    return status;
}

/* A layer, and its tables where they are prepared. */
typedef struct layer_run {
    const test_problem *p;
    locus_layer *layer;
    locus_layer_tables *tables;
    char *saved, *workspace;
    size_t kept;
} layer_run;

static locus_status layer_forward(const layer_run *r, size_t bytes, locus_error *error)
{
    const test_problem *p = r->p;
    if (r->tables != NULL)
        return locus_layer_forward_prepared(r->layer, r->tables, &p->in[1], &p->results[1],
                                            r->saved, r->kept, r->workspace, bytes, error);
    return locus_layer_forward(r->layer, &p->in[1], &p->results[1], r->saved, r->kept, r->workspace,
                               bytes, error);
}

static locus_status layer_backward(const layer_run *r, const test_manner *manner, size_t bytes,
                                   locus_error *error)
{
    const test_problem *p = r->p;
    const locus_tensors grad = wanted_gradients(p, manner);
    const locus_results dresults = test_problem_gradient(p, TEST_FLOAT);
    const uint32_t flags = manner->accumulate ? LOCUS_ACCUMULATE : 0;
    memset(r->workspace, 0xff, bytes);
    if (r->tables != NULL)
        return locus_layer_backward_prepared(r->layer, r->tables, &p->in[1], &dresults, &grad,
                                             flags, r->saved, r->kept, r->workspace, bytes, error);
    return locus_layer_backward(r->layer, &p->in[1], &dresults, &grad, flags, r->saved, r->kept,
                                r->workspace, bytes, error);
}

static locus_status run_layer(const test_problem *p, const test_manner *manner, locus_error *error)
{
    layer_run r = {.p = p};
    locus_status status = locus_layer_new(&r.layer, &p->config, &p->in[1], error);
    if (status != LOCUS_OK) return status;
    const size_t forward = locus_layer_forward_workspace(r.layer);
    const size_t backward = locus_layer_backward_workspace(r.layer);
    char *memory, *saved_memory;
    r.kept = locus_layer_saved_bytes(r.layer);
    r.workspace = take(forward > backward ? forward : backward, manner->misalign, &memory);
    r.saved = take(r.kept, manner->misalign, &saved_memory);
    if (manner->prepared)
        status =
            locus_layer_tables_new(&r.tables, r.layer, &p->in[1], LOCUS_TABLES_BACKWARD, error);
    if (status == LOCUS_OK) status = layer_forward(&r, forward, error);
    if (status == LOCUS_OK && !manner->forward_only)
        status = layer_backward(&r, manner, backward, error);
    free(saved_memory);
    free(memory);
    locus_layer_tables_free(r.tables);
    locus_layer_free(r.layer);
    return status;
}

locus_status test_run(const test_problem *problem, const test_manner *manner, locus_error *error)
{
    test_views_fill(problem, manner->accumulate ? already_there : (double)NAN);
    return problem->spec.level == LOCUS_LAYER ? run_layer(problem, manner, error)
                                              : run_attend(problem, manner, error);
}

/* ---- judging ---- */

void test_calm(test_problem *problem)
{
    const test_spec *s = &problem->spec;
    const double reach = (double)(s->Tq > s->Tk ? s->Tq : s->Tk);
    const double factor = fmin(1.0, 99.0 / pow(reach, 1.4));
    const locus_tensor *growing[] = {&problem->in[0].slopes, &problem->in[0].a};
    for (size_t i = 0; i < 2; i++)
        for (int64_t h = 0; h < locus_tensor_elements(growing[i]); h++)
            test_set_value(growing[i], h, test_value(growing[i], h) * factor);
    test_problem_sync(problem);
}

static void judge_gradient(const test_problem *p, size_t index, const test_manner *manner)
{
    const char *name = locus_tensor_name(index);
    const locus_tensor *want = locus_tensor_at_const(&p->grad[0], index);
    if (manner->only != NULL && strcmp(manner->only, name) != 0) return;
    for (int64_t i = 0; manner->accumulate && i < locus_tensor_elements(want); i++)
        test_set_value(want, i, test_value(want, i) + already_there);
    test_judge_tensor(name, locus_tensor_at_const(&p->grad[1], index), want,
                      gradient_tolerance(name, &p->spec));
}

/* The oracle's results against the formulas. An angle of a radians keeps the bits of a double
 * that lie below a. */
static void judge_oracle(const test_problem *p)
{
    const double angle =
        p->config.query_offset != LOCUS_UNSET ? fabs((double)p->config.query_offset) : 0.0;
    const double tolerance = 1e-9 + angle * 8 * 0x1p-53;
    const locus_results *results = &p->results[0];
    locus_tensor out = results->out, lse = results->lse;
    out.data = malloc((size_t)(locus_tensor_elements(&out) + 1) * sizeof(double));
    lse.data = malloc((size_t)(locus_tensor_elements(&lse) + 1) * sizeof(double));
    if (out.data == NULL || lse.data == NULL) exit(2);
    test_naive(p, out.data, lse.data);
    test_judge_tensor("oracle's out", &results->out, &out, tolerance);
    test_judge_tensor("oracle's lse", &results->lse, &lse, tolerance);
    free(out.data);
    free(lse.data);
}

void test_judge(test_problem *problem, const test_manner *manner)
{
    test_problem *p = problem;
    locus_error error = {{0}};
    const int gradients = !manner->forward_only;
    const locus_status oracle = test_problem_run(p, TEST_ORACLE, gradients, &error);
    CHECK(oracle == LOCUS_OK, "oracle: %s", error.text);
    const locus_status status = test_run(p, manner, &error);
    CHECK(status == LOCUS_OK, "library: %s", error.text);
    if (oracle != LOCUS_OK || status != LOCUS_OK) return;
    if (!manner->trust_oracle && p->spec.level == LOCUS_ATTEND) judge_oracle(p);
    test_judge_tensor("out", &p->results[1].out, &p->results[0].out, result_tolerance);
    test_judge_tensor("lse", &p->results[1].lse, &p->results[0].lse, result_tolerance);
    for (size_t i = 0; gradients && i < LOCUS_TENSOR_COUNT; i++) judge_gradient(p, i, manner);
}
