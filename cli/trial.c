/* SPDX-License-Identifier: Apache-2.0 */
#include "trial.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

typedef struct pool {
    void **blocks;
    size_t *count;
} pool;

static void *take(pool p, size_t bytes)
{
    /* aligned_alloc wants a whole number of alignments. */
    void *block = aligned_alloc(64, (bytes / 64 + 1) * 64);
    if (block == NULL) return NULL;
    memset(block, 0, (bytes / 64 + 1) * 64);
    p.blocks[(*p.count)++] = block;
    return block;
}

/* A dense tensor of the shape of `like`. */
static int take_like(pool p, locus_tensor *tensor, const locus_tensor *like, locus_dtype dtype)
{
    const size_t bytes = dtype == LOCUS_F64 ? sizeof(double) : sizeof(float);
    *tensor = locus_view(NULL, dtype, like->rank, like->shape);
    tensor->data = take(p, (size_t)locus_tensor_elements(like) * bytes);
    return tensor->data != NULL;
}

static int take_results(pool memory, const locus_problem *p, locus_results *results,
                        locus_tensors *grad, locus_dtype dtype)
{
    if (!take_like(memory, &results->out, &p->out, dtype)) return 0;
    if (!take_like(memory, &results->lse, &p->lse, dtype)) return 0;
    for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
        const locus_tensor *input = locus_tensor_at_const(p->in, i);
        if (input->rank == 0 || input->dtype != LOCUS_F32) continue;
        if (!take_like(memory, locus_tensor_at(grad, i), input, dtype)) return 0;
    }
    return 1;
}

static void release(void **blocks, size_t count)
{
    for (size_t i = 0; i < count; i++) free(blocks[i]);
}

/* ---- the library's own path ---- */

static size_t larger(size_t a, size_t b) { return a > b ? a : b; }

static locus_status prepare(trial *t, locus_error *error)
{
    const locus_problem *p = t->problem;
    if (p->level == LOCUS_LAYER) {
        const locus_status status = locus_layer_new(&t->layer, p->config, p->in, error);
        if (status != LOCUS_OK) return status;
        t->saved_bytes = locus_layer_saved_bytes(t->layer);
        t->workspace_bytes = larger(locus_layer_forward_workspace(t->layer),
                                    locus_layer_backward_workspace(t->layer));
        return LOCUS_OK;
    }
    const locus_status status = locus_plan_new(&t->plan, p->config, p->in, error);
    if (status != LOCUS_OK) return status;
    t->workspace_bytes =
        larger(locus_forward_workspace(t->plan), locus_backward_workspace(t->plan));
    return LOCUS_OK;
}

locus_status trial_new(trial *t, const locus_problem *p, locus_error *error)
{
    memset(t, 0, sizeof *t);
    t->problem = p;
    t->results.size = sizeof t->results;
    t->grad.size = sizeof t->grad;
    const pool memory = {t->blocks, &t->block_count};
    locus_status status = prepare(t, error);
    if (status == LOCUS_OK) {
        const int fits = take_results(memory, p, &t->results, &t->grad, LOCUS_F32) &&
                         (t->saved = take(memory, t->saved_bytes)) != NULL &&
                         (t->workspace = take(memory, t->workspace_bytes)) != NULL;
        if (!fits) status = LOCUS_ERR_MEMORY;
    }
    if (status != LOCUS_OK) trial_free(t);
    return status;
}

void trial_free(trial *t)
{
    locus_plan_free(t->plan);
    locus_layer_free(t->layer);
    release(t->blocks, t->block_count);
    memset(t, 0, sizeof *t);
}

const char *trial_isa(const trial *t)
{
    locus_plan_info info = {.size = sizeof info};
    locus_plan_describe(t->plan != NULL ? t->plan : locus_layer_plan(t->layer), &info);
    return info.isa;
}

locus_status trial_forward(trial *t, locus_error *error)
{
    const locus_tensors *in = t->problem->in;
    if (t->layer != NULL)
        return locus_layer_forward(t->layer, in, &t->results, t->saved, t->saved_bytes,
                                   t->workspace, t->workspace_bytes, error);
    return locus_forward(t->plan, in, &t->results, t->workspace, t->workspace_bytes, error);
}

locus_status trial_backward(trial *t, locus_error *error)
{
    const locus_problem *p = t->problem;
    const locus_results dresults = {.size = sizeof dresults, .out = p->dout};
    if (t->layer != NULL)
        return locus_layer_backward(t->layer, p->in, &dresults, &t->grad, 0, t->saved,
                                    t->saved_bytes, t->workspace, t->workspace_bytes, error);
    return locus_backward(t->plan, p->in, &t->results, &dresults, &t->grad, 0, t->workspace,
                          t->workspace_bytes, error);
}

/* ---- against the oracle ---- */

static double difference(const locus_tensor *got, const locus_tensor *want)
{
    const float *g = got->data;
    const double *w = want->data;
    const int64_t count = locus_tensor_elements(want);
    double largest = 1.0, worst = 0.0;
    for (int64_t i = 0; i < count; i++) {
        if (isfinite(w[i]) && fabs(w[i]) > largest) largest = fabs(w[i]);
        if ((double)g[i] == w[i]) continue; /* equal infinities too */
        const double apart = fabs((double)g[i] - w[i]);
        if (isnan(apart)) return NAN;
        if (apart > worst) worst = apart;
    }
    return worst / largest;
}

/* The larger of two, where NaN is larger than anything. */
static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

locus_status trial_errors(const trial *t, double *outputs, double *gradients, locus_error *error)
{
    const locus_problem *p = t->problem;
    void *blocks[TRIAL_BLOCKS];
    size_t count = 0;
    const pool memory = {blocks, &count};
    locus_results want = {.size = sizeof want};
    const locus_results dresults = {.size = sizeof dresults, .out = p->dout};
    locus_tensors want_grad = {.size = sizeof want_grad};
    locus_status status = LOCUS_ERR_MEMORY;
    if (take_results(memory, p, &want, &want_grad, LOCUS_F64))
        status = locus_oracle(p->level, p->config, p->in, &want, &dresults, &want_grad, error);
    if (status == LOCUS_OK) {
        *outputs =
            worse(difference(&t->results.out, &want.out), difference(&t->results.lse, &want.lse));
        *gradients = 0.0;
        for (size_t i = 0; i < LOCUS_TENSOR_COUNT; i++) {
            const locus_tensor *got = locus_tensor_at_const(&t->grad, i);
            if (got->rank == 0) continue;
            *gradients = worse(difference(got, locus_tensor_at_const(&want_grad, i)), *gradients);
        }
    }
    release(blocks, count);
    return status;
}
